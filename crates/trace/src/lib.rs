//! The trace: a file of sessions and their statements in the order of time. Docs: `docs/trace.md`.
//!
//! It consists of Zstandard frames of JSON lines, so that `zstd -dc` shows it, and an end that says where they are.
//! [`TraceWriter`] sorts events that are nearly in order in a fixed memory: what comes too late for the run that is being
//! written goes to the next run, and [`TraceReader`] merges the runs.

mod error;
mod filter;
mod format;
mod frames;
mod reader;
mod selection;
mod statement;
mod summary;
mod survey;
mod writer;

pub use error::TraceError;
pub use filter::{FilterError, SessionFilter};
pub use format::VERSION;
pub use reader::{Events, TraceReader};
pub use selection::Selection;
pub use statement::{
    Action, Call, Event, Identity, MAX_DEPENDENCY_US, Outcome, SqlState, Statement, StatementRef,
};
pub use summary::{Missing, Shape, Source, Summary};
pub use survey::Survey;
pub use writer::{TraceWriter, directory_of};

#[cfg(test)]
mod tests;
