//! Errors in workloads, with their positions.

use std::path::PathBuf;

use model::spec::SpecError;
use thiserror::Error;

/// Error in a workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// Error in the campaign, with its position in the text.
    #[error(transparent)]
    Campaign(#[from] SpecError),
    /// Error in a `workload.toml`.
    #[error("{}: {error}", .path.display())]
    Directory {
        /// The file.
        path: PathBuf,
        /// Text of the file.
        text: String,
        /// Error, with its position in that text.
        error: SpecError,
    },
    /// Error in a script: its file, the line with a caret, and what was expected.
    #[error("{0}")]
    Script(String),
}
