//! Opening the connections of one thread's clients, all at the same time: connect, log in, prepare.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;

use model::message::{Connection, Endpoint};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, ipproto, recv,
    send, socket_with, sockopt,
};
use wire::{Login, LoginError, Reader, Startup};

use crate::clock;
use crate::error::LoadError;
use crate::poll::{Happening, Interest, Poll};

/// How long it may take to connect all clients.
const TIMEOUT_S: u64 = 10;

/// How long to wait before a server that is too busy to accept is asked again.
const RETRY_NS: u64 = 5_000_000;

/// SQLSTATE of a server that will let clients in soon.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// Where and as whom to connect, with its addresses looked up.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Its name in messages.
    name: String,
    addresses: Vec<Address>,
    startup: Startup,
}

#[derive(Clone, Debug)]
enum Address {
    Unix(SocketAddrUnix),
    Tcp(SocketAddr),
}

impl Server {
    /// Looks up a server's addresses, which may take its time.
    pub(crate) fn find(connection: &Connection) -> Result<Self, LoadError> {
        let (name, addresses) = match &connection.endpoint {
            Endpoint::Unix { directory, port } => {
                let path = format!("{directory}/.s.PGSQL.{port}");
                let address = SocketAddrUnix::new(path.as_str())
                    .map_err(|source| LoadError::SocketPath { path: path.clone(), source })?;
                (format!("the server at socket {path}"), vec![Address::Unix(address)])
            }
            Endpoint::Tcp { host, port } => {
                let found = (host.as_str(), *port)
                    .to_socket_addrs()
                    .map_err(|source| LoadError::Resolve { host: host.clone(), source })?;
                (format!("the server at {host}, port {port}"), found.map(Address::Tcp).collect())
            }
        };
        let Connection { user, database, password, .. } = connection.clone();
        Ok(Self { name, addresses, startup: Startup { user, database, password } })
    }

    fn connect_error(&self, source: Errno) -> LoadError {
        LoadError::Connect { server: self.name.clone(), source }
    }

    fn login_error(&self, source: LoginError) -> LoadError {
        let Startup { user, database, .. } = self.startup.clone();
        LoadError::Login { server: self.name.clone(), user, database, source: Box::new(source) }
    }
}

/// Opens `count` connections, on each of which `preparation` has been sent and answered. They are in the poll set under
/// the numbers from 0. None if [`Happening::Woken`] came in between.
pub(crate) fn open(
    poll: &mut Poll,
    server: &Server,
    count: usize,
    script: &str,
    preparation: &[u8],
) -> Result<Option<Vec<OwnedFd>>, LoadError> {
    let mut opening = Opening {
        poll,
        server,
        script,
        preparation,
        ready: 0,
        attempts: (0..count).map(|_| Attempt::default()).collect(),
        buffer: vec![0; 16 * 1024],
        last_reason: "no answer".to_owned(),
    };
    if opening.run()? { opening.finish().map(Some) } else { Ok(None) }
}

struct Opening<'a> {
    poll: &'a mut Poll,
    server: &'a Server,
    script: &'a str,
    preparation: &'a [u8],
    attempts: Vec<Attempt>,
    /// How many of the attempts have succeeded.
    ready: usize,
    buffer: Vec<u8>,
    /// Why a connection was last put off.
    last_reason: String,
}

/// One connection on its way.
#[derive(Default)]
struct Attempt {
    socket: Option<OwnedFd>,
    stage: Stage,
    /// Which of the server's addresses is next.
    address: usize,
    unsent: Vec<u8>,
}

#[derive(Default)]
enum Stage {
    /// To be tried, or tried again.
    #[default]
    Waiting,
    Connecting,
    LoggingIn(Login),
    Preparing(Reader),
    Ready,
}

