//! Workloads other than pgbench's built-in scripts.
//!
//! [`workloads`] returns the workloads that a campaign can name, with their texts: those of its tables and files, and
//! those bundled with pgdyno ([`shipped`]). Every script is parsed, so that its errors are reported before anything
//! starts. [`received_workloads`] returns those of a campaign of another machine. [`StreamsFile`] is the trace of a workload whose
//! scripts are run by streams. [`setup`], [`figures`], [`consistency`] and [`teardown`] return the statements before and after a
//! load, with their variables filled in; [`check`] reports those of a plan's cells that can't be computed.

mod datasets;
mod error;
mod parameters;
mod read;
mod resolve;
mod shipped;
mod statements;
mod streams;

pub use error::WorkloadError;
pub use resolve::{received_workloads, workloads};
pub use shipped::shipped;
pub use statements::{StatementError, check, consistency, figures, setup, teardown};
pub use streams::{StreamsError, StreamsFile};
