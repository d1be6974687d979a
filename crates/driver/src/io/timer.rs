//! A timer as a file descriptor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::io::Result;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// Becomes readable at a time of the monotonic clock. Edge-triggered polling does not require reading it: each expiry
/// is an edge.
pub(crate) struct Timer(OwnedFd);

impl Timer {
    pub(crate) fn new() -> Result<Self> {
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK).map(Self)
    }

    pub(crate) fn set(&self, at_ns: u64) -> Result<()> {
        // Zero would disarm it.
        let at_ns = at_ns.max(1);
        let at = Timespec {
            tv_sec: (at_ns / 1_000_000_000).min(i64::MAX as u64) as i64,
            tv_nsec: (at_ns % 1_000_000_000) as _,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &once).map(drop)
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
