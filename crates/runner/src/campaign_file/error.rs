//! Errors of reading a campaign.

use std::io;
use std::path::PathBuf;

use model::spec::SpecError;

use super::overrides::OverrideError;

/// Error of reading a campaign.
#[derive(Debug, thiserror::Error)]
pub enum CampaignFileError {
    /// The file can't be read.
    #[error("the campaign {} can't be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The campaign or the `workload.toml` that it names is invalid.
    #[error("{}: {error}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Its text.
        text: String,
        /// The error, with its place in the text.
        error: Box<SpecError>,
    },
    /// A script is invalid: its file, the line with a caret, and what was expected.
    #[error("{0}")]
    Script(String),
    /// An override can't be applied.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// A server can't be looked up.
    #[error(transparent)]
    Server(#[from] server::Error),
    /// A kernel can't be fetched.
    #[error(transparent)]
    Kernel(#[from] machine::Error),
    /// A virtual machine can't be tried.
    #[error(transparent)]
    Machine(#[from] machine::vm::VmError),
}

impl CampaignFileError {
    /// Whether the campaign or its overrides are wrong, as opposed to the machine or the network.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Invalid { .. } | Self::Script(_) | Self::Override(_))
    }
}
