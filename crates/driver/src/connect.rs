//! Addresses of a server, and sockets to it.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;

use model::message::{Connection, Endpoint};
use model::outage::Outage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt,
};
use wire::{ConnectParams, Given, LoginError, ParamError, TlsContext, Transport, encode};

use crate::client::{CancelKey, ConnectFailure};
use crate::error::{LoadError, outage_of};

/// Time limit for a session to begin, if the connection has no `connect_timeout`: before a load, for the next client.
pub(crate) const CONNECT_TIMEOUT_NS: u64 = 30_000_000_000;

/// Pause before connecting again to a server that is busy or not ready.
pub(crate) const REDIAL_INTERVAL_NS: u64 = 5_000_000;

/// Time limit for connecting to send a cancel request.
const CANCEL_TIMEOUT_NS: i64 = 200_000_000;

/// Connection parameters of a connection in a message. The environment and files are used only for a connection string.
///
/// # Errors
/// The connection string, or something that it refers to, cannot be used.
pub fn connect_params(connection: &Connection) -> Result<ConnectParams, ParamError> {
    let Connection { endpoint, user, database, password } = connection;
    let (host, port) = match endpoint {
        Endpoint::Unix { directory, port } => (directory, *port),
        Endpoint::Tcp { host, port } => (host, *port),
        Endpoint::Conninfo { conninfo } => {
            let given: Given = [
                ("dbname", conninfo.as_str()),
                ("user", user),
                ("dbname", database),
                ("password", password.as_deref().unwrap_or_default()),
            ]
            .into_iter()
            .collect();
            let resolved = ConnectParams::resolve(&given, &|name: &str| std::env::var(name).ok());
            return Ok(resolved?.params);
        }
    };
    Ok(ConnectParams::new(host, port, user, database, password.clone()))
}

/// Connection parameters with resolved addresses.
pub(crate) struct Server {
    pub(crate) params: ConnectParams,
    /// Parameters for a second pass through all addresses, if none of them has an acceptable session.
    pub(crate) second_pass: Option<ConnectParams>,
    pub(crate) tls: Option<TlsContext>,
    pub(crate) addresses: Vec<Address>,
}

/// An address of a server.
pub(crate) struct Address {
    /// Index of its host in the parameters.
    pub(crate) host: usize,
    /// Its name in messages.
    pub(crate) name: String,
    socket: Socket,
}

enum Socket {
    Unix(SocketAddrUnix),
    Tcp(SocketAddr),
}

impl Server {
    /// Resolves a server's addresses, which may take a while. `random_below` returns a random number below its
    /// argument.
    ///
    /// # Errors
    /// None of the hosts can be resolved, or TLS cannot be set up.
    pub(crate) fn resolve(
        params: &ConnectParams,
        mut random_below: impl FnMut(usize) -> usize,
    ) -> Result<Self, LoadError> {
        let tls = TlsContext::new(params).map_err(|error| LoadError::Tls(error.to_string()))?;
        let mut addresses = Vec::new();
        let mut last = None;
        for host in params.host_order(&mut random_below) {
            match resolve_host(params, host) {
                Ok(mut found) => {
                    if params.load_balance_hosts {
                        wire::shuffle(&mut found, &mut random_below);
                    }
                    addresses.append(&mut found);
                }
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) if addresses.is_empty() => Err(error),
            _ => Ok(Self { params: params.clone(), second_pass: params.second_pass(), tls, addresses }),
        }
    }

