//! What clients do in addition to pgbench's built-in scripts.
//!
//! [`workloads`] gives the workloads that a campaign can name, with their texts: those of its tables and files, and
//! those that pgdyno brings along ([`shipped`]). Every script is parsed, so that what is wrong with one is known before
//! anything is started. [`setup`] and [`teardown`] are the statements around a load, their variables filled in; [`check`] is
//! whether those of a plan's cells can be computed.

mod error;
mod parameters;
mod read;
mod resolve;
mod shipped;
mod statements;

pub use error::WorkloadError;
pub use resolve::workloads;
pub use shipped::shipped;
pub use statements::{check, setup, teardown};
