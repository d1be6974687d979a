//! Data sets: created once as a template, and copied for each trial.

pub(crate) mod base_backup;
pub(crate) mod content;
pub(crate) mod disk;
pub(crate) mod dump;
mod eviction;
pub(crate) mod fill;
pub(crate) mod filling;
pub(crate) mod own;
pub(crate) mod pgbench_tables;
pub(crate) mod size;
mod star_tables;
pub(crate) mod template;
