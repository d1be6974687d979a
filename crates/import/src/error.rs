//! Errors of imports: file, line, column, cause, and what to do.

mod pgbench;

use std::fmt::{self, Write as _};
use std::io;

use model::factor::LevelError;

pub use pgbench::{HistogramError, PgbenchError};

/// Error of an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file can't be read.
    #[error("{file} can't be read: {source}")]
    Io {
        /// The file's name.
        file: String,
        /// Cause.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{file}: {message}")]
    InvalidFile {
        /// The file's name.
        file: String,
        /// Cause, and what to do.
        message: String,
    },
    /// A line of a log or an output is not pgbench's.
    #[error("{file}, line {line}: {source}")]
    Line {
        /// The file's name.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// Cause, and what to do.
        source: PgbenchError,
    },
    /// A file is not the output or log of one run of pgbench.
    #[error("{file}: {source}")]
    Pgbench {
        /// The file's name.
        file: String,
        /// Cause, and what to do.
        source: PgbenchError,
    },
    /// A table lacks a column that was named.
    #[error("{file} has no column \"{column}\"; it has {}", known.join(", "))]
    NoColumn {
        /// The file's name.
        file: String,
        /// The column named.
        column: String,
        /// Its columns.
        known: Vec<String>,
    },
    /// Rows of a table can't be trials.
    #[error(
        "{file}: nothing was imported: {}{}",
        rows(bad),
        "\nCorrect the file, or skip these rows with --skip-bad"
    )]
    BadRows {
        /// The file's name.
        file: String,
        /// All of them.
        bad: Vec<BadRow>,
    },
    /// A text given as the level of all trials is not one.
    #[error(transparent)]
    Level(#[from] LevelError),
}

/// A row of a table that can't be a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Line at which it starts, from 1.
    pub line: u64,
    /// The column; none for the whole row.
    pub column: Option<String>,
    /// Description of the error.
    pub message: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            Some(column) => write!(f, "line {}, column {column}: {}", self.line, self.message),
            None => write!(f, "line {}: {}", self.line, self.message),
        }
    }
}

/// Number of bad rows, and the first of them.
fn rows(bad: &[BadRow]) -> String {
    const MAX_SHOWN: usize = 10;
    let mut text = match bad {
        [_] => "1 row is invalid:".to_owned(),
        bad => format!("{} rows are invalid:", bad.len()),
    };
    for row in bad.iter().take(MAX_SHOWN) {
        let _ = write!(text, "\n  {row}");
    }
    if bad.len() > MAX_SHOWN {
        let _ = write!(text, "\n  and {} more", bad.len() - MAX_SHOWN);
    }
    text
}