impl Opening<'_> {
    /// False if it was interrupted.
    fn run(&mut self) -> Result<bool, LoadError> {
        let deadline_ns = clock::now_ns() + TIMEOUT_S * 1_000_000_000;
        while self.ready < self.attempts.len() {
            for number in 0..self.attempts.len() {
                if matches!(self.attempts[number].stage, Stage::Waiting) {
                    self.attempt(number)?;
                }
            }
            let now_ns = clock::now_ns();
            if now_ns >= deadline_ns {
                return Err(LoadError::ConnectTimeout {
                    server: self.server.name.clone(),
                    seconds: TIMEOUT_S,
                    last: self.last_reason.clone(),
                });
            }
            self.poll.set_timer(now_ns + RETRY_NS)?;
            if !self.until_timer()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Handles what happens until the timer runs out or all connections are ready. False if it was interrupted.
    fn until_timer(&mut self) -> Result<bool, LoadError> {
        let mut expired = false;
        while !expired && self.ready < self.attempts.len() {
            for at in 0..self.poll.wait(false)? {
                match self.poll.happening(at) {
                    Happening::Woken => return Ok(false),
                    Happening::Timer => expired = true,
                    Happening::Socket { number, .. } => self.go_on(number)?,
                }
            }
        }
        Ok(true)
    }

    /// Begins to connect to the server's address that is the attempt's next.
    fn attempt(&mut self, number: usize) -> Result<(), LoadError> {
        let attempt = &mut self.attempts[number];
        let Some(address) = self.server.addresses.get(attempt.address) else {
            return Err(self.server.connect_error(Errno::ADDRNOTAVAIL));
        };
        match start_connecting(address) {
            Ok(socket) => {
                self.poll.add(&socket, number, Interest::ReadWrite)?;
                attempt.socket = Some(socket);
                attempt.stage = Stage::Connecting;
                Ok(())
            }
            Err(error) => self.cannot_connect(number, error),
        }
    }

    /// Goes on to the next address, puts the attempt off, or gives up.
    fn cannot_connect(&mut self, number: usize, error: Errno) -> Result<(), LoadError> {
        let attempt = &mut self.attempts[number];
        attempt.socket = None;
        attempt.stage = Stage::Waiting;
        attempt.address += 1;
        if attempt.address < self.server.addresses.len() {
            return self.attempt(number);
        }
        attempt.address = 0;
        // A backlog that is full: of a Unix socket the first, of TCP the second.
        if !matches!(error, Errno::AGAIN | Errno::CONNREFUSED) {
            return Err(self.server.connect_error(error));
        }
        self.last_reason = error.to_string();
        Ok(())
    }

    /// Something has happened to a connection.
    fn go_on(&mut self, number: usize) -> Result<(), LoadError> {
        let attempt = &mut self.attempts[number];
        let Some(socket) = &attempt.socket else { return Ok(()) };
        if matches!(attempt.stage, Stage::Connecting) {
            // A Unix socket is connected at once, and TCP when it becomes writable.
            match sockopt::socket_error(socket)? {
                Err(error) => return self.cannot_connect(number, error),
                Ok(()) if rustix::net::getpeername(socket).is_err() => return Ok(()),
                Ok(()) => {}
            }
            let login = Login::start(self.server.startup.clone(), &mut attempt.unsent);
            attempt.stage = Stage::LoggingIn(login.map_err(|error| self.server.login_error(error))?);
        }
        self.flush(number)?;
        self.receive(number)
    }

    fn flush(&mut self, number: usize) -> Result<(), LoadError> {
        let Attempt { socket, unsent, .. } = &mut self.attempts[number];
        let Some(socket) = socket else { return Ok(()) };
        while !unsent.is_empty() {
            match send(&*socket, unsent, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(unsent.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // A server that closes says why: that is still to be read.
                Err(Errno::PIPE | Errno::CONNRESET) => unsent.clear(),
                Err(error) => return Err(self.server.connect_error(error)),
            }
        }
        Ok(())
    }

    fn receive(&mut self, number: usize) -> Result<(), LoadError> {
        loop {
            let Some(socket) = &self.attempts[number].socket else { return Ok(()) };
            let received = match recv(socket, self.buffer.as_mut_slice(), RecvFlags::empty()) {
                Ok((_, 0)) | Err(Errno::CONNRESET) => {
                    return Err(LoadError::ClosedInLogin { server: self.server.name.clone() });
                }
                Ok((_, received)) => received,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(self.server.connect_error(error)),
            };
            let mut at = 0;
            while at < received {
                match self.take(number, at, received)? {
                    Some(taken) => at += taken,
                    None => return Ok(()),
                }
            }
            self.flush(number)?;
        }
    }

    /// Takes bytes from the buffer. None if the attempt has to begin anew.
    fn take(&mut self, number: usize, from: usize, to: usize) -> Result<Option<usize>, LoadError> {
        let attempt = &mut self.attempts[number];
        let bytes = &self.buffer[from..to];
        match &mut attempt.stage {
            Stage::LoggingIn(login) => match login.feed(bytes, &mut attempt.unsent) {
                Ok((taken, None)) => Ok(Some(taken)),
                Ok((taken, Some(_session))) => {
                    attempt.unsent.extend_from_slice(self.preparation);
                    attempt.stage = Stage::Preparing(Reader::default());
                    if self.preparation.is_empty() {
                        attempt.stage = Stage::Ready;
                        self.ready += 1;
                    }
                    Ok(Some(taken))
                }
                Err(LoginError::Refused(error)) if error.code() == Some(CANNOT_CONNECT_NOW) => {
                    self.last_reason = error.to_string();
                    *attempt = Attempt::default();
                    Ok(None)
                }
                Err(error) => Err(self.server.login_error(error)),
            },
            Stage::Preparing(reader) => {
                let (taken, answer) = reader.feed(bytes)?;
                if answer.is_some() {
                    if let Some(source) = reader.take_error() {
                        let (script, source) = (self.script.to_owned(), Box::new(source));
                        return Err(LoadError::Prepare { script, source });
                    }
                    attempt.stage = Stage::Ready;
                    self.ready += 1;
                }
                Ok(Some(taken))
            }
            // Notices that come after the end; the end of the connection will be seen by who uses it.
            Stage::Ready | Stage::Waiting | Stage::Connecting => Ok(Some(bytes.len())),
        }
    }

    /// Hands over the connections, watched as those of running clients.
    fn finish(self) -> Result<Vec<OwnedFd>, LoadError> {
        let mut sockets = Vec::with_capacity(self.attempts.len());
        for (number, attempt) in self.attempts.into_iter().enumerate() {
            let socket = attempt
                .socket
                .ok_or_else(|| LoadError::Internal("a connection is ready and has no socket".to_owned()))?;
            self.poll.change(&socket, number, Interest::Read)?;
            sockets.push(socket);
        }
        Ok(sockets)
    }
}

fn start_connecting(address: &Address) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connected = |socket: OwnedFd, result| match result {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    };
    match address {
        Address::Unix(path) => {
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            let result = connect(&socket, path);
            connected(socket, result)
        }
        Address::Tcp(address) => {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            let result = connect(&socket, address);
            connected(socket, result)
        }
    }
}
