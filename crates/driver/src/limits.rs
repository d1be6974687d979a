//! The limit on open files, which limits the number of clients.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::LoadError;

/// File descriptors of a thread in addition to its clients': epoll, timer, waker.
const FILES_PER_THREAD: u64 = 3;

/// File descriptors of pipes and libraries.
const RESERVED_FILES: u64 = 32;

/// Checks that the hard limit, to which a load raises the limit, is enough for it.
///
/// # Errors
/// It is not.
pub fn check_file_limit(clients: u32, threads: u32) -> Result<(), LoadError> {
    check(getrlimit(Resource::Nofile).maximum, clients, threads)
}

/// Raises the limit to the hard limit; returns an error if that is not enough for a load.
pub(crate) fn raise_file_limit(clients: u32, threads: u32) -> Result<(), LoadError> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // If that fails, the current limit may still suffice.
    let _ = setrlimit(Resource::Nofile, raised);
    check(getrlimit(Resource::Nofile).current, clients, threads)
}

fn check(allowed: Option<u64>, clients: u32, threads: u32) -> Result<(), LoadError> {
    let needed = u64::from(clients) + u64::from(threads) * FILES_PER_THREAD + RESERVED_FILES;
    match allowed {
        Some(allowed) if allowed < needed => Err(LoadError::TooManyFiles { clients, needed, allowed }),
        _ => Ok(()),
    }
}
