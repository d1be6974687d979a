//! Errors of booting a campaign's kernels.

use std::io;

use crate::error::RunError;

/// Error of booting a campaign's kernels.
#[derive(Debug, thiserror::Error)]
pub enum RebootError {
    /// No installed kernel has a cell's label.
    #[error(
        "the kernel {label} is not installed: install its package (Debian: `apt-get install linux-image-…`; \
         `apt-cache search --names-only linux-image-{label}` lists them), or use a release as in `uname -r`; installed: {}",
        if installed.is_empty() { "none".to_owned() } else { installed.join(", ") }
    )]
    NoKernel {
        /// The label.
        label: String,
        /// Releases of the installed kernels.
        installed: Vec<String>,
    },
    /// A variable that pgdyno needs after a boot contains a password.
    #[error(
        "{name} contains a password, and all users of this machine could read it in the systemd unit that continues the \
         campaign after a boot; use a mirror without a password, or install the servers first (`pgdyno server install`) \
         and unset {name}"
    )]
    SecretVariable {
        /// The variable.
        name: &'static str,
    },
    /// The machine can't boot these kernels.
    #[error(transparent)]
    Unsupported(machine::Error),
    /// A step failed.
    #[error(transparent)]
    Step(#[from] machine::Error),
    /// The run can't continue.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// A path can't be made absolute.
    #[error("could not find the working directory: {0}")]
    Path(#[from] io::Error),
}

impl RebootError {
    /// Whether the campaign can't be run as requested; the machine is then restored.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoKernel { .. }
                | Self::SecretVariable { .. }
                | Self::Unsupported(_)
                | Self::Run(RunError::Confounded { .. })
        )
    }
}
