//! io_uring: multishot receives into provided buffers, fixed files, and one system call for all that a round of events
//! has to say and the wait for the next.
//!
//! Needs Linux 6.1 (provided buffer rings, multishot receive, deferred task running).

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use io_uring::types::Fixed;
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::{Errno, Result};
use rustix::net::{SendFlags, Shutdown, shutdown};

use super::timer::Timer;
use super::{Chunk, Io, IoEvent, Waker};

mod buffers;

use buffers::{BUFFER, Buffers};

/// What an operation is, in the highest byte of what it is told by.
const RECEIVE: u64 = 0;
const SEND: u64 = 1;
const TIMER: u64 = 2;
const WAKER: u64 = 3;

/// The group that the buffers are registered under.
const GROUP: u16 = 0;

const SEND_FLAGS: i32 = (SendFlags::NOSIGNAL.bits() | libc::MSG_WAITALL as u32) as i32;

/// A ring and its sockets.
pub(crate) struct Uring {
    // Before what the kernel writes to and reads from: dropped first.
    ring: IoUring,
    buffers: Buffers,
    sockets: Vec<Socket>,
    /// What the kernel may still read though its socket is closed, since the last wait and since the one before.
    abandoned: [Vec<Vec<u8>>; 2],
    events: Vec<cqueue::Entry>,
    next_event: usize,
    timer: Timer,
    waker: Waker,
}

#[derive(Default)]
struct Socket {
    descriptor: Option<OwnedFd>,
    /// Told in events, so that those of an earlier socket of the same number can be told apart.
    generation: u32,
    /// What the kernel sends, or is to send next.
    outgoing: Vec<u8>,
    /// What is to be sent after that.
    staged: Vec<u8>,
    flight: Flight,
}

/// Whose `outgoing` is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Flight {
    /// Ours.
    #[default]
    None,
    /// The kernel's, until an answer shows that it has been received.
    Quiet,
    /// The kernel's, until it says that it has been sent.
    Reported,
}

impl Uring {
    /// A ring for sockets with numbers below `count`, to be used by the thread that makes it.
    ///
    /// # Errors
    /// The kernel does not offer what it needs, or does not allow it.
    pub(crate) fn new(count: usize, waker: Waker) -> io::Result<Self> {
        let entries = (count * 2).next_power_of_two().clamp(64, 4096) as u32;
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_cqsize(entries * 4);
        // An indirection less, from Linux 6.6 on.
        let ring = builder.clone().setup_no_sqarray().build(entries).or_else(|_| builder.build(entries))?;
        // Spares the kernel a look-up with each call, from Linux 5.18 on.
        let _ = ring.submitter().register_ring_fd();
        let buffers = Buffers::register(&ring.submitter(), GROUP, count)?;
        ring.submitter().register_files_sparse(count.max(1) as u32)?;
        let mut uring = Self {
            ring,
            buffers,
            sockets: (0..count).map(|_| Socket::default()).collect(),
            abandoned: Default::default(),
            events: Vec::with_capacity(entries as usize * 4),
            next_event: 0,
            timer: Timer::new()?,
            waker,
        };
        uring.watch(TIMER)?;
        uring.watch(WAKER)?;
        uring.ring.submit()?;
        Ok(uring)
    }

    /// Has the timer or the waker told of.
    fn watch(&mut self, kind: u64) -> Result<()> {
        let descriptor = if kind == TIMER { self.timer.as_fd() } else { self.waker.0.as_fd() };
        let poll = opcode::PollAdd::new(
            io_uring::types::Fd(descriptor.as_raw_fd()),
            u32::from(PollFlags::IN.bits()),
        )
        .multi(true)
        .build()
        .user_data(tag(kind, 0, 0));
        self.push(&poll)
    }

