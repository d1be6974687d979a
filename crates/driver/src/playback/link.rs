//! The connection of a played session: addresses, login, TLS.

use rustix::io::Errno;
use wire::{Encryption, Handshake, LoginError, Reader, Tls, TlsFlow};

use crate::clock;
use crate::connect::{CONNECT_TIMEOUT_NS, Server};
use crate::io::{Chunk, Io};

/// A connection, from its first attempt to its end.
#[derive(Default)]
pub(super) struct Link {
    /// Index of the address being tried.
    address: usize,
    /// Until when it is tried, once it is.
    until_ns: Option<u64>,
    /// Why it is tried again.
    not_ready: Option<String>,
    /// Encryption to use, if the last attempt has shown that the planned one can't be used.
    retry: Option<Encryption>,
    /// Whether all addresses have been tried, so that any session is acceptable.
    second_pass: bool,
    handshake: Option<Handshake>,
    tls: Option<Box<Tls>>,
    pub(super) reader: Reader,
    /// Process id of its backend, once it is open.
    pub(super) pid: i32,
    /// Errors of the attempts so far.
    failures: Vec<String>,
    /// Decrypted input and output to be encrypted.
    plain_in: Vec<u8>,
    plain_out: Vec<u8>,
}

/// State of a connection that is being opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// The server's response is awaited.
    Waiting,
    /// The server can't take it yet.
    TryLater,
    /// The session has begun.
    Open,
    /// It can't be opened: the reasons.
    Failed(String),
}

impl Link {
    /// Tries the current address, or else the next ones.
    pub(super) fn dial(
        &mut self,
        number: usize,
        application: Option<&str>,
        server: &Server,
        io: &mut impl Io,
    ) -> Result<Opening, Errno> {
        loop {
            let Some(address) = server.addresses.get(self.address) else {
                if server.second_pass.is_some() && !self.second_pass {
                    self.second_pass = true;
                    self.address = 0;
                    continue;
                }
                return Ok(Opening::Failed(self.failures.join("\n")));
            };
            let now_ns = clock::now_ns();
            let timeout_ns = server.params.connect_timeout.map(|timeout| timeout.as_nanos() as u64);
            let until_ns = now_ns.saturating_add(timeout_ns.unwrap_or(CONNECT_TIMEOUT_NS));
            if now_ns >= *self.until_ns.get_or_insert(until_ns) {
                let failure = self.not_ready.take();
                let failure = failure.unwrap_or_else(|| address.failure("timeout expired", None).text);
                self.next_address_after(failure);
                continue;
            }
            let mut params = match &server.second_pass {
                Some(params) if self.second_pass => params,
                _ => &server.params,
            };
            let mut named;
            if let Some(application) = application {
                named = params.clone();
                named.application_name = Some(application.to_owned());
                params = &named;
            }
            match server.dial(address) {
                Ok(socket) => {
                    io.open(number, socket)?;
                    let tls = server.tls.as_ref();
                    let out = io.outgoing(number);
                    let handshake = match self.retry {
                        None => Handshake::start(params, address.host, address.transport(), tls, out),
                        Some(with) => Handshake::start_over(params, address.host, tls, with, out),
                    };
                    match handshake {
                        Ok(handshake) => self.handshake = Some(handshake),
                        Err(error) => {
                            io.close(number);
                            return Ok(Opening::Failed(address.login_failure(&error).text));
                        }
                    }
                    io.send(number)?;
                    return Ok(Opening::Waiting);
                }
                Err(Errno::AGAIN) => {
                    self.not_ready = Some(address.refused(Errno::AGAIN).text);
                    return Ok(Opening::TryLater);
                }
                Err(error) => self.next_address_after(address.refused(error).text),
            }
        }
    }

    /// When to try the next address, of the one that is being tried.
    pub(super) fn deadline_ns(&self) -> u64 {
        self.until_ns.unwrap_or(u64::MAX)
    }

    /// Whether its session has not begun.
    pub(super) fn is_opening(&self) -> bool {
        self.handshake.is_some()
    }

