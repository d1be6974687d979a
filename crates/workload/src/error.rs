//! What can be wrong with a workload, and where.

use std::path::PathBuf;

use model::spec::SpecError;
use thiserror::Error;

/// Why a workload can't be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// The campaign is wrong, at this place in its text.
    #[error(transparent)]
    Campaign(#[from] SpecError),
    /// A `workload.toml` is wrong.
    #[error("{}: {error}", .path.display())]
    Directory {
        /// The file.
        path: PathBuf,
        /// What it holds.
        text: String,
        /// What is wrong, at its place in that text.
        error: SpecError,
    },
    /// A script is wrong: its file, the line with a caret, and what was expected.
    #[error("{0}")]
    Script(String),
}
