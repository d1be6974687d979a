//! The programs of a server: downloaded, built from source, or used in place.

pub(crate) mod archives;
pub(crate) mod build_flags;
pub(crate) mod identical;
pub(crate) mod in_place;
pub(crate) mod install;
pub(crate) mod installation;
pub(crate) mod pins;
mod releases;
mod setting_names;
pub(crate) mod source;
mod stamp;
