//! Errors of traces.

use pglog::LogError;
use trace::TraceError;

/// A trace that can't be made or read.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A log can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The logs have no statement.
    #[error("there are no statements in {files}{hint}")]
    NoStatements {
        /// The logs.
        files: String,
        /// What the server must log.
        hint: String,
    },
    /// A snapshot of `pg_stat_statements` can't be read.
    #[error("the snapshot {file} can't be used: {problem}")]
    Snapshot {
        /// The file.
        file: String,
        /// The problem.
        problem: String,
    },
    /// Snapshots that a mix can't be made from.
    #[error("{0}")]
    Mix(String),
    /// The database of the values can't be queried.
    #[error("the database for the values of parameters can't be queried: {0}")]
    Sampling(Box<wire::blocking::SessionError>),
    /// A trace can't be written, read or used.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The server can't be connected to.
    #[error("{0}")]
    Connect(Box<wire::blocking::SessionError>),
    /// A database can't be copied.
    #[error(
        "cannot copy the database \"{template}\": {source}; it must exist and have no sessions, and the role must have the \
         attribute CREATEDB and own it"
    )]
    Copy {
        /// The database.
        template: String,
        /// The cause.
        source: Box<wire::blocking::SessionError>,
    },
    /// The driver can't play it.
    #[error(transparent)]
    Driver(#[from] driver::LoadError),
    /// A bug.
    #[error("internal error, please report it: {0}")]
    Internal(String),
}
