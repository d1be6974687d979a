//! The clocks of a load.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// CLOCK_MONOTONIC, in nanoseconds.
#[inline]
pub(crate) fn now_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// CLOCK_MONOTONIC, in microseconds.
pub(crate) fn now_us() -> i64 {
    (now_ns() / 1_000) as i64
}

/// CPU time of this process so far, user and system, in microseconds.
pub(crate) fn process_cpu_us() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime)) / 1_000
}

/// CPU time of this thread so far, user and system, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Wall clock, in microseconds since the Unix epoch.
pub(crate) fn unix_us() -> i64 {
    (nanoseconds(clock_gettime(ClockId::Realtime)) / 1_000) as i64
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
