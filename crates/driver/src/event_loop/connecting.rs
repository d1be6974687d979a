//! Connecting clients: before the load, many at a time; during it, one by one.

use std::mem;

use model::outage::Outage;
use rustix::io::Errno;
use wire::{Handshake, LoginError, Reader};

use super::EventLoop;
use crate::client::{Attempt, CancelKey, ConnectFailure, State};
use crate::clock;
use crate::connect::{CONNECT_TIMEOUT_NS, REDIAL_INTERVAL_NS, Server};
use crate::error::LoadError;
use crate::io::{Chunk, Io};

/// Clients of one thread that connect at the same time before the load: no more than a server's backlog takes.
const MAX_CONNECTING: usize = 128;

/// Progress of connecting the clients.
#[derive(Default)]
pub(super) struct Progress {
    /// Whether the load has not begun.
    before_load: bool,
    /// Clients that have started to connect.
    begun: usize,
    ready: usize,
    /// Time at which the last one became ready.
    last_ns: u64,
    /// The server's last reason for not accepting a client.
    last_reason: String,
    /// Process ids of the backends of clients outside the main group.
    background: Vec<i32>,
}

impl<'a, I: Io> EventLoop<'a, I> {
    /// Connects all clients. Returns false after a stop.
    pub(crate) fn connect_all(&mut self) -> Result<bool, LoadError> {
        self.connecting.before_load = true;
        self.connecting.last_ns = clock::now_ns();
        let count = self.clients.len();
        while self.connecting.ready < count {
            while self.connecting.begun < count
                && self.connecting.begun - self.connecting.ready < MAX_CONNECTING
            {
                let at = self.connecting.begun;
                self.connecting.begun += 1;
                self.connect(at, false)?;
            }
            if self.connecting.ready == count {
                break;
            }
            self.set_connect_timer()?;
            self.io.wait(false)?;
            let woken_ns = clock::now_ns();
            self.handle(woken_ns)?;
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
            if self.stop.is_requested() {
                return Ok(false);
            }
            if woken_ns > self.connecting.last_ns + CONNECT_TIMEOUT_NS {
                return Err(LoadError::ConnectTimeout {
                    server: self.servers[0].addresses[0].name.clone(),
                    ready: self.connecting.ready,
                    seconds: CONNECT_TIMEOUT_NS / 1_000_000_000,
                    last: match mem::take(&mut self.connecting.last_reason) {
                        reason if reason.is_empty() => "no response".to_owned(),
                        reason => reason,
                    },
                });
            }
        }
        self.connecting.before_load = false;
        Ok(true)
    }

    /// Whether the clients are still being connected for the load.
    pub(super) fn is_before_load(&self) -> bool {
        self.connecting.before_load
    }

    /// Process ids of the backends of clients outside the main group, once all are connected.
    pub(crate) fn background(&mut self) -> Vec<i32> {
        mem::take(&mut self.connecting.background)
    }

    fn set_connect_timer(&mut self) -> Result<(), LoadError> {
        let alarm_ns = self.timers.next_ns().unwrap_or(u64::MAX);
        self.io.set_timer(alarm_ns.min(self.connecting.last_ns + CONNECT_TIMEOUT_NS + 1))?;
        self.timer_ns = 0;
        Ok(())
    }

