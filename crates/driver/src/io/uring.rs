//! io_uring: multishot receives into provided buffers, fixed files, and one system call per round that submits all
//! sends and waits for the next events.
//!
//! Ownership of the bytes being sent follows from the kernel's completions alone, never from what a server sends: see
//! [`Flight`]. A send is first submitted so that it happens during its submission or not at all, and reports only what
//! it could not send: normally there is no completion, and the buffer is free when the submission has returned.
//!
//! Needs Linux 6.1 (provided buffer rings, multishot receive, deferred task running).

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use io_uring::types::{CancelBuilder, Fixed, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::{Errno, Result};
use rustix::net::{SendFlags, Shutdown, shutdown};

use super::timer::Timer;
use super::{Chunk, Io, IoEvent, Waker};

mod buffers;

use buffers::{BUFFER, Buffers};

/// Kind of an operation, in the highest byte of its user data.
const RECEIVED: u64 = 0;
const SENT: u64 = 1;
const TIMER: u64 = 2;
const WAKER: u64 = 3;

/// Group id of the buffers.
const GROUP: u16 = 0;

/// A send that the kernel may continue on its own: it takes all bytes, or fails.
const SEND: i32 = (SendFlags::NOSIGNAL.bits() | libc::MSG_WAITALL as u32) as i32;

/// The same for a send that only happens when it is submitted: what the socket does not take then is reported.
const SEND_AT_ONCE: i32 = SEND | libc::MSG_DONTWAIT;

/// Time for the kernel to end all operations of a ring that is dropped.
const CANCEL_TIMEOUT: Timespec = Timespec::new().sec(5);

/// A ring and its sockets.
pub(crate) struct Uring {
    // Declared before the memory that the kernel writes and reads, so that it is dropped first.
    ring: IoUring,
    buffers: Buffers,
    sockets: Vec<Socket>,
    /// Buffers of closed sockets that the kernel may still read, and their sends' user data.
    abandoned: Vec<(u64, Vec<u8>)>,
    /// Increased by each wait after which all sends submitted until then have either happened or been reported.
    round: u64,
    /// Sockets with bytes to send once the kernel has taken those before.
    held: Vec<usize>,
    /// Completed sends of the last wait.
    sent: Vec<(u64, i32)>,
    events: Vec<cqueue::Entry>,
    next_event: usize,
    timer: Timer,
    waker: Waker,
}

#[derive(Default)]
struct Socket {
    descriptor: Option<OwnedFd>,
    /// Part of events, to distinguish those of an earlier socket with the same number.
    generation: u32,
    /// Bytes that the kernel is sending, or will send next.
    outgoing: Vec<u8>,
    /// Bytes to send after those.
    staged: Vec<u8>,
    flight: Flight,
}

/// Ownership of `outgoing`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Flight {
    /// Owned by the event loop.
    #[default]
    None,
    /// Owned by the kernel until the end of this round: a send that happens when it is submitted.
    AtOnce { round: u64 },
    /// Owned by the kernel until it reports that it has been sent.
    Reported,
}

