//! What people already have, as trials: pgbench's output and logs ([`pgbench`]), tables of figures ([`csv`]), and what
//! pgbench-tools exports ([`pgbench_tools`]).
//!
//! Each reads files into an [`Import`]: drafts of trials, of which is known what the files say and nothing else. What is
//! not known stays none: a percentile is never made of a mean, and a number of clients never of a file's name. A file
//! is imported whole or not at all, unless bad rows are to be left out.

pub mod csv;
mod error;
mod file;
mod import;
mod persist;
pub mod pgbench;
pub mod pgbench_tools;
mod table;

pub use error::{BadRow, HistogramError, ImportError, PgbenchError};
pub use file::Source;
pub use import::{Draft, Import};
pub use persist::{PersistError, Persisted, Request};
