//! What a server's data directory begins as: made once as a template, and copied for each trial.

mod blocks;
pub(crate) mod content;
pub(crate) mod copy;
pub(crate) mod dataset;
pub(crate) mod disk;
mod eviction;
pub(crate) mod initdb;
pub(crate) mod pgbench_tables;
pub(crate) mod raw_read;
pub(crate) mod template;