    fn receive(&mut self, number: usize) -> Result<()> {
        let generation = self.sockets[number].generation;
        let receive = opcode::RecvMulti::new(Fixed(number as u32), GROUP).build();
        self.push(&receive.user_data(tag(RECEIVE, generation, number)))
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) -> Result<()> {
        // Safety: buffers that an entry names stay where they are, and unchanged, until it is done: see `Flight` and
        // `abandoned`; descriptors are open or, fixed, the ring's own.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    #[cold]
    fn submit(&mut self) -> Result<()> {
        match self.ring.submit() {
            Ok(_) => Ok(()),
            Err(error) => tolerate(&error),
        }
    }

    /// Has the kernel send `outgoing`.
    #[inline]
    fn submit_send(&mut self, number: usize, quiet: bool) -> Result<()> {
        let socket = &mut self.sockets[number];
        let mut flags = squeue::Flags::FIXED_FILE;
        if quiet {
            flags |= squeue::Flags::SKIP_SUCCESS;
        }
        socket.flight = if quiet { Flight::Quiet } else { Flight::Reported };
        let (start, length) = (socket.outgoing.as_ptr(), socket.outgoing.len() as u32);
        let send = opcode::Send::new(Fixed(number as u32), start, length).flags(SEND_FLAGS).build();
        let send = send.flags(flags).user_data(tag(SEND, socket.generation, number));
        self.push(&send)
    }

    /// A send is done, or has failed.
    fn sent(&mut self, number: usize, result: i32) -> Result<()> {
        let socket = &mut self.sockets[number];
        if socket.flight != Flight::Reported {
            // A quiet one has failed: the socket's end will be told.
            return Ok(());
        }
        socket.flight = Flight::None;
        match usize::try_from(result) {
            Ok(sent) if sent < socket.outgoing.len() => drop(socket.outgoing.drain(..sent)),
            Ok(_) => {
                socket.outgoing.clear();
                mem::swap(&mut socket.outgoing, &mut socket.staged);
            }
            // What the other side has to say about it is still to be read, and its end is told.
            Err(_) => {
                socket.outgoing.clear();
                socket.staged.clear();
            }
        }
        if socket.outgoing.is_empty() || socket.descriptor.is_none() {
            return Ok(());
        }
        self.submit_send(number, false)
    }

    /// What a receive says.
    fn received(&mut self, number: usize, event: &cqueue::Entry, current: bool) -> Result<Option<IoEvent>> {
        let buffer = cqueue::buffer_select(event.flags());
        let more = cqueue::more(event.flags());
        if !current {
            if let Some(buffer) = buffer {
                self.buffers.put(buffer);
            }
            return Ok(None);
        }
        let result = event.result();
        if let (1.., Some(buffer)) = (result, buffer) {
            if !more {
                self.receive(number)?;
            }
            let chunk = Chunk { buffer, length: result as u32 };
            return Ok(Some(IoEvent::Received { number, chunk }));
        }
        if let Some(buffer) = buffer {
            self.buffers.put(buffer);
        }
        match -result {
            libc::ENOBUFS | libc::EINTR | libc::EAGAIN => {
                if !more {
                    self.receive(number)?;
                }
                Ok(None)
            }
            0 => Ok(Some(IoEvent::Closed { number, error: None })),
            error => Ok(Some(IoEvent::Closed { number, error: Some(Errno::from_raw_os_error(error)) })),
        }
    }
}

/// What an operation is told by.
fn tag(kind: u64, generation: u32, number: usize) -> u64 {
    kind << 56 | u64::from(generation & 0xff_ffff) << 32 | number as u64
}

/// Errors that a later call does not meet.
fn tolerate(error: &io::Error) -> Result<()> {
    match error.raw_os_error() {
        Some(libc::EINTR | libc::EBUSY | libc::EAGAIN | libc::ETIME) => Ok(()),
        Some(error) => Err(Errno::from_raw_os_error(error)),
        None => Err(Errno::IO),
    }
}

impl Io for Uring {
    fn open(&mut self, number: usize, socket: OwnedFd) -> Result<()> {
        let updated = self.ring.submitter().register_files_update(number as u32, &[socket.as_raw_fd()]);
        if let Err(error) = updated {
            tolerate(&error)?;
            return Err(Errno::AGAIN);
        }
        let entry = &mut self.sockets[number];
        entry.generation = (entry.generation + 1) & 0xff_ffff;
        entry.descriptor = Some(socket);
        self.receive(number)
    }

