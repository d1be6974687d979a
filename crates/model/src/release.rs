//! The release of this program.

/// Version of this pgdyno: that which the build names in the variable `PGDYNO_VERSION`, as `make dist` does with git's, else
/// the workspace's.
pub const VERSION: &str = match option_env!("PGDYNO_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};
