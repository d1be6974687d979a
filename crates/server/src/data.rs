//! Data directories: `initdb` makes one, and copies of one are made alike.

pub(crate) mod blocks;
pub(crate) mod copy;
pub(crate) mod initdb;
