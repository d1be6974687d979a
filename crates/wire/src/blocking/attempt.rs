//! Connection attempts: hosts, their addresses, with and without TLS, in libpq's order.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::time::Instant;

use crate::{
    ConnectParams, Encryption, Established, Handshake, Host, LoginError, SessionInfo, Tls, TlsContext,
    TlsError,
};
use rustix::net::sockopt;

use super::RECEIVE_BUFFER;
use super::stream::{Address, Stream};

/// SQLSTATE of a wrong password.
const INVALID_PASSWORD: &str = "28P01";

/// Where a session is: the number of its host, and the address.
pub(super) struct Place {
    host: usize,
    endpoint: Endpoint,
}

/// An established session.
pub(super) struct Connected {
    pub(super) stream: Stream,
    pub(super) tls: Option<Box<Tls>>,
    pub(super) info: SessionInfo,
    pub(super) place: Place,
    /// Bytes received already, decrypted.
    pub(super) input: Vec<u8>,
}

/// Connects to the first host with a suitable session; otherwise returns all attempts.
pub(super) fn connect(
    params: &ConnectParams,
    tls: Option<&TlsContext>,
) -> Result<Connected, Vec<FailedAttempt>> {
    let mut failed = Vec::new();
    let below = |count: usize| (RandomState::new().build_hasher().finish() % count as u64) as usize;
    let order = params.host_order(below);
    let second_pass = params.second_pass();
    for params in std::iter::once(params).chain(&second_pass) {
        for &number in &order {
            let mut endpoints = match endpoints(&params.hosts[number]) {
                Ok(endpoints) => endpoints,
                Err(attempt) => {
                    failed.push(attempt);
                    continue;
                }
            };
            if params.load_balance_hosts {
                crate::shuffle(&mut endpoints, below);
            }
            for endpoint in &endpoints {
                match connect_to(params, number, endpoint, tls, &mut failed) {
                    Ok(connected) => return Ok(connected),
                    Err(cause) => failed.push(FailedAttempt { server: endpoint.to_string(), cause }),
                }
                if !failed.last().is_some_and(FailedAttempt::allows_next_host) {
                    return Err(failed);
                }
            }
        }
    }
    Err(failed)
}

/// Connects to one address, perhaps twice: without and with TLS.
fn connect_to(
    params: &ConnectParams,
    host: usize,
    endpoint: &Endpoint,
    tls: Option<&TlsContext>,
    failed: &mut Vec<FailedAttempt>,
) -> Result<Connected, AttemptError> {
    let mut fallback = None;
    loop {
        let attempt = Attempt::new(params, host, endpoint, tls);
        match attempt.and_then(|attempt| attempt.log_in(fallback)) {
            Err(AttemptError::Login(LoginError::Retry { encryption, cause })) => {
                let cause = AttemptError::Login(*cause);
                failed.push(FailedAttempt { server: endpoint.to_string(), cause });
                fallback = Some(encryption);
            }
            Err(AttemptError::Login(LoginError::Rejected(error)))
                if error.code() == Some(INVALID_PASSWORD) && params.hosts[host].password_from_file =>
            {
                let file = params.password_file.as_ref().map(|file| file.display().to_string());
                let error = LoginError::Rejected(error);
                return Err(AttemptError::Password(error, file.unwrap_or_default()));
            }
            done => return done,
        }
    }
}

/// Sends a cancel request, and waits until the server has processed it.
pub(super) fn cancel(
    params: &ConnectParams,
    Place { host, endpoint }: &Place,
    tls: Option<&TlsContext>,
    encryption: Encryption,
    session: &SessionInfo,
) -> Result<(), FailedAttempt> {
    let attempt = Attempt::new(params, *host, endpoint, tls);
    match attempt.and_then(|attempt| attempt.cancel(encryption, session)) {
        Err(cause) => Err(FailedAttempt { server: endpoint.to_string(), cause }),
        Ok(()) => Ok(()),
    }
}

/// A failed connection attempt.
#[derive(Debug)]
pub struct FailedAttempt {
    server: String,
    cause: AttemptError,
}

#[derive(Debug)]
enum AttemptError {
    /// The name cannot be resolved.
    Resolve(String, io::Error),
    Connect(io::Error),
    TimedOut,
    Login(LoginError),
    Password(LoginError, String),
}

