//! Errors of collectors. Each becomes a note of the trial.

mod profile;

use std::io;

use wire::ParamError;
use wire::blocking::SessionError;

pub use profile::{ProfileError, RecordingProblem};

/// Prefixes of SQLSTATEs of errors that may be temporary: insufficient resources, intervention by an operator or a time
/// limit, an unavailable lock.
const TEMPORARY: [&str; 3] = ["53", "57", "55P03"];

/// Error of a collector without results, or of a source that could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// Connection parameters that can't be used.
    #[error(transparent)]
    Params(#[from] ParamError),
    /// A session that could not be opened, or was lost.
    #[error("{}", one_line(.0))]
    Session(SessionError),
    /// A statement that the server rejected.
    #[error("the server rejected a statement: {message} ({sqlstate})")]
    Rejected {
        /// The server's message.
        message: String,
        /// Its SQLSTATE.
        sqlstate: String,
    },
    /// A fact about the server that is missing in its response.
    #[error("the server does not report its {0}")]
    Unreported(&'static str),
    /// No such database.
    #[error("the server has no database {0}")]
    NoDatabase(String),
    /// Files of the kernel that could not be read.
    #[error("could not read {0}")]
    Kernel(&'static str),
    /// A thread that could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(io::Error),
    /// A thread that panicked.
    #[error("its thread panicked")]
    Panicked,
    /// A profile that could not be taken.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

impl CollectError {
    /// Whether the server rejected the statement itself, and will reject it again.
    pub(crate) fn is_permanent(&self) -> bool {
        let Self::Rejected { sqlstate, .. } = self else { return false };
        !TEMPORARY.iter().any(|prefix| sqlstate.starts_with(prefix))
    }
}

impl From<SessionError> for CollectError {
    fn from(error: SessionError) -> Self {
        match error.server_error() {
            Some(error) => {
                Self::Rejected { message: error.message.clone(), sqlstate: error.sqlstate.clone() }
            }
            None => Self::Session(error),
        }
    }
}

/// Joins libpq's lines, one per connection attempt.
fn one_line(error: &SessionError) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