    /// Takes bytes of the login. [`Opening::TryLater`] asks for [`Link::dial`].
    pub(super) fn log_in(
        &mut self,
        number: usize,
        chunk: &Chunk,
        server: &Server,
        io: &mut impl Io,
    ) -> Result<Opening, Errno> {
        let Some(handshake) = &mut self.handshake else { return Ok(Opening::Waiting) };
        let mut answer = Vec::new();
        let fed = handshake.feed(io.bytes(chunk), &mut answer);
        if !answer.is_empty() {
            io.outgoing(number).extend_from_slice(&answer);
            io.send(number)?;
        }
        match fed {
            Ok((_, None)) => Ok(Opening::Waiting),
            Ok((_, Some(established))) => {
                self.handshake = None;
                self.pid = established.session.process_id;
                self.tls = established.tls;
                self.reader = Reader::default();
                if let Some(tls) = &mut self.tls {
                    // Received with the login's last bytes: a setting's new value at most.
                    self.plain_in.clear();
                    let decrypted = tls.decrypt(&[], &mut self.plain_in).map_err(|error| error.to_string());
                    let fed = decrypted.and_then(|_| {
                        self.reader.feed(&self.plain_in).map(drop).map_err(|error| error.to_string())
                    });
                    if let Err(reason) = fed {
                        return Ok(Opening::Failed(reason));
                    }
                }
                Ok(Opening::Open)
            }
            Err(error) => {
                io.close(number);
                Ok(self.login_failed(error, server))
            }
        }
    }

    /// The end of a connection that was being opened.
    pub(super) fn closed_in_login(&mut self, error: Option<Errno>, server: &Server) -> Opening {
        let Some(mut handshake) = self.handshake.take() else { return Opening::TryLater };
        match error {
            None => {
                let closed = handshake.closed();
                self.login_failed(closed, server)
            }
            Some(error) => {
                if let Some(address) = server.addresses.get(self.address) {
                    self.next_address_after(address.refused(error).text);
                }
                Opening::TryLater
            }
        }
    }

    fn login_failed(&mut self, error: LoginError, server: &Server) -> Opening {
        self.handshake = None;
        let Some(address) = server.addresses.get(self.address) else { return Opening::TryLater };
        match error {
            LoginError::Retry { encryption, cause } => {
                self.failures.push(address.login_failure(&cause).text);
                self.retry = Some(encryption);
                Opening::TryLater
            }
            error if error.is_not_ready() => {
                self.not_ready = Some(address.login_failure(&error).text);
                Opening::TryLater
            }
            error => {
                self.next_address_after(address.login_failure(&error).text);
                match error.allows_next_host() {
                    true => Opening::TryLater,
                    false => Opening::Failed(self.failures.join("\n")),
                }
            }
        }
    }

    fn next_address_after(&mut self, failure: String) {
        self.failures.push(failure);
        self.address += 1;
        self.handshake = None;
        (self.until_ns, self.not_ready, self.retry) = (None, None, None);
    }

    /// Sends what `write` appends.
    pub(super) fn send(
        &mut self,
        number: usize,
        io: &mut impl Io,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Result<(), String>, Errno> {
        let out = io.outgoing(number);
        match &mut self.tls {
            None => write(out),
            Some(tls) => {
                self.plain_out.clear();
                write(&mut self.plain_out);
                if let Err(error) = tls.encrypt(&self.plain_out, out) {
                    return Ok(Err(error.to_string()));
                }
            }
        }
        io.send(number).map(Ok)
    }

    /// The decrypted bytes of a chunk, which are the link's until [`Link::give_back`].
    pub(super) fn decrypted(&mut self, bytes: &[u8]) -> Option<Result<Vec<u8>, String>> {
        let tls = self.tls.as_mut()?;
        let mut plain = std::mem::take(&mut self.plain_in);
        plain.clear();
        // The end of the connection follows that of TLS.
        Some(match tls.decrypt(bytes, &mut plain) {
            Ok(TlsFlow::Open | TlsFlow::Closed) => Ok(plain),
            Err(error) => Err(error.to_string()),
        })
    }

    pub(super) fn give_back(&mut self, plain: Vec<u8>) {
        self.plain_in = plain;
    }
}
