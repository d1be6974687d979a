//! What carries the bytes of one thread's clients: sockets by number, a timer, and a waker for other threads.
//!
//! Two of them, which behave alike: [`Epoll`] and [`Uring`]. A loop waits ([`Io::wait`]), takes what has happened one
//! by one ([`Io::next`]), appends what is to be said to [`Io::outgoing`] and has it sent ([`Io::send`]). Nothing but
//! `wait` ever waits.

mod epoll;
mod timer;
mod uring;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, Result};

pub(crate) use epoll::Epoll;
pub(crate) use uring::Uring;

/// Tries whether the kernel lets this process use io_uring as a driver thread does.
///
/// # Errors
/// It does not, or not with everything that is needed.
pub fn try_uring() -> std::io::Result<()> {
    Uring::new(1, Waker::new()?).map(drop)
}

/// An event loop's view of its sockets.
pub(crate) trait Io {
    /// Begins to watch a socket under a number, which no other open socket has. It may still be connecting.
    fn open(&mut self, number: usize, socket: OwnedFd) -> Result<()>;

    /// Closes a socket. Nothing that happens to it is told any more.
    fn close(&mut self, number: usize);

    /// Where bytes for a socket are to be appended. `answered` says that the other side has shown, by an answer, that
    /// it has everything that was sent before.
    fn outgoing(&mut self, number: usize, answered: bool) -> &mut Vec<u8>;

    /// Sends what was appended. `quiet` says that an answer will show whether it has arrived, before more is sent.
    /// Errors show as the socket's end.
    fn send(&mut self, number: usize, quiet: bool) -> Result<()>;

    /// Waits until something happens, or only looks.
    fn wait(&mut self, only_look: bool) -> Result<()>;

    /// The next thing that has happened.
    fn next(&mut self) -> Result<Option<IoEvent>>;

    /// Bytes that were received.
    fn bytes(&self, chunk: &Chunk) -> &[u8];

    /// Gives back the room of bytes that were received; has to be done with each chunk, before the next is asked for.
    fn recycle(&mut self, chunk: Chunk);

    /// Sets the timer to a time of the monotonic clock, in nanoseconds; a time that is past runs out at once.
    fn set_timer(&mut self, at_ns: u64) -> Result<()>;
}

/// Something that has happened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum IoEvent {
    /// Bytes came.
    Received {
        /// The socket.
        number: usize,
        /// Where they are.
        chunk: Chunk,
    },
    /// The other side has closed, or the connection is broken or could not be made.
    Closed {
        /// The socket.
        number: usize,
        /// Why; none where the other side has closed it in order.
        error: Option<Errno>,
    },
    /// The timer has run out.
    Timer,
    /// [`Waker::wake`] was called.
    Woken,
}

/// Bytes that were received; not to be copied, so that their room is given back once.
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

/// Wakes a thread out of [`Io::wait`].
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
