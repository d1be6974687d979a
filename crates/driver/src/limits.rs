//! The limit of open files, which is one of clients.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::LoadError;

/// Descriptors of a thread besides its clients': epoll, timer, waker.
const PER_THREAD: u64 = 3;

/// Pipes, and what libraries open.
const RESERVE: u64 = 32;

/// Raises the limit as far as it goes; an error if that is not enough for a load.
pub(crate) fn allow_files(clients: u32, threads: u32) -> Result<(), LoadError> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it can't be raised, what counts is whether it has to be.
    let _ = setrlimit(Resource::Nofile, raised);
    let allowed = getrlimit(Resource::Nofile).current;
    let needed = u64::from(clients) + u64::from(threads) * PER_THREAD + RESERVE;
    match allowed {
        Some(allowed) if allowed < needed => Err(LoadError::TooManyFiles { clients, needed, allowed }),
        _ => Ok(()),
    }
}
