//! Data directories: created by `initdb`, and copied.

pub(crate) mod blocks;
pub(crate) mod copy;
pub(crate) mod initdb;