impl fmt::Display for FailedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, cause } = self;
        if let AttemptError::Resolve(name, error) = cause {
            return write!(f, "could not translate host name \"{name}\" to address: {error}");
        }
        write!(f, "connection to server {server} failed: ")?;
        match cause {
            AttemptError::Resolve(..) => Ok(()),
            AttemptError::Connect(error) => {
                let error = error.to_string();
                let error = error.split(" (os error").next().unwrap_or_default();
                write!(f, "{error}\n\tIs the server running {}?", self.location_hint())
            }
            AttemptError::TimedOut => write!(f, "timeout expired"),
            AttemptError::Login(error) => f.write_str(&error.libpq_text()),
            AttemptError::Password(error, file) => {
                let error = error.libpq_text();
                write!(f, "{error}\npassword retrieved from file \"{file}\"")
            }
        }
    }
}

impl FailedAttempt {
    /// Whether it failed for lack of a password.
    pub(super) fn needs_password(&self) -> bool {
        matches!(self.cause, AttemptError::Login(LoginError::PasswordMissing { .. }))
    }

    /// Whether it failed because the server can't be reached at present.
    pub(super) fn is_unreachable(&self) -> bool {
        match &self.cause {
            AttemptError::Resolve(..) | AttemptError::TimedOut => true,
            AttemptError::Connect(error) => crate::is_unreachable(error),
            AttemptError::Login(error) | AttemptError::Password(error, _) => error.is_unreachable(),
        }
    }

    /// The socket's error, if that is the cause.
    pub(super) fn io_error(&self) -> Option<&io::Error> {
        match &self.cause {
            AttemptError::Resolve(_, error) | AttemptError::Connect(error) => Some(error),
            AttemptError::TimedOut | AttemptError::Login(_) | AttemptError::Password(..) => None,
        }
    }

    fn location_hint(&self) -> &'static str {
        if self.server.starts_with("on socket") {
            "locally and accepting connections on that socket"
        } else {
            "on that host and accepting TCP/IP connections"
        }
    }

    /// Whether to try the next address or host.
    fn allows_next_host(&self) -> bool {
        match &self.cause {
            AttemptError::Resolve(..) | AttemptError::Connect(_) | AttemptError::TimedOut => true,
            AttemptError::Password(..) => false,
            AttemptError::Login(error) => error.allows_next_host(),
        }
    }
}

/// An address of a host, with its name in messages.
#[derive(Clone)]
struct Endpoint {
    name: String,
    address: Address,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Unix(_) => write!(f, "on socket \"{}\"", self.name),
            Address::Tcp(address) if self.name == address.ip().to_string() => {
                write!(f, "at \"{}\", port {}", self.name, address.port())
            }
            Address::Tcp(address) => {
                write!(f, "at \"{}\" ({}), port {}", self.name, address.ip(), address.port())
            }
        }
    }
}

/// The addresses of a host.
fn endpoints(host: &Host) -> Result<Vec<Endpoint>, FailedAttempt> {
    if let Some(path) = host.socket_path() {
        let address = match path.strip_prefix('@') {
            Some(name) => UnixAddr::from_abstract_name(name),
            None => UnixAddr::from_pathname(&path),
        };
        return match address {
            Ok(address) => Ok(vec![Endpoint { name: path, address: Address::Unix(address) }]),
            Err(error) => Err(FailedAttempt {
                server: format!("on socket \"{path}\""),
                cause: AttemptError::Connect(error),
            }),
        };
    }
    let name = match host.hostaddr {
        Some(address) if host.host.is_empty() => address.to_string(),
        _ => host.host.clone(),
    };
    let endpoint = |address| Endpoint { name: name.clone(), address: Address::Tcp(address) };
    if let Some(address) = host.hostaddr {
        return Ok(vec![endpoint(SocketAddr::new(address, host.port))]);
    }
    match (host.host.as_str(), host.port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.map(endpoint).collect()),
        Err(error) => {
            let cause = AttemptError::Resolve(host.host.clone(), error);
            Err(FailedAttempt { server: String::new(), cause })
        }
    }
}

