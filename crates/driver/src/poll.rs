//! One thread's edge-triggered epoll set: sockets by number, a timer, and a waker for other threads.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::{Errno, Result};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// How many events are taken in one call.
const BATCH: usize = 1024;

const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;

/// What a socket is watched for, besides its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Bytes to read.
    Read,
    /// Bytes to read, and room to write. Every byte that the server takes is an event, so only while there is need.
    ReadWrite,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// A socket can do something.
    Socket {
        /// The number it was added with.
        number: usize,
        /// It may have room to write.
        writable: bool,
        /// The other side has closed, or there was an error: read on until nothing more comes.
        hangup: bool,
    },
    /// The timer has run out.
    Timer,
    /// [`Waker::wake`] was called.
    Woken,
}

/// An epoll set.
pub(crate) struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    events: Vec<epoll::Event>,
    // Keeps its descriptor open as long as the set watches it.
    _waker: Waker,
}

/// Wakes a thread out of [`Poll::wait`].
#[derive(Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    pub(crate) fn wake(&self) {
        // Can fail only after 2^64 calls.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

impl Poll {
    pub(crate) fn new(waker: Waker) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        // Edge-triggered, neither has to be read: each expiry and each wake is an edge.
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), edge)?;
        epoll::add(&epoll, &*waker.0, EventData::new_u64(WAKER), edge)?;
        Ok(Self { epoll, timer, events: Vec::with_capacity(BATCH), _waker: waker })
    }

    /// Begins to watch a socket; closing it ends that.
    pub(crate) fn add(&self, socket: impl AsFd, number: usize, interest: Interest) -> Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(number as u64), interest.flags())
    }

    /// Changes what a socket is watched for. What it can do already is told again.
    pub(crate) fn change(&self, socket: impl AsFd, number: usize, interest: Interest) -> Result<()> {
        epoll::modify(&self.epoll, socket, EventData::new_u64(number as u64), interest.flags())
    }

    /// Sets the timer to a time of the monotonic clock, in nanoseconds.
    pub(crate) fn set_timer(&self, at_ns: u64) -> Result<()> {
        let at = Timespec {
            tv_sec: (at_ns / 1_000_000_000).min(i64::MAX as u64) as i64,
            tv_nsec: (at_ns % 1_000_000_000) as _,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).map(drop)
    }

    /// Waits until something happens, or only looks. Returns how many [`happening`](Self::happening)s there are.
    #[inline]
    pub(crate) fn wait(&mut self, only_look: bool) -> Result<usize> {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.events.clear();
        let timeout = only_look.then_some(&AT_ONCE);
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout) {
            Ok(_) | Err(Errno::INTR) => Ok(self.events.len()),
            Err(error) => Err(error),
        }
    }

    /// One of what the last wait brought.
    #[inline]
    pub(crate) fn happening(&self, at: usize) -> Happening {
        let event = self.events[at];
        let flags = event.flags;
        match event.data.u64() {
            TIMER => Happening::Timer,
            WAKER => Happening::Woken,
            number => Happening::Socket {
                number: number as usize,
                writable: flags.contains(EventFlags::OUT),
                hangup: flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
            },
        }
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        let read = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        match self {
            Self::Read => read,
            Self::ReadWrite => read | EventFlags::OUT,
        }
    }
}
