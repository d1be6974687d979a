//! The sockets: one thread and one epoll, for as many connections as open files are allowed.

use std::fs;
use std::io::{self, ErrorKind};
use std::mem;
use std::net::{Ipv4Addr, TcpListener};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, listen, recv, send};

use crate::session::Session;

/// Clients that may wait to be accepted; the kernel's own default limit is 4096.
const BACKLOG: i32 = 4096;
/// Events per call.
const EVENTS: usize = 1024;
/// Bytes read per call; a transaction of pgbench sends some 60.
const BUFFER: usize = 16 << 10;
/// The client sends no more.
const HANGUP: epoll::EventFlags =
    epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);
/// Pause between two pieces, and before retrying a client that does not read.
const PAUSE: Duration = Duration::from_millis(1);

/// The listening sockets. Dropping removes them.
pub struct Listener {
    unix: UnixListener,
    path: PathBuf,
    tcp: TcpListener,
    port: u16,
}

impl Listener {
    /// Listens at this port of 127.0.0.1, a free one if it is 0, and at the socket of that port in this directory.
    ///
    /// # Errors
    /// Another process listens there, or the directory is not writable.
    pub fn bind(directory: &Path, port: u16) -> io::Result<Self> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = tcp.local_addr()?.port();
        let path = directory.join(format!(".s.PGSQL.{port}"));
        let unix = match UnixListener::bind(&path) {
            // Left by a server that was killed.
            Err(error) if error.kind() == ErrorKind::AddrInUse && UnixStream::connect(&path).is_err() => {
                fs::remove_file(&path)?;
                UnixListener::bind(&path)?
            }
            bound => bound?,
        };
        let listener = Self { unix, path, tcp, port };
        listener.unix.set_nonblocking(true)?;
        listener.tcp.set_nonblocking(true)?;
        // Again, with a backlog for a thousand clients that connect at once.
        listen(&listener.unix, BACKLOG)?;
        listen(&listener.tcp, BACKLOG)?;
        Ok(listener)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves until one of `stops` becomes readable, its end included. With `piece`, responses are sent in pieces of at
    /// most this many bytes, a millisecond apart.
    ///
    /// # Errors
    /// The limit on open files is reached, or epoll fails.
    pub fn serve(self, piece: Option<NonZeroUsize>, stops: &[BorrowedFd<'_>]) -> io::Result<()> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let watch = |file: BorrowedFd<'_>, flags| {
            epoll::add(&epoll, file, epoll::EventData::new_u64(index_of(file) as u64), flags)
        };
        watch(self.unix.as_fd(), epoll::EventFlags::IN)?;
        watch(self.tcp.as_fd(), epoll::EventFlags::IN)?;
        for &stop in stops {
            match watch(stop, epoll::EventFlags::IN) {
                // A regular file or /dev/null, which is always readable: no signal to stop.
                Err(Errno::PERM) => {}
                watched => watched?,
            }
        }
        let pause = Timespec::try_from(PAUSE).map_err(io::Error::other)?;
        let mut connections = Connections::new(piece);
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            let timeout = connections.has_late().then_some(&pause);
            match epoll::wait(&epoll, spare_capacity(&mut events), timeout) {
                Err(Errno::INTR) => continue,
                waited => waited?,
            };
            connections.serve_late();
            for epoll::Event { data, flags } in events.iter().copied() {
                let index = data.u64() as usize;
                // If the client sends no more, its last bytes and its end may arrive as one event.
                let to_the_end = flags.intersects(HANGUP);
                if connections.serve(index, to_the_end).is_some() {
                    continue;
                }
                if stops.iter().any(|&stop| index_of(stop) == index) {
                    return Ok(());
                }
                while let Some(client) = self.accept(index)? {
                    watch(client.as_fd(), epoll::EventFlags::IN | epoll::EventFlags::ET | HANGUP)?;
                    connections.add(client);
                }
            }
        }
    }

