//! Errors of collectors: each becomes a note of the trial, except that a profile which can't be taken at all is reported
//! before the campaign starts.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use wire::ParamError;

/// Why a collector gathered nothing, or a source could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// The server's parameters of connections can't be used.
    #[error(transparent)]
    Params(#[from] ParamError),
    /// The server was not reached, or did not answer.
    #[error("{0}")]
    Unanswered(String),
    /// The server refused a statement.
    #[error("the server answers: {message} ({sqlstate})")]
    Refused {
        /// The server's message.
        message: String,
        /// Its SQLSTATE.
        sqlstate: String,
    },
}
