//! Errors of traces.

use std::io;
use std::path::PathBuf;

/// A trace that can't be written, read or used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The trace can't be written.
    #[error("the trace {} can't be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The trace can't be read.
    #[error("the trace {} can't be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not a trace, or a part of one.
    #[error(
        "{} is not a whole trace: {reason}. `pgdyno replay read` makes traces from the logs of a server.",
        path.display()
    )]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The trace is of a later version of pgdyno.
    #[error("the trace {} has version {version}; this pgdyno reads up to {known}: use a later one", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The latest known one.
        known: u32,
    },
    /// The trace is damaged.
    #[error("the trace {} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// No session is selected.
    #[error(
        "the trace has no such session, or a low rate scale selects none; `pgdyno replay inspect` shows roles, databases and applications"
    )]
    NoSessions,
    /// Sessions of several databases can't go to one.
    #[error(
        "the sessions were in several databases: {databases}. Choose those of one, such as --sessions database={first}"
    )]
    SeveralDatabases {
        /// The databases with their sessions.
        databases: String,
        /// One of them.
        first: String,
    },
}
