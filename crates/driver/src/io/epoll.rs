//! Edge-triggered epoll: works everywhere.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{Errno, Result};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::timer::Timer;
use super::{Chunk, Io, IoEvent, Waker};

/// Maximum number of events per call.
const BATCH: usize = 1024;

/// Maximum number of bytes received per call.
const BUFFER: usize = 64 * 1024;

/// Full buffers in a row after which the other sockets are served.
const FULL_BUFFERS: u32 = 4;

const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;

/// Watched events of a socket: bytes to read, and its end.
const READ: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// An epoll set and its sockets.
pub(crate) struct Epoll {
    epoll: OwnedFd,
    timer: Timer,
    events: Vec<epoll::Event>,
    next_event: usize,
    sockets: Vec<Socket>,
    received: Box<[u8]>,
    outgoing: Vec<u8>,
    /// The socket being read, and the number of buffers that it may still fill.
    reading: Option<(usize, u32)>,
    /// Sockets that may have more to read.
    unread: Vec<usize>,
    /// Number of them left by the last round.
    unread_before: usize,
    // Keeps its descriptor open as long as the set watches it.
    _waker: Waker,
}

#[derive(Default)]
struct Socket {
    descriptor: Option<OwnedFd>,
    /// Part of events, to distinguish those of an earlier socket with the same number.
    generation: u32,
    /// Bytes that did not fit into the socket's buffer.
    unsent: Vec<u8>,
    /// No further events will occur: read to the end.
    hangup: bool,
    is_unread: bool,
}

impl Epoll {
    /// A set for sockets with numbers below `count`.
    pub(crate) fn new(count: usize, waker: Waker) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = Timer::new()?;
        // Edge-triggered, neither has to be read: each expiry and each wake is an edge.
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, timer.as_fd(), EventData::new_u64(TIMER), edge)?;
        epoll::add(&epoll, &*waker.0, EventData::new_u64(WAKER), edge)?;
        Ok(Self {
            epoll,
            timer,
            events: Vec::with_capacity(BATCH),
            next_event: 0,
            sockets: (0..count).map(|_| Socket::default()).collect(),
            received: vec![0; BUFFER].into_boxed_slice(),
            outgoing: Vec::with_capacity(4096),
            reading: None,
            unread: Vec::with_capacity(count),
            unread_before: 0,
            _waker: waker,
        })
    }

    /// Reads from a socket.
    #[inline]
    fn receive(&mut self, number: usize, buffers_left: u32) -> Option<IoEvent> {
        let socket = &mut self.sockets[number];
        let descriptor = socket.descriptor.as_ref()?;
        loop {
            return match recv(descriptor, &mut *self.received, RecvFlags::empty()) {
                Ok((_, 0)) => Some(IoEvent::Closed { number, error: None }),
                Ok((_, received)) => {
                    // A socket that did not fill the buffer is empty, and its next bytes cause an event; after a hangup
                    // nothing does.
                    if received == BUFFER || socket.hangup {
                        if buffers_left > 1 {
                            self.reading = Some((number, buffers_left - 1));
                        } else if !socket.is_unread {
                            socket.is_unread = true;
                            self.unread.push(number);
                        }
                    }
                    Some(IoEvent::Received { number, chunk: Chunk { buffer: 0, length: received as u32 } })
                }
                Err(Errno::AGAIN) => None,
                Err(Errno::INTR) => continue,
                Err(error) => Some(IoEvent::Closed { number, error: Some(error) }),
            };
        }
    }

    /// Sends the unsent bytes of a socket.
    #[cold]
    fn flush(&mut self, number: usize) -> Result<()> {
        let socket = &mut self.sockets[number];
        let Some(descriptor) = &socket.descriptor else { return Ok(()) };
        while !socket.unsent.is_empty() {
            match send(descriptor, &socket.unsent, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(socket.unsent.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                // The other side's last bytes are still to be read, and its end causes an event.
                Err(_) => socket.unsent.clear(),
            }
        }
        let data = event_data(number, socket.generation);
        watch(&self.epoll, descriptor.as_fd(), data, READ)
    }
}

