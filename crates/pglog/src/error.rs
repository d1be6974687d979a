//! Errors of logs.

use std::io;
use std::path::PathBuf;

/// A log that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file can't be opened or read.
    #[error("the log {} can't be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is in no known format.
    #[error(
        "{} is not a log of PostgreSQL in a known format. A line of it is\n  {line}\nIf it is a stderr log, name its log_line_prefix \
         (--prefix '%m [%p] '; `show log_line_prefix` prints it); else log with log_destination = csvlog or jsonlog.",
        path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// One of its lines, shortened.
        line: String,
    },
    /// The lines do not have the prefix that the user named.
    #[error(
        "no line of {} begins with the prefix '{prefix}'. A line of it is\n  {line}\n`show log_line_prefix` prints the server's.",
        path.display()
    )]
    OtherPrefix {
        /// The file.
        path: PathBuf,
        /// The prefixes, joined.
        prefix: String,
        /// One of its lines, shortened.
        line: String,
    },
    /// The lines have a known prefix that lacks something.
    #[error("the lines of {} have the log_line_prefix '{prefix}': {source}", path.display())]
    Prefix {
        /// The file.
        path: PathBuf,
        /// The prefix.
        prefix: String,
        /// What it lacks.
        source: PrefixError,
    },
}

/// A `log_line_prefix` that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// It has seconds only.
    #[error(
        "its time has no milliseconds (%t), which the order and the times of statements need; log with %m instead, or with log_destination = csvlog"
    )]
    NoMilliseconds,
    /// It has no time.
    #[error("it has no time; log with %m (or %n)")]
    NoTime,
    /// It has neither a session nor a process.
    #[error("it has neither the session (%c) nor the process (%p); log with one of them")]
    NoSession,
    /// Two fields of free text follow each other.
    #[error("nothing separates %{0} from %{1}, so they can't be told apart; log with a separator")]
    NotSeparated(char, char),
    /// An escape that PostgreSQL does not have.
    #[error("%{0} is not an escape of log_line_prefix")]
    UnknownEscape(char),
    /// A percent sign at its end.
    #[error("it ends in a lone %")]
    LoneEscape,
}