impl Uring {
    /// A ring for sockets with numbers below `count`, for use by the thread that creates it.
    ///
    /// # Errors
    /// The kernel lacks a required feature, or does not allow io_uring.
    pub(crate) fn new(count: usize, waker: Waker) -> io::Result<Self> {
        let entries = (count * 2).next_power_of_two().clamp(64, 4096) as u32;
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_cqsize(entries * 4);
        // Saves an indirection, from Linux 6.6 on.
        let ring = builder.clone().setup_no_sqarray().build(entries).or_else(|_| builder.build(entries))?;
        // Saves the kernel a lookup with each call, from Linux 5.18 on.
        let _ = ring.submitter().register_ring_fd();
        let buffers = Buffers::register(&ring.submitter(), GROUP, count)?;
        ring.submitter().register_files_sparse(count.max(1) as u32)?;
        let mut uring = Self {
            ring,
            buffers,
            sockets: (0..count).map(|_| Socket::default()).collect(),
            abandoned: Vec::new(),
            round: 0,
            held: Vec::new(),
            sent: Vec::new(),
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

    /// Watches the timer or the waker.
    fn watch(&mut self, kind: u64) -> Result<()> {
        let descriptor = if kind == TIMER { self.timer.as_fd() } else { self.waker.as_fd() };
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
        self.push(&receive.user_data(tag(RECEIVED, generation, number)))
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) -> Result<()> {
        // Safety: buffers of an entry are neither moved nor changed before the kernel no longer uses them: see `Flight`,
        // `abandoned` and `drop`; descriptors are open or, if fixed, owned by the ring.
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

    /// Submits a send of `outgoing`, which happens at once or is reported.
    #[inline]
    fn submit_send(&mut self, number: usize, at_once: bool) -> Result<()> {
        let socket = &mut self.sockets[number];
        let mut flags = squeue::Flags::FIXED_FILE;
        if at_once {
            flags |= squeue::Flags::SKIP_SUCCESS;
            socket.flight = Flight::AtOnce { round: self.round };
        } else {
            socket.flight = Flight::Reported;
        }
        let (start, length) = (socket.outgoing.as_ptr(), socket.outgoing.len() as u32);
        let send = opcode::Send::new(Fixed(number as u32), start, length);
        let send = send.flags(if at_once { SEND_AT_ONCE } else { SEND }).build();
        let send = send.flags(flags).user_data(tag(SENT, socket.generation, number));
        self.push(&send)
    }

    /// Handles the completion of a send: one that has not happened at once, or a later one.
    #[cold]
    fn handle_sent(&mut self, data: u64, result: i32) -> Result<()> {
        let number = number(data);
        let socket = &mut self.sockets[number];
        if data != tag(SENT, socket.generation, number) || socket.descriptor.is_none() {
            self.abandoned.retain(|(of, _)| *of != data);
            return Ok(());
        }
        socket.flight = Flight::None;
        match usize::try_from(result) {
            Ok(sent) => drop(socket.outgoing.drain(..sent.min(socket.outgoing.len()))),
            Err(_) if matches!(-result, libc::EAGAIN | libc::EINTR) => {}
            // The other side's last bytes are still to be read, and its end is reported.
            Err(_) => {
                socket.outgoing.clear();
                socket.staged.clear();
            }
        }
        if socket.outgoing.is_empty() {
            mem::swap(&mut socket.outgoing, &mut socket.staged);
        }
        if socket.outgoing.is_empty() { Ok(()) } else { self.submit_send(number, false) }
    }

    /// Takes back the buffers of the sends that have happened at once, and sends what is staged.
    #[cold]
    fn release_held(&mut self) -> Result<()> {
        for number in mem::take(&mut self.held) {
            let socket = &mut self.sockets[number];
            match socket.flight {
                Flight::AtOnce { round } if round < self.round => {}
                // It was reported after all, or the socket is closed.
                Flight::None | Flight::Reported => continue,
                Flight::AtOnce { .. } => {
                    self.held.push(number);
                    continue;
                }
            }
            socket.flight = Flight::None;
            socket.outgoing.clear();
            mem::swap(&mut socket.outgoing, &mut socket.staged);
            if !socket.outgoing.is_empty() {
                self.submit_send(number, true)?;
            }
        }
        Ok(())
    }

    /// Handles the result of a receive.
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

/// User data of an operation.
fn tag(kind: u64, generation: u32, number: usize) -> u64 {
    kind << 56 | u64::from(generation & 0xff_ffff) << 32 | number as u64
}

/// The socket of user data.
fn number(data: u64) -> usize {
    (data & 0xffff_ffff) as usize
}

/// Ignores errors that do not affect a later call.
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
        // Pending sends must go to this socket, not to the next one with its number.
        while !self.ring.submission().is_empty() && self.submit().is_ok() {}
        let submitted = self.ring.submission().is_empty();
        let socket = &mut self.sockets[number];
        let data = tag(SENT, socket.generation, number);
        socket.generation = (socket.generation + 1) & 0xff_ffff;
        // Ends the kernel's operations on the socket, and with them their references to it.
        let _ = shutdown(&descriptor, Shutdown::Both);
        let _ = self.ring.submitter().register_files_update(number as u32, &[-1]);
        let in_flight = match mem::take(&mut socket.flight) {
            Flight::None => false,
            Flight::AtOnce { .. } => !submitted,
            Flight::Reported => true,
        };
        if in_flight {
            self.abandoned.push((data, mem::take(&mut socket.outgoing)));
        }
        socket.outgoing.clear();
        socket.staged.clear();
    }

    #[inline]
    fn outgoing(&mut self, number: usize) -> &mut Vec<u8> {
        let socket = &mut self.sockets[number];
        match socket.flight {
            Flight::None => &mut socket.outgoing,
            // With nothing staged, which must be sent first.
            Flight::AtOnce { round } if round < self.round && socket.staged.is_empty() => {
                socket.flight = Flight::None;
                socket.outgoing.clear();
                &mut socket.outgoing
            }
            Flight::AtOnce { .. } | Flight::Reported => &mut socket.staged,
        }
    }

    #[inline]
    fn send(&mut self, number: usize) -> Result<()> {
        let socket = &mut self.sockets[number];
        if socket.descriptor.is_none() {
            socket.outgoing.clear();
            return Ok(());
        }
        match socket.flight {
            Flight::None if socket.outgoing.is_empty() => Ok(()),
            Flight::None => self.submit_send(number, true),
            // A server has answered before the kernel has taken the bytes, or more is sent than what it answers.
            Flight::AtOnce { .. } => {
                self.held.push(number);
                Ok(())
            }
            // The completion sends the staged bytes.
            Flight::Reported => Ok(()),
        }
    }

    #[inline]
    fn wait(&mut self, poll_only: bool) -> Result<()> {
        self.events.clear();
        self.next_event = 0;
        // Bytes that are held have to be sent right after this round.
        let entered = if poll_only || !self.held.is_empty() {
            let submitted = self.ring.submission().len() as u32;
            let flags = EnterFlags::GETEVENTS.bits();
            // Safety: no signal mask is passed.
            unsafe { self.ring.submitter().enter::<libc::sigset_t>(submitted, 0, flags, None) }
        } else {
            self.ring.submit_and_wait(1)
        };
        if let Err(error) = entered {
            tolerate(&error)?;
        }
        // Sends before everything else: what is received may be an answer to one that has not happened.
        for event in self.ring.completion() {
            if event.user_data() >> 56 == SENT {
                self.sent.push((event.user_data(), event.result()));
            } else {
                self.events.push(event);
            }
        }
        if self.ring.submission().is_empty() && !self.ring.submission().cq_overflow() {
            self.round += 1;
        }
        if !self.sent.is_empty() {
            let mut sent = mem::take(&mut self.sent);
            for (data, result) in sent.drain(..) {
                self.handle_sent(data, result)?;
            }
            self.sent = sent;
        }
        if !self.held.is_empty() {
            self.release_held()?;
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<Option<IoEvent>> {
        while let Some(event) = self.events.get(self.next_event) {
            self.next_event += 1;
            let event = event.clone();
            let data = event.user_data();
            let number = number(data);
            match data >> 56 {
                kind @ (TIMER | WAKER) => {
                    if !cqueue::more(event.flags()) {
                        self.watch(kind)?;
                    }
                    return Ok(Some(if kind == TIMER { IoEvent::Timer } else { IoEvent::Woken }));
                }
                _ => {
                    let socket = &self.sockets[number];
                    let current = u64::from(socket.generation) == (data >> 32) & 0xff_ffff
                        && socket.descriptor.is_some();
                    if let Some(io_event) = self.received(number, &event, current)? {
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
        // Ends the operations on them, as far as they wait for the other side.
        for socket in &mut self.sockets {
            if let Some(descriptor) = socket.descriptor.take() {
                let _ = shutdown(&descriptor, Shutdown::Both);
            }
        }
        // Closing the ring would not wait for them.
        let cancelled =
            self.ring.submitter().register_sync_cancel(Some(CANCEL_TIMEOUT), CancelBuilder::any());
        if cancelled.is_err_and(|error| error.raw_os_error() != Some(libc::ENOENT)) {
            // The kernel may still use this memory.
            self.buffers.leak();
            for socket in &mut self.sockets {
                mem::forget(mem::take(&mut socket.outgoing));
            }
            mem::forget(mem::take(&mut self.abandoned));
        }
    }
}