    /// The server of a client.
    pub(super) fn server_of(&self, at: usize) -> &'a Server {
        &self.servers[self.clients[at].group as usize]
    }

    /// Starts connecting a client, which then begins the transaction that waits for the session, if one does.
    pub(super) fn connect(&mut self, at: usize, for_transaction: bool) -> Result<(), LoadError> {
        let from_ns = clock::now_ns();
        let attempt = Attempt { from_ns, for_transaction, ..Attempt::default() };
        self.clients[at].attempt = Some(Box::new(attempt));
        self.dial(at)
    }

    /// Tries the current address of a client's attempt, or else the next ones.
    pub(super) fn dial(&mut self, at: usize) -> Result<(), LoadError> {
        let server = self.server_of(at);
        loop {
            let client = &mut self.clients[at];
            let Some(attempt) = &mut client.attempt else { return Ok(()) };
            let Some(address) = server.addresses.get(attempt.address) else {
                if server.second_pass.is_some() && !mem::replace(&mut attempt.second_pass, true) {
                    attempt.address = 0;
                    continue;
                }
                return self.connect_failed(at, None);
            };
            let params = match &server.second_pass {
                Some(params) if attempt.second_pass => params,
                _ => &server.params,
            };
            let mut named;
            let params = match &self.program.groups[client.group as usize].application_name {
                None => params,
                name => {
                    named = params.clone();
                    named.application_name.clone_from(name);
                    &named
                }
            };
            let now_ns = clock::now_ns();
            attempt.dialled_ns = now_ns;
            match server.dial(address) {
                Ok(socket) => {
                    self.io.open(at, socket)?;
                    client.state = State::Connecting;
                    if let Some(timeout) = server.params.connect_timeout {
                        self.timers.set(at, now_ns.saturating_add(timeout.as_nanos() as u64));
                    }
                    let out = self.io.outgoing(at);
                    let tls = server.tls.as_ref();
                    let handshake = match attempt.retry {
                        None => Handshake::start(params, address.host, address.transport(), tls, out),
                        Some(with) => Handshake::start_over(params, address.host, tls, with, out),
                    };
                    match handshake {
                        Ok(handshake) => attempt.handshake = Some(handshake),
                        Err(error) => return self.connect_failed(at, Some(error)),
                    }
                    self.io.send(at)?;
                    return Ok(());
                }
                Err(Errno::AGAIN) => {
                    "the server's accept queue is full".clone_into(&mut self.connecting.last_reason);
                    return self.redial(at);
                }
                Err(error) => {
                    attempt.failures.push(address.refused(error));
                    attempt.address += 1;
                    attempt.retry = None;
                }
            }
        }
    }

    /// Tries the same address again after a short pause.
    fn redial(&mut self, at: usize) -> Result<(), LoadError> {
        self.io.close(at);
        self.clients[at].state = State::Redialling;
        self.timers.set(at, clock::now_ns() + REDIAL_INTERVAL_NS);
        Ok(())
    }

    /// Handles an address that does not respond in time.
    pub(super) fn dial_timed_out(&mut self, at: usize) -> Result<(), LoadError> {
        self.unreachable(at, "timeout expired")
    }

    /// Handles an address that cannot be connected to, or that closes the connection during the login.
    #[cold]
    pub(super) fn dial_failed(&mut self, at: usize, error: Option<Errno>) -> Result<(), LoadError> {
        let server = self.server_of(at);
        let Some(attempt) = &mut self.clients[at].attempt else { return Ok(()) };
        let address = &server.addresses[attempt.address];
        match (error, &mut attempt.handshake) {
            (None, Some(handshake)) => match handshake.closed() {
                retry @ LoginError::Retry { .. } => self.login_failed(at, retry),
                closed => self.next_address(at, &closed),
            },
            (Some(error), _) => {
                let failure = address.refused(error);
                self.next_address_after(at, failure)
            }
            (None, None) => self.unreachable(at, "the connection was closed"),
        }
    }

    /// Tries the next address after one that can't be reached.
    fn unreachable(&mut self, at: usize, why: &str) -> Result<(), LoadError> {
        let Some(attempt) = &self.clients[at].attempt else { return Ok(()) };
        let failure = self.server_of(at).addresses[attempt.address].failure(why, Some(Outage::Unreachable));
        self.next_address_after(at, failure)
    }

    /// Tries the next address after a login that failed.
    fn next_address(&mut self, at: usize, error: &LoginError) -> Result<(), LoadError> {
        let Some(attempt) = &self.clients[at].attempt else { return Ok(()) };
        let failure = self.server_of(at).addresses[attempt.address].login_failure(error);
        self.next_address_after(at, failure)
    }

    fn next_address_after(&mut self, at: usize, failure: ConnectFailure) -> Result<(), LoadError> {
        if let Some(attempt) = &mut self.clients[at].attempt {
            attempt.failures.push(failure);
            attempt.address += 1;
            attempt.retry = None;
        }
        self.hang_up(at);
        self.dial(at)
    }

    fn hang_up(&mut self, at: usize) {
        self.timers.cancel(at);
        self.io.close(at);
        if let Some(attempt) = &mut self.clients[at].attempt {
            attempt.handshake = None;
        }
    }

    /// Handles bytes received for a client whose session has not begun.
    #[cold]
    pub(super) fn received_in_login(&mut self, at: usize, chunk: &Chunk) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        let Some(attempt) = &mut client.attempt else { return Ok(()) };
        let Some(handshake) = &mut attempt.handshake else { return Ok(()) };
        let mut answer = Vec::new();
        let fed = handshake.feed(self.io.bytes(chunk), &mut answer);
        if !answer.is_empty() {
            self.io.outgoing(at).extend_from_slice(&answer);
            self.io.send(at)?;
        }
        match fed {
            Ok((_, None)) => Ok(()),
            // A server sends nothing on its own between the login and the first query; see `connected` for TLS.
            Ok((_, Some(established))) => {
                if client.group > 0 {
                    let process_id = established.session.process_id;
                    if self.connecting.before_load {
                        self.connecting.background.push(process_id);
                    }
                    let secret = established.session.secret_key;
                    let key = CancelKey { address: attempt.address, process_id, secret };
                    client.cancel_key = Some(Box::new(key));
                }
                client.tls = established.tls;
                self.connected(at)
            }
            Err(error) if error.is_not_ready() => {
                self.connecting.last_reason = error.to_string();
                self.redial(at)
            }
            Err(error) => self.login_failed(at, error),
        }
    }

    /// Handles a login that failed on this connection.
    fn login_failed(&mut self, at: usize, error: LoginError) -> Result<(), LoadError> {
        match error {
            LoginError::Retry { encryption, cause } => {
                let server = self.server_of(at);
                if let Some(attempt) = &mut self.clients[at].attempt {
                    let address = &server.addresses[attempt.address];
                    attempt.failures.push(address.login_failure(&cause));
                    attempt.retry = Some(encryption);
                }
                self.hang_up(at);
                self.dial(at)
            }
            error if error.allows_next_host() => self.next_address(at, &error),
            error => self.connect_failed(at, Some(error)),
        }
    }

    /// Handles the start of a client's session.
    fn connected(&mut self, at: usize) -> Result<(), LoadError> {
        self.timers.cancel(at);
        let client = &mut self.clients[at];
        let Some(attempt) = client.attempt.take() else { return Ok(()) };
        client.connected = true;
        client.reader = Reader::default();
        client.reader.keep_notices(self.load.verbosity.notices);
        if let Some(tls) = &mut client.tls {
            // Received with the login's last bytes: a setting's new value at most.
            self.plain_in.clear();
            let decrypted = tls.decrypt(&[], &mut self.plain_in);
            if let Err(problem) = decrypted
                .map_err(|error| error.to_string())
                .and_then(|_| client.reader.feed(&self.plain_in).map(drop).map_err(|error| error.to_string()))
            {
                return self.lost(at, &problem);
            }
        }
        let now_ns = clock::now_ns();
        if self.connecting.before_load {
            client.state = State::Ready;
            self.connecting.ready += 1;
            self.connecting.last_ns = now_ns;
            return Ok(());
        }
        let is_elsewhere = client.is_elsewhere;
        let recorder = self.recorder()?;
        recorder.advance_to(now_ns)?;
        if !is_elsewhere {
            recorder.connected(now_ns.saturating_sub(attempt.from_ns));
        }
        if attempt.for_transaction { self.begin(at, now_ns) } else { self.next_transaction(at, now_ns) }
    }

    /// Handles the failure to connect a client.
    #[cold]
    fn connect_failed(&mut self, at: usize, error: Option<LoginError>) -> Result<(), LoadError> {
        self.hang_up(at);
        let server = self.server_of(at);
        let client = &mut self.clients[at];
        let Some(mut attempt) = client.attempt.take() else { return Ok(()) };
        if let (Some(error), Some(address)) = (&error, server.addresses.get(attempt.address)) {
            attempt.failures.push(address.login_failure(error));
        }
        let (failures, outage) = ConnectFailure::summary(&attempt.failures);
        if self.connecting.before_load {
            let source = error.map(Box::new);
            return Err(LoadError::Connect { client: client.number, failures, outage, source });
        }
        let text = format!("client {} aborted while establishing connection: {failures}", client.number);
        self.abort(at, None, text)
    }
}
