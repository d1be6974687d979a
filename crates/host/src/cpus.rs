//! The CPUs of this host.

use std::thread;

/// Number of CPUs that this process may use by its affinity and control group; none if unknown.
pub fn usable_cpus() -> Option<u32> {
    thread::available_parallelism().ok()?.get().try_into().ok()
}