    fn close(&mut self, number: usize) {
        let socket = &mut self.sockets[number];
        let Some(descriptor) = socket.descriptor.take() else { return };
        // What was last to be sent goes to this socket, not to the next of its number.
        if !self.ring.submission().is_empty() {
            let _ = self.ring.submit();
        }
        socket.generation = (socket.generation + 1) & 0xff_ffff;
        // The kernel's operations on it end, and with them their hold on the socket.
        let _ = shutdown(&descriptor, Shutdown::Both);
        let _ = self.ring.submitter().register_files_update(number as u32, &[-1]);
        if socket.flight != Flight::None {
            self.abandoned[0].push(mem::take(&mut socket.outgoing));
        }
        socket.flight = Flight::None;
        socket.outgoing.clear();
        socket.staged.clear();
    }

    #[inline]
    fn outgoing(&mut self, number: usize, answered: bool) -> &mut Vec<u8> {
        let socket = &mut self.sockets[number];
        match socket.flight {
            Flight::None => &mut socket.outgoing,
            Flight::Quiet if answered => {
                socket.flight = Flight::None;
                socket.outgoing.clear();
                &mut socket.outgoing
            }
            Flight::Quiet | Flight::Reported => &mut socket.staged,
        }
    }

    #[inline]
    fn send(&mut self, number: usize, quiet: bool) -> Result<()> {
        let socket = &mut self.sockets[number];
        if socket.descriptor.is_none() {
            socket.outgoing.clear();
            return Ok(());
        }
        // What is staged is sent as soon as what is in flight has been.
        if socket.flight != Flight::None || socket.outgoing.is_empty() {
            return Ok(());
        }
        self.submit_send(number, quiet)
    }

    #[inline]
    fn wait(&mut self, only_look: bool) -> Result<()> {
        self.events.clear();
        self.next_event = 0;
        let entered = if only_look {
            let submitted = self.ring.submission().len() as u32;
            let flags = EnterFlags::GETEVENTS.bits();
            // Safety: no signal mask is given.
            unsafe { self.ring.submitter().enter::<libc::sigset_t>(submitted, 0, flags, None) }
        } else {
            self.ring.submit_and_wait(1)
        };
        if let Err(error) = entered {
            tolerate(&error)?;
        }
        self.events.extend(self.ring.completion());
        let [new, old] = &mut self.abandoned;
        if !(new.is_empty() && old.is_empty()) {
            old.clear();
            mem::swap(new, old);
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<Option<IoEvent>> {
        while let Some(event) = self.events.get(self.next_event) {
            self.next_event += 1;
            let event = event.clone();
            let data = event.user_data();
            let number = (data & 0xffff_ffff) as usize;
            match data >> 56 {
                kind @ (TIMER | WAKER) => {
                    if !cqueue::more(event.flags()) {
                        self.watch(kind)?;
                    }
                    return Ok(Some(if kind == TIMER { IoEvent::Timer } else { IoEvent::Woken }));
                }
                kind => {
                    let socket = &self.sockets[number];
                    let current = u64::from(socket.generation) == (data >> 32) & 0xff_ffff
                        && socket.descriptor.is_some();
                    if kind == SEND {
                        if current {
                            self.sent(number, event.result())?;
                        }
                    } else if let Some(io_event) = self.received(number, &event, current)? {
                        return Ok(Some(io_event));
                    }
                }
            }
        }
        Ok(None)
    }

    #[inline]
    fn bytes(&self, chunk: &Chunk) -> &[u8] {
        self.buffers.get(chunk.buffer, chunk.len().min(BUFFER))
    }

    #[inline]
    fn recycle(&mut self, chunk: Chunk) {
        self.buffers.put(chunk.buffer);
    }

    fn set_timer(&mut self, at_ns: u64) -> Result<()> {
        self.timer.set(at_ns)
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Nothing comes any more that the kernel could write into the buffers after they are gone.
        for socket in &mut self.sockets {
            if let Some(descriptor) = socket.descriptor.take() {
                let _ = shutdown(&descriptor, Shutdown::Both);
            }
        }
        let _ = self.wait(true);
    }
}