    /// Starts connecting to an address. `AGAIN`: the server's backlog is full.
    pub(crate) fn dial(&self, address: &Address) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let connected = |socket: OwnedFd, result| match result {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(error) => Err(error),
        };
        match &address.socket {
            Socket::Unix(path) => {
                let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                let result = connect(&socket, path);
                connected(socket, result)
            }
            Socket::Tcp(address) => {
                let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
                let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
                sockopt::set_tcp_nodelay(&socket, true)?;
                self.set_keepalive(&socket)?;
                let result = connect(&socket, address);
                connected(socket, result)
            }
        }
    }

    /// Sends a request to cancel a session's running statement, over a separate connection. The response to the
    /// statement shows whether it was cancelled.
    ///
    /// # Errors
    /// The server cannot be reached in time.
    pub(crate) fn cancel(&self, key: &CancelKey) -> Result<(), Errno> {
        let socket = self.dial(&self.addresses[key.address])?;
        let timeout = Timespec { tv_sec: 0, tv_nsec: CANCEL_TIMEOUT_NS };
        if poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&timeout))? == 0 {
            return Err(Errno::TIMEDOUT);
        }
        let mut request = Vec::new();
        encode::cancel_request(key.process_id, &key.secret, &mut request);
        rustix::io::write(&socket, &request).map(drop)
    }

    fn set_keepalive(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let keepalives = &self.params.keepalives;
        if keepalives.on {
            sockopt::set_socket_keepalive(socket, true)?;
            if let Some(idle) = keepalives.idle {
                sockopt::set_tcp_keepidle(socket, idle)?;
            }
            if let Some(interval) = keepalives.interval {
                sockopt::set_tcp_keepintvl(socket, interval)?;
            }
            if let Some(count) = keepalives.count {
                sockopt::set_tcp_keepcnt(socket, count)?;
            }
        }
        if let Some(timeout) = self.params.tcp_user_timeout {
            sockopt::set_tcp_user_timeout(socket, timeout.as_millis() as u32)?;
        }
        Ok(())
    }
}

impl Address {
    /// Its transport.
    pub(crate) fn transport(&self) -> Transport {
        match self.socket {
            Socket::Unix(_) => Transport::Unix,
            Socket::Tcp(_) => Transport::Tcp,
        }
    }

    /// A failure to connect, in libpq's words.
    pub(crate) fn failure(&self, error: &str, outage: Option<Outage>) -> ConnectFailure {
        ConnectFailure { text: format!("connection to {} failed: {error}", self.name), outage }
    }

    /// A login that failed.
    pub(crate) fn login_failure(&self, error: &LoginError) -> ConnectFailure {
        let outage = error.is_unreachable().then_some(Outage::Unreachable);
        self.failure(&error.libpq_text(), outage)
    }

    /// A failure to connect, with the hint that libpq adds if nothing listens.
    pub(crate) fn refused(&self, error: Errno) -> ConnectFailure {
        let hint = match self.socket {
            Socket::Unix(_) => "Is the server running locally and accepting connections on that socket?",
            Socket::Tcp(_) => "Is the server running on that host and accepting TCP/IP connections?",
        };
        let text = std::io::Error::from(error).to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        self.failure(&format!("{text}\n\t{hint}"), outage_of(error))
    }
}

/// Resolves the addresses of one host.
fn resolve_host(params: &ConnectParams, index: usize) -> Result<Vec<Address>, LoadError> {
    let host = &params.hosts[index];
    if let Some(path) = host.socket_path() {
        let address = match path.strip_prefix('@') {
            Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
            None => SocketAddrUnix::new(path.as_str()),
        };
        let address = address.map_err(|source| LoadError::SocketPath { path: path.clone(), source })?;
        let name = format!("server on socket \"{path}\"");
        return Ok(vec![Address { host: index, name, socket: Socket::Unix(address) }]);
    }
    let found: Vec<SocketAddr> = match host.hostaddr {
        Some(address) => vec![SocketAddr::new(address, host.port)],
        None => {
            let resolve = |source| LoadError::Resolve { host: host.host.clone(), source };
            (host.host.as_str(), host.port).to_socket_addrs().map_err(resolve)?.collect()
        }
    };
    let address = |address: SocketAddr| {
        let ip = address.ip().to_string();
        let name = if host.host.is_empty() || host.host == ip {
            format!("server at \"{ip}\", port {}", host.port)
        } else {
            format!("server at \"{}\" ({ip}), port {}", host.host, host.port)
        };
        Address { host: index, name, socket: Socket::Tcp(address) }
    };
    Ok(found.into_iter().map(address).collect())
}
