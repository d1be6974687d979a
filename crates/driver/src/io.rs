//! I/O of one thread's clients: sockets by number, a timer, and a waker for other threads.
//!
//! There are two implementations, which behave alike: [`Epoll`] and [`Uring`]. A loop waits ([`Io::wait`]), takes the
//! events one by one ([`Io::next`]), appends bytes to send to [`Io::outgoing`] and sends them ([`Io::send`]). Only
//! `wait` blocks.

mod epoll;
mod timer;
mod uring;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, Result};

pub(crate) use epoll::Epoll;
pub(crate) use uring::Uring;

/// Tests whether the kernel lets this process use io_uring as a driver thread does.
///
/// # Errors
/// It does not, or it lacks a required feature.
pub fn try_uring() -> std::io::Result<()> {
    Uring::new(1, Waker::new()?).map(drop)
}

/// An event loop's view of its sockets.
pub(crate) trait Io {
    /// Registers a socket under a number that no other open socket has. It may still be connecting.
    fn open(&mut self, number: usize, socket: OwnedFd) -> Result<()>;

    /// Closes a socket. It causes no further events.
    fn close(&mut self, number: usize);

    /// The buffer to which bytes for a socket are appended.
    fn outgoing(&mut self, number: usize) -> &mut Vec<u8>;

    /// Sends the appended bytes, after those that were sent before. Errors are reported as the socket's end.
    fn send(&mut self, number: usize) -> Result<()>;

    /// Waits for events; with `poll_only`, only polls.
    fn wait(&mut self, poll_only: bool) -> Result<()>;

    /// The next event.
    fn next(&mut self) -> Result<Option<IoEvent>>;

    /// The bytes of a chunk.
    fn bytes(&self, chunk: &Chunk) -> &[u8];

    /// Releases the buffer of a chunk; required for each chunk before the next event is taken.
    fn recycle(&mut self, chunk: Chunk);

    /// Sets the timer to a time of the monotonic clock, in nanoseconds; a past time expires at once.
    fn set_timer(&mut self, at_ns: u64) -> Result<()>;
}

/// An event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum IoEvent {
    /// Bytes were received.
    Received {
        /// The socket.
        number: usize,
        /// The bytes.
        chunk: Chunk,
    },
    /// The other side has closed the connection, or it broke or could not be established.
    Closed {
        /// The socket.
        number: usize,
        /// The error; None if the other side closed it in order.
        error: Option<Errno>,
    },
    /// The timer has expired.
    Timer,
    /// [`Waker::wake`] was called.
    Woken,
}

/// Received bytes; not `Clone`, so that their buffer is released once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    buffer: u16,
    length: u32,
}

impl Chunk {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length as usize
    }
}

/// Wakes a thread from [`Io::wait`].
#[derive(Clone)]
pub(crate) struct Waker(Arc<Wakes>);

struct Wakes {
    event: OwnedFd,
    /// Whether there was one since [`Waker::take`].
    pending: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Wakes { event, pending: AtomicBool::new(false) })))
    }

    pub(crate) fn wake(&self) {
        // Can fail only after 2^64 calls.
        let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
        self.0.pending.store(true, Ordering::Release);
    }

    /// Whether the event has been written since the last call, for a thread that waits without it.
    #[inline]
    fn take(&self) -> bool {
        self.0.pending.load(Ordering::Acquire) && self.0.pending.swap(false, Ordering::AcqRel)
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
