//! What a server's data directory begins as: made once as a template, and copied for each trial.

pub(crate) mod blocks;
pub(crate) mod content;
pub(crate) mod copy;
pub(crate) mod dataset;
pub(crate) mod disk;
mod eviction;
pub(crate) mod initdb;
pub(crate) mod pgbench_tables;
pub(crate) mod template;
