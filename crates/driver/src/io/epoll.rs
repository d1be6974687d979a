//! Edge-triggered epoll: works everywhere. A socket that is the only one is received from directly while it owes an
//! answer, which saves a system call and the set's part in each arrival.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{Errno, Result, ioctl_fionbio};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::timer::Timer;
use super::{Chunk, Io, IoEvent, Waker};
use crate::clock;

/// Maximum number of events per call.
const BATCH: usize = 1024;

/// Maximum number of bytes received per call.
const BUFFER: usize = 64 * 1024;

/// Full buffers in a row after which the other sockets are served.
const FULL_BUFFERS: u32 = 4;

/// Longest wait for the answer of the only socket in a receive, which neither the timer nor the waker ends.
const PATIENCE: Duration = Duration::from_millis(10);

const SEND: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;

/// Watched events of a socket: bytes to read, and its end.
const READ: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// An epoll set and its sockets.
pub(crate) struct Epoll {
    epoll: OwnedFd,
    timer: Timer,
    timer_ns: u64,
    waker: Waker,
    events: Vec<epoll::Event>,
    next_event: usize,
    /// What the only socket's direct receive returned.
    direct: Option<IoEvent>,
    sockets: Vec<Socket>,
    received: Box<[u8]>,
    outgoing: Vec<u8>,
    /// The socket being read, and the number of buffers that it may still fill.
    reading: Option<(usize, u32)>,
    /// Sockets that may have more to read.
    unread: Vec<usize>,
    /// Number of them left by the last round.
    unread_before: usize,
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
    /// Whether nothing was received since the last send.
    owes_answer: bool,
    /// Whether a receive waits, for [`PATIENCE`].
    blocks: bool,
}

