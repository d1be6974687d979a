//! Existing results as trials: pgbench's output and logs ([`pgbench`]), tables of figures ([`csv`]), and exports of
//! pgbench-tools ([`pgbench_tools`]).
//!
//! Each reads files into an [`Import`]: drafts of trials that contain what the files do and nothing else. What is
//! unknown stays none: a percentile is never derived from a mean, nor a number of clients from a file's name. A file is
//! imported completely or not at all, unless bad rows may be skipped.

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
pub use persist::{PersistError, Request, StoredImport};
