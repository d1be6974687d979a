//! Errors of a fleet.

use std::io;
use std::path::PathBuf;

use model::release::VERSION;

/// Error of a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// There is no connection with the NATS server.
    #[error("there is no connection with the NATS server {url}: {why}\n{advice}")]
    Connect {
        /// Its URL, without a password.
        url: String,
        /// What failed.
        why: String,
        /// What to do.
        advice: &'static str,
    },
    /// The NATS server refused a request, or did not answer.
    #[error("the NATS server did not {what}: {why}")]
    Nats {
        /// What was asked.
        what: &'static str,
        /// Why it failed.
        why: String,
    },
    /// A file of keys or credentials can't be read or written.
    #[error("{} can't be {what}: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A file has no key.
    #[error(
        "{} has no {what}: `pgdyno fleet key FILE` creates a secret key, and prints the public one",
        path.display()
    )]
    NoKey {
        /// The file.
        path: PathBuf,
        /// What was expected.
        what: &'static str,
    },
    /// A message is not of this fleet, or of another version.
    #[error("a message on {subject} is not one of a pgdyno {VERSION}: {why}")]
    Message {
        /// Where it was read.
        subject: String,
        /// What is wrong with it.
        why: String,
    },
    /// The campaign can't be run by a fleet.
    #[error("{0}")]
    Campaign(String),
    /// No run of the fleet matches.
    #[error("the fleet has no {wanted}: `pgdyno fleet status` lists its runs")]
    NoRun {
        /// The run.
        wanted: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// Work on this host failed.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// The campaign's text can't be read.
    #[error(transparent)]
    CampaignFile(#[from] runner::campaign_file::CampaignFileError),
    /// The system refuses threads or timers.
    #[error("the connection's threads can't be started: {0}")]
    Threads(io::Error),
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl FleetError {
    pub(crate) fn nats(what: &'static str, why: impl ToString) -> Self {
        Self::Nats { what, why: why.to_string() }
    }

    /// Whether the user can correct it on the command line or in the campaign.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::File { what: "read", .. } | Self::NoKey { .. } | Self::Campaign(_) | Self::NoRun { .. }
        )
    }
}