impl Epoll {
    /// A set for sockets with numbers below `count`.
    pub(crate) fn new(count: usize, waker: Waker) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = Timer::new()?;
        // Edge-triggered, neither has to be read: each expiry and each wake is an edge.
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, timer.as_fd(), EventData::new_u64(TIMER), edge)?;
        epoll::add(&epoll, &waker, EventData::new_u64(WAKER), edge)?;
        Ok(Self {
            epoll,
            timer,
            timer_ns: u64::MAX,
            waker,
            events: Vec::with_capacity(BATCH),
            next_event: 0,
            direct: None,
            sockets: (0..count).map(|_| Socket::default()).collect(),
            received: vec![0; BUFFER].into_boxed_slice(),
            outgoing: Vec::with_capacity(4096),
            reading: None,
            unread: Vec::with_capacity(count),
            unread_before: 0,
        })
    }

    /// Reads from a socket.
    #[inline]
    fn receive(&mut self, number: usize, flags: RecvFlags, buffers_left: u32) -> Option<IoEvent> {
        let socket = &mut self.sockets[number];
        let descriptor = socket.descriptor.as_ref()?;
        socket.owes_answer = false;
        loop {
            return match recv(descriptor, &mut *self.received, flags) {
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

    /// Waits for the only socket's answer, if there is one to come and the timer is not due before it is given up.
    /// Returns whether the wait is over.
    #[inline]
    fn wait_directly(&mut self) -> Result<bool> {
        let [socket] = &mut *self.sockets else { return Ok(false) };
        let until_ns = || clock::now_ns().saturating_add(PATIENCE.as_nanos() as u64);
        if !socket.owes_answer || self.unread_before > 0 || self.waker.take() || until_ns() > self.timer_ns {
            return Ok(false);
        }
        if !socket.blocks {
            let Some(descriptor) = &socket.descriptor else { return Ok(false) };
            set_socket_timeout(descriptor, Timeout::Recv, Some(PATIENCE))?;
            ioctl_fionbio(descriptor, false)?;
            socket.blocks = true;
        }
        self.direct = self.receive(0, RecvFlags::empty(), FULL_BUFFERS);
        Ok(self.direct.is_some() && !self.waker.take())
    }

    /// Sends the unsent bytes of a socket.
    #[cold]
    fn flush(&mut self, number: usize) -> Result<()> {
        let socket = &mut self.sockets[number];
        let Some(descriptor) = &socket.descriptor else { return Ok(()) };
        while !socket.unsent.is_empty() {
            match send(descriptor, &socket.unsent, SEND) {
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
        entry.owes_answer = false;
        entry.blocks = false;
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
            match send(descriptor, &self.outgoing, SEND) {
                Ok(sent) => sent,
                Err(Errno::AGAIN | Errno::INTR | Errno::NOTCONN) => 0,
                // As in `flush`.
                Err(_) => self.outgoing.len(),
            }
        } else {
            0
        };
        socket.owes_answer = sent == self.outgoing.len();
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
        if !poll_only && self.wait_directly()? {
            return Ok(());
        }
        let poll_only = poll_only || self.unread_before > 0 || self.direct.is_some();
        let timeout = poll_only.then_some(&IMMEDIATELY);
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn next(&mut self) -> Result<Option<IoEvent>> {
        if let Some(event) = self.direct.take() {
            return Ok(Some(event));
        }
        loop {
            if let Some((number, buffers_left)) = self.reading.take() {
                if let Some(event) = self.receive(number, RecvFlags::DONTWAIT, buffers_left) {
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
        self.timer_ns = at_ns;
        self.timer.set(at_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    /// A set with the only socket, and its other side.
    fn alone() -> (Epoll, Waker, UnixStream) {
        let waker = Waker::new().unwrap();
        let mut io = Epoll::new(1, waker.clone()).unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        io.open(0, ours.into()).unwrap();
        (io, waker, theirs)
    }

    fn send(io: &mut Epoll, bytes: &[u8]) {
        io.outgoing(0).extend_from_slice(bytes);
        io.send(0).unwrap();
    }

    /// Waits once, and closes a socket that has ended, as loops do. Returns the bytes received and the other events.
    fn wait(io: &mut Epoll) -> (Vec<u8>, Vec<IoEvent>) {
        io.wait(false).unwrap();
        let (mut received, mut others) = (Vec::new(), Vec::new());
        while let Some(event) = io.next().unwrap() {
            match event {
                IoEvent::Received { number: 0, chunk } => {
                    received.extend_from_slice(io.bytes(&chunk));
                    io.recycle(chunk);
                }
                event => {
                    if let IoEvent::Closed { number, .. } = event {
                        io.close(number);
                    }
                    others.push(event);
                }
            }
        }
        (received, others)
    }

    #[test]
    fn an_answer_that_takes_longer_than_a_receive_waits_arrives() {
        let (mut io, _waker, mut theirs) = alone();
        for delay in [Duration::ZERO, PATIENCE * 3] {
            send(&mut io, b"question");
            let server = thread::spawn(move || {
                theirs.read_exact(&mut [0; 8]).unwrap();
                thread::sleep(delay);
                theirs.write_all(b"answer").unwrap();
                theirs
            });
            let mut received = Vec::new();
            while received.is_empty() {
                let (bytes, others) = wait(&mut io);
                assert_eq!(others, []);
                received = bytes;
            }
            assert_eq!(received, b"answer");
            theirs = server.join().unwrap();
        }
    }

    #[test]
    fn a_timer_expires_while_an_answer_is_owed() {
        let (mut io, _waker, _theirs) = alone();
        for after in [Duration::ZERO, PATIENCE / 2, PATIENCE * 2] {
            send(&mut io, b"question");
            let at_ns = clock::now_ns() + after.as_nanos() as u64;
            io.set_timer(at_ns).unwrap();
            while wait(&mut io) != (Vec::new(), vec![IoEvent::Timer]) {
                assert!(clock::now_ns() < at_ns + 10_000_000_000, "no event after {after:?}");
            }
            assert!(clock::now_ns() >= at_ns);
        }
    }

    #[test]
    fn a_wake_is_seen_before_the_next_answer_is_waited_for() {
        let (mut io, waker, mut theirs) = alone();
        // The socket's first event is that it is connected.
        send(&mut io, b"question");
        theirs.write_all(b"answer").unwrap();
        assert_eq!(wait(&mut io), (b"answer".to_vec(), vec![]));
        // Both there before the wait, during it, and none.
        waker.wake();
        send(&mut io, b"question");
        theirs.write_all(b"answer").unwrap();
        assert_eq!(wait(&mut io), (b"answer".to_vec(), vec![IoEvent::Woken]));
        send(&mut io, b"question");
        let server = thread::spawn(move || {
            thread::sleep(PATIENCE / 4);
            waker.wake();
            theirs.write_all(b"answer").unwrap();
            theirs
        });
        let (mut received, mut woken) = (Vec::new(), Vec::new());
        while received.is_empty() {
            let (bytes, others) = wait(&mut io);
            received.extend(bytes);
            woken.extend(others);
        }
        assert_eq!((received, woken), (b"answer".to_vec(), vec![IoEvent::Woken]));
        let mut theirs = server.join().unwrap();
        send(&mut io, b"question");
        theirs.write_all(b"answer").unwrap();
        assert_eq!(wait(&mut io), (b"answer".to_vec(), vec![]));
    }

    #[test]
    fn a_long_answer_and_the_end_of_the_connection_are_read_to_the_end() {
        let (mut io, _waker, mut theirs) = alone();
        send(&mut io, b"question");
        let answer: Vec<u8> = (0..10 * BUFFER).map(|at| (at / 7) as u8).collect();
        let expected = answer.clone();
        let server = thread::spawn(move || {
            theirs.read_exact(&mut [0; 8]).unwrap();
            theirs.write_all(&answer).unwrap();
        });
        let mut received = Vec::new();
        loop {
            let (bytes, others) = wait(&mut io);
            received.extend(bytes);
            if !others.is_empty() {
                assert_eq!(others, [IoEvent::Closed { number: 0, error: None }]);
                break;
            }
        }
        assert!(received == expected, "{} of {} bytes", received.len(), expected.len());
        server.join().unwrap();
        // A socket with the number of an earlier one is received from as well.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        io.open(0, ours.into()).unwrap();
        send(&mut io, b"question");
        theirs.write_all(b"answer").unwrap();
        assert_eq!(wait(&mut io), (b"answer".to_vec(), vec![]));
    }
}
