//! The trace: a file of sessions and their statements in the order of time. Docs: `docs/trace.md`.
//!
//! It consists of Zstandard frames of JSON lines, so that `zstd -dc` shows it, and an end that says where they are.
//! [`TraceWriter`] sorts events that are nearly in order in a fixed memory: what comes too late for the run that is being
//! written goes to the next run, and [`TraceReader`] merges the runs.

mod format;
mod frames;
mod reader;
mod writer;

use pglog::Problems;

pub use crate::shapes::Shape;
pub use format::VERSION;
pub use reader::{Events, TraceReader};
pub use writer::TraceWriter;
pub(crate) use writer::directory_of;

use crate::left_out::LeftOutTally;

/// What a trace says about itself and about what is not in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The logs.
    pub sources: Vec<Source>,
    /// Whether its values were replaced.
    pub is_anonymized: bool,
    /// The shapes of its statements, by number.
    pub shapes: Vec<Shape>,
    /// Number of sessions.
    pub sessions: u32,
    /// Number of executed statements.
    pub statements: u64,
    /// What of the logs is not in it.
    pub left_out: LeftOutTally,
    /// What of the logs could not be read.
    pub problems: Problems,
}

/// A log that a trace was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the file.
    pub file: String,
    /// Its format.
    pub format: String,
    /// Its `log_line_prefix`.
    pub prefix: Option<String>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Number of its entries.
    pub entries: u64,
}

#[cfg(test)]
mod tests;
