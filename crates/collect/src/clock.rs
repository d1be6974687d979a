//! Readings of the clocks.

use model::record::ClockReading;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads both clocks.
pub fn now() -> ClockReading {
    ClockReading {
        monotonic_us: microseconds(clock_gettime(ClockId::Monotonic)),
        unix_us: microseconds(clock_gettime(ClockId::Realtime)),
    }
}

fn microseconds(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}
