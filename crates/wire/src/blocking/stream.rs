//! A blocking socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::time::Duration;

use crate::{ConnectParams, Transport};
use rustix::net::sockopt;

/// Address of a server.
#[derive(Clone)]
pub(super) enum Address {
    Unix(UnixAddr),
    Tcp(SocketAddr),
}

/// A connection.
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub(super) fn connect(params: &ConnectParams, address: &Address) -> io::Result<Self> {
        let address = match address {
            Address::Unix(address) => return UnixStream::connect_addr(address).map(Self::Unix),
            Address::Tcp(address) => address,
        };
        let stream = match params.connect_timeout {
            Some(timeout) => TcpStream::connect_timeout(address, timeout)?,
            None => TcpStream::connect(address)?,
        };
        stream.set_nodelay(true)?;
        set_keepalives(&stream, params)?;
        Ok(Self::Tcp(stream))
    }

    pub(super) fn transport(&self) -> Transport {
        match self {
            Self::Unix(_) => Transport::Unix,
            Self::Tcp(_) => Transport::Tcp,
        }
    }

    /// Sets the receive timeout.
    pub(super) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(timeout),
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// Shuts down the connection in both directions.
    pub(super) fn shut_down(&self) {
        // A connection that is already down is fine.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let received = match self {
                Self::Unix(stream) => stream.read(buffer),
                Self::Tcp(stream) => stream.read(buffer),
            };
            match received {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => return received,
            }
        }
    }

    pub(super) fn send(&mut self, output: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.write_all(output),
            Self::Tcp(stream) => stream.write_all(output),
        }
    }
}

fn set_keepalives(stream: impl AsFd, params: &ConnectParams) -> io::Result<()> {
    let keepalives = &params.keepalives;
    if keepalives.on {
        sockopt::set_socket_keepalive(&stream, true)?;
        if let Some(idle) = keepalives.idle {
            sockopt::set_tcp_keepidle(&stream, idle)?;
        }
        if let Some(interval) = keepalives.interval {
            sockopt::set_tcp_keepintvl(&stream, interval)?;
        }
        if let Some(count) = keepalives.count {
            sockopt::set_tcp_keepcnt(&stream, count)?;
        }
    }
    if let Some(timeout) = params.tcp_user_timeout {
        sockopt::set_tcp_user_timeout(&stream, u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX))?;
    }
    Ok(())
}