    /// The next client that waits at a listening socket, if `index` is one of the two.
    fn accept(&self, index: usize) -> io::Result<Option<OwnedFd>> {
        let accepted = if index == index_of(self.unix.as_fd()) {
            self.unix.accept().and_then(|(client, _)| {
                client.set_nonblocking(true)?;
                Ok(client.into())
            })
        } else if index == index_of(self.tcp.as_fd()) {
            self.tcp.accept().and_then(|(client, _)| {
                client.set_nonblocking(true)?;
                client.set_nodelay(true)?;
                Ok(client.into())
            })
        } else {
            return Ok(None);
        };
        match accepted {
            Ok(client) => Ok(Some(client)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            // Closed before it was accepted.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Fails only if it has already been removed.
        let _ = fs::remove_file(&self.path);
    }
}

/// The index of a file in events: its descriptor, which is small, as the kernel assigns the lowest that is free.
fn index_of(file: BorrowedFd<'_>) -> usize {
    // A borrowed descriptor is never negative.
    file.as_raw_fd() as usize
}

/// All connections, and the buffers to serve them.
struct Connections {
    /// By descriptor.
    slots: Vec<Option<Connection>>,
    /// Connections with unsent bytes, and when they are next served.
    late: Vec<usize>,
    due: Instant,
    /// Maximum number of bytes sent per call.
    piece: usize,
    received: Vec<u8>,
    answers: Vec<u8>,
}

struct Connection {
    client: OwnedFd,
    session: Session,
    unsent: Vec<u8>,
    /// Whether to close it when everything is sent.
    ends: bool,
}

impl Connections {
    fn new(piece: Option<NonZeroUsize>) -> Self {
        Self {
            slots: Vec::new(),
            late: Vec::new(),
            due: Instant::now(),
            piece: piece.map_or(usize::MAX, NonZeroUsize::get),
            received: vec![0; BUFFER],
            answers: Vec::new(),
        }
    }

    fn add(&mut self, client: OwnedFd) {
        let index = index_of(client.as_fd());
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let (session, unsent) = (Session::default(), Vec::new());
        self.slots[index] = Some(Connection { client, session, unsent, ends: false });
    }

    fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Serves a connection that has an event, if there is one of that index.
    fn serve(&mut self, index: usize, to_the_end: bool) -> Option<()> {
        let connection = self.slots.get(index)?.as_ref()?;
        // A late connection is read when everything is sent.
        if connection.unsent.is_empty() && self.turn(index, to_the_end) {
            if self.late.is_empty() {
                self.due = Instant::now() + PAUSE;
            }
            self.late.push(index);
        }
        Some(())
    }

    /// Serves late connections when they are due.
    fn serve_late(&mut self) {
        if self.late.is_empty() || Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + PAUSE;
        let mut late = mem::take(&mut self.late);
        // Their events were skipped.
        late.retain(|&index| self.turn(index, true));
        self.late = late;
    }

    /// Sends and receives as much as possible; returns whether anything is left to send.
    fn turn(&mut self, index: usize, to_the_end: bool) -> bool {
        let Some(slot) = self.slots.get_mut(index) else { return false };
        let Some(connection) = slot else { return false };
        let flow = connection.turn(to_the_end, self.piece, &mut self.received, &mut self.answers);
        if flow.is_break() {
            *slot = None;
            return false;
        }
        !connection.unsent.is_empty()
    }
}

impl Connection {
    /// Breaks if the connection is to be closed.
    fn turn(
        &mut self,
        to_the_end: bool,
        piece: usize,
        received: &mut [u8],
        answers: &mut Vec<u8>,
    ) -> ControlFlow<()> {
        if !self.unsent.is_empty() {
            let unsent = mem::take(&mut self.unsent);
            self.send(&unsent, piece)?;
        }
        while self.unsent.is_empty() {
            if self.ends {
                return ControlFlow::Break(());
            }
            let length = match recv(&self.client, &mut *received, RecvFlags::empty()) {
                Ok((_, 0)) => return ControlFlow::Break(()),
                Ok((_, length)) => length,
                Err(Errno::AGAIN) => return ControlFlow::Continue(()),
                Err(Errno::INTR) => continue,
                Err(_) => return ControlFlow::Break(()),
            };
            answers.clear();
            self.ends = self.session.answer(&received[..length], answers).is_break();
            self.send(answers, piece)?;
            // Later bytes cause another event.
            if length < received.len() && !self.ends && !to_the_end {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    /// Sends a piece of the responses and keeps the rest. Breaks if the client is gone.
    fn send(&mut self, answers: &[u8], piece: usize) -> ControlFlow<()> {
        if answers.is_empty() {
            return ControlFlow::Continue(());
        }
        let sent = match send(&self.client, &answers[..answers.len().min(piece)], SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return ControlFlow::Break(()),
        };
        self.unsent.extend_from_slice(&answers[sent..]);
        ControlFlow::Continue(())
    }
}