/// A connection during its handshake.
struct Attempt<'a> {
    params: &'a ConnectParams,
    host: usize,
    endpoint: &'a Endpoint,
    tls: Option<&'a TlsContext>,
    stream: Stream,
    deadline: Option<Instant>,
}

impl<'a> Attempt<'a> {
    fn new(
        params: &'a ConnectParams,
        host: usize,
        endpoint: &'a Endpoint,
        tls: Option<&'a TlsContext>,
    ) -> Result<Self, AttemptError> {
        let deadline = params.connect_timeout.map(|timeout| Instant::now() + timeout);
        let stream = Stream::connect(params, &endpoint.address).map_err(|error| match error.kind() {
            ErrorKind::TimedOut if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                AttemptError::TimedOut
            }
            _ => AttemptError::Connect(error),
        })?;
        if let Stream::Unix(stream) = &stream {
            let peer =
                sockopt::socket_peercred(stream).map_err(|error| AttemptError::Connect(error.into()))?;
            params.check_peer(peer.uid.as_raw()).map_err(AttemptError::Login)?;
        }
        Ok(Self { params, host, endpoint, tls, stream, deadline })
    }

    /// Starts a session. `fallback` is the encryption of a second attempt.
    fn log_in(self, fallback: Option<Encryption>) -> Result<Connected, AttemptError> {
        let Self { params, host, tls, .. } = self;
        let mut output = Vec::new();
        let handshake = match fallback {
            None => Handshake::start(params, host, self.stream.transport(), tls, &mut output),
            Some(encryption) => Handshake::start_over(params, host, tls, encryption, &mut output),
        };
        self.run(handshake.map_err(AttemptError::Login)?, output)
    }

    /// Sends a cancel request.
    fn cancel(self, encryption: Encryption, session: &SessionInfo) -> Result<(), AttemptError> {
        let mut output = Vec::new();
        let handshake = Handshake::cancel(self.params, self.host, self.tls, encryption, session, &mut output);
        match self.run(handshake.map_err(AttemptError::Login)?, output) {
            Err(AttemptError::Login(LoginError::Closed | LoginError::Tls(TlsError::Closed))) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => {
                let problem = "a session in response to a cancel request".to_owned();
                Err(AttemptError::Login(LoginError::Protocol(problem)))
            }
        }
    }

    /// Performs the handshake, whose first bytes are `output`.
    fn run(mut self, mut handshake: Handshake, mut output: Vec<u8>) -> Result<Connected, AttemptError> {
        let mut buffer = vec![0; RECEIVE_BUFFER];
        loop {
            self.send(&mut output)?;
            let length = self.receive(&mut buffer)?;
            if length == 0 {
                return Err(AttemptError::Login(handshake.closed()));
            }
            let result = handshake.feed(&buffer[..length], &mut output);
            let (taken, established) = result.map_err(|error| {
                // Report the cause to the server.
                let _ = self.stream.send(&output);
                AttemptError::Login(error)
            })?;
            let Some(Established { session, mut tls }) = established else { continue };
            self.send(&mut output)?;
            let mut input = buffer[taken..length].to_vec();
            if let Some(tls) = &mut tls {
                tls.decrypt(&[], &mut input).map_err(|error| AttemptError::Login(error.into()))?;
            }
            self.stream.set_timeout(None).map_err(AttemptError::Connect)?;
            let place = Place { host: self.host, endpoint: self.endpoint.clone() };
            return Ok(Connected { stream: self.stream, tls, info: session, place, input });
        }
    }

    fn send(&mut self, output: &mut Vec<u8>) -> Result<(), AttemptError> {
        let sent = self.stream.send(output);
        output.clear();
        match sent {
            // A closing server sends the reason: it is still to be read.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Ok(())
            }
            sent => sent.map_err(AttemptError::Connect),
        }
    }

    /// Returns 0 if the server has closed the connection.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, AttemptError> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(AttemptError::TimedOut);
            }
            self.stream.set_timeout(Some(left)).map_err(AttemptError::Connect)?;
        }
        match self.stream.receive(buffer) {
            Ok(length) => Ok(length),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(0),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(AttemptError::TimedOut)
            }
            Err(error) => Err(AttemptError::Connect(error)),
        }
    }
}