/// Changes the watched events of a socket. Conditions that already hold are reported again.
fn watch(epoll: &OwnedFd, socket: BorrowedFd<'_>, data: EventData, flags: EventFlags) -> Result<()> {
    epoll::modify(epoll, socket, data, flags)
}

fn event_data(number: usize, generation: u32) -> EventData {
    EventData::new_u64(u64::from(generation) << 32 | number as u64)
}

impl Io for Epoll {
    fn open(&mut self, number: usize, socket: OwnedFd) -> Result<()> {
        let entry = &mut self.sockets[number];
        // The mask keeps the data different from those of the timer and the waker.
        entry.generation = (entry.generation + 1) & 0x7fff_ffff;
        entry.unsent.clear();
        entry.hangup = false;
        // A socket becomes writable when it is connected, so that is watched at first, too.
        epoll::add(&self.epoll, &socket, event_data(number, entry.generation), READ | EventFlags::OUT)?;
        entry.descriptor = Some(socket);
        Ok(())
    }

    fn close(&mut self, number: usize) {
        self.sockets[number].descriptor = None;
    }

    #[inline]
    fn outgoing(&mut self, _number: usize) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    #[inline]
    fn send(&mut self, number: usize) -> Result<()> {
        let socket = &mut self.sockets[number];
        let Some(descriptor) = &socket.descriptor else {
            self.outgoing.clear();
            return Ok(());
        };
        let sent = if socket.unsent.is_empty() {
            match send(descriptor, &self.outgoing, SendFlags::NOSIGNAL) {
                Ok(sent) => sent,
                Err(Errno::AGAIN | Errno::INTR | Errno::NOTCONN) => 0,
                // As in `flush`.
                Err(_) => self.outgoing.len(),
            }
        } else {
            0
        };
        if sent < self.outgoing.len() {
            let all_before = socket.unsent.is_empty();
            socket.unsent.extend_from_slice(&self.outgoing[sent..]);
            if all_before {
                let data = event_data(number, socket.generation);
                // Every byte that the server takes causes an event: watched only while bytes are unsent.
                watch(&self.epoll, descriptor.as_fd(), data, READ | EventFlags::OUT)?;
            }
        }
        self.outgoing.clear();
        Ok(())
    }

    #[inline]
    fn wait(&mut self, poll_only: bool) -> Result<()> {
        const IMMEDIATELY: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.events.clear();
        self.next_event = 0;
        self.unread_before = self.unread.len();
        let timeout = (poll_only || self.unread_before > 0).then_some(&IMMEDIATELY);
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn next(&mut self) -> Result<Option<IoEvent>> {
        loop {
            if let Some((number, buffers_left)) = self.reading.take() {
                if let Some(event) = self.receive(number, buffers_left) {
                    return Ok(Some(event));
                }
                continue;
            }
            let Some(event) = self.events.get(self.next_event) else {
                if self.unread_before == 0 {
                    return Ok(None);
                }
                self.unread_before -= 1;
                let number = self.unread.swap_remove(self.unread_before);
                self.sockets[number].is_unread = false;
                self.reading = Some((number, FULL_BUFFERS));
                continue;
            };
            self.next_event += 1;
            let (flags, data) = (event.flags, event.data.u64());
            match data {
                TIMER => return Ok(Some(IoEvent::Timer)),
                WAKER => return Ok(Some(IoEvent::Woken)),
                _ => {}
            }
            let number = (data & 0xffff_ffff) as usize;
            let socket = &mut self.sockets[number];
            if u64::from(socket.generation) != data >> 32 {
                continue;
            }
            socket.hangup |= flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
            if flags.contains(EventFlags::OUT) {
                self.flush(number)?;
            }
            if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
                self.reading = Some((number, FULL_BUFFERS));
            }
        }
    }

    #[inline]
    fn bytes(&self, chunk: &Chunk) -> &[u8] {
        &self.received[..chunk.len()]
    }

    #[inline]
    fn recycle(&mut self, _chunk: Chunk) {}

    fn set_timer(&mut self, at_ns: u64) -> Result<()> {
        self.timer.set(at_ns)
    }
}
