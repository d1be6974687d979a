//! Where and how to connect: what libpq's connection parameters come to.
//!
//! [`ConnectParams::resolve`] makes them from what the user gave, a service file, the environment, a password file and
//! defaults; [`ConnectParams::new`] takes nothing from around.
//!
//! Source: PostgreSQL manual, "Database Connection Control Functions" of libpq.

mod conninfo;
mod error;
mod from_values;
mod keywords;
mod password_file;
mod resolve;
mod service;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use conninfo::without_secrets;
pub use error::ParamError;
pub use resolve::{Given, Resolved};

use crate::scram::KeyCache;

/// The application name of sessions that give themselves none.
const APPLICATION_NAME: &str = "pgdyno";

/// Parameters of a connection, complete and checked.
#[derive(Clone, Debug)]
pub struct ConnectParams {
    /// The hosts to try, at least one, in the order given: see [`ConnectParams::host_order`].
    pub hosts: Vec<Host>,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Name of the session in `pg_stat_activity`: `application_name`, else `fallback_application_name`.
    pub application_name: Option<String>,
    /// Command-line options of the server process.
    pub options: Option<String>,
    /// Client encoding, where it is not left to the server.
    pub client_encoding: Option<String>,
    /// Asks for a replication connection.
    pub replication: Option<String>,
    /// Settings of the session that come from the environment (`PGDATESTYLE`, `PGTZ`, `PGGEQO`).
    pub settings: Vec<(String, String)>,
    /// How long connecting to one address may take; not limited if none.
    pub connect_timeout: Option<Duration>,
    /// TCP keepalives.
    pub keepalives: Keepalives,
    /// How long data sent by TCP may stay unacknowledged; left to the system if none.
    pub tcp_user_timeout: Option<Duration>,
    /// TLS.
    pub ssl: SslParams,
    /// Whether SCRAM has to be bound to the TLS connection.
    pub channel_binding: ChannelBinding,
    /// Which ways of authentication are accepted.
    pub require_auth: RequireAuth,
    /// The operating system user that has to run the server, which the caller of a Unix socket may check.
    pub require_peer: Option<String>,
    /// Which sessions will do.
    pub target_session_attrs: TargetSessionAttrs,
    /// Whether hosts and addresses are tried in random order.
    pub load_balance_hosts: bool,
    /// The oldest protocol that will do.
    pub min_protocol_version: ProtocolVersion,
    /// The newest protocol to ask for.
    pub max_protocol_version: ProtocolVersion,
    /// The file that passwords of hosts may come from ([`Host::password_from_file`]).
    pub password_file: Option<PathBuf>,
    /// Keys derived from passwords, shared by all clones.
    pub(crate) scram_keys: KeyCache,
}

/// One place to connect to.
#[derive(Clone, PartialEq, Eq)]
pub struct Host {
    /// Name, address, or directory of a Unix socket (an absolute path, or `@` and an abstract name). Empty where only
    /// an address was given.
    pub host: String,
    /// Its address, which need not be looked up.
    pub hostaddr: Option<IpAddr>,
    /// TCP port, or number of the Unix socket.
    pub port: u16,
    /// Password, should it be asked for.
    pub password: Option<String>,
    /// Whether the password comes from the password file.
    pub password_from_file: bool,
}

impl Host {
    /// The path of the Unix socket, if it is one. The path of an abstract socket begins with `@`.
    pub fn socket_path(&self) -> Option<String> {
        let unix = self.hostaddr.is_none() && is_socket_directory(&self.host);
        unix.then(|| format!("{}/.s.PGSQL.{}", self.host, self.port))
    }

    /// How it is reached.
    pub fn transport(&self) -> Transport {
        if self.hostaddr.is_none() && is_socket_directory(&self.host) {
            Transport::Unix
        } else {
            Transport::Tcp
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("host", &self.host)
            .field("hostaddr", &self.hostaddr)
            .field("port", &self.port)
            .field("password", &self.password.as_ref().map(|_| "…"))
            .finish_non_exhaustive()
    }
}

fn is_socket_directory(host: &str) -> bool {
    host.starts_with(['/', '@'])
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Unix socket.
    Unix,
    /// TCP.
    Tcp,
}

/// TCP keepalives. What is none is left to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalives {
    /// Whether to use them.
    pub on: bool,
    /// Silence after which the first is sent.
    pub idle: Option<Duration>,
    /// How long to wait for an answer before the next is sent.
    pub interval: Option<Duration>,
    /// How many are lost before the connection is given up.
    pub count: Option<u32>,
}

impl Default for Keepalives {
    fn default() -> Self {
        Self { on: true, idle: None, interval: None, count: None }
    }
}

/// What libpq's parameters with `ssl` in their names come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SslParams {
    /// Whether to use TLS, and what to ask of the server's certificate.
    pub mode: SslMode,
    /// How TLS is begun.
    pub negotiation: SslNegotiation,
    /// Which certificates are trusted.
    pub root_cert: RootCert,
    /// Files of certificates that are revoked.
    pub crl: Option<PathBuf>,
    /// A directory of such files.
    pub crl_dir: Option<PathBuf>,
    /// File of the client's certificate. It need not exist.
    pub cert: Option<PathBuf>,
    /// File of the client's key.
    pub key: Option<PathBuf>,
    /// Whether a certificate is sent at all.
    pub send_cert: bool,
    /// Whether the host's name is told to the server.
    pub sni: bool,
    /// The oldest version of TLS.
    pub min_version: TlsVersion,
    /// The newest version of TLS; the newest there is if none.
    pub max_version: Option<TlsVersion>,
}

impl SslParams {
    /// No TLS.
    pub fn disabled() -> Self {
        Self {
            mode: SslMode::Disable,
            negotiation: SslNegotiation::Postgres,
            root_cert: RootCert::None,
            crl: None,
            crl_dir: None,
            cert: None,
            key: None,
            send_cert: true,
            sni: true,
            min_version: TlsVersion::V1_2,
            max_version: None,
        }
    }
}

/// Where trusted certificates are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootCert {
    /// Those of the system.
    System,
    /// Those of a file, which need not exist where the mode does not verify.
    File(PathBuf),
    /// There is no home directory where they could be.
    None,
}

/// `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// Never TLS.
    Disable,
    /// TLS if the server does not let in without.
    Allow,
    /// TLS if the server has it.
    #[default]
    Prefer,
    /// TLS.
    Require,
    /// TLS, and the server's certificate is signed by one that is trusted.
    VerifyCa,
    /// As verify-ca, and the certificate is the host's.
    VerifyFull,
}

/// `sslnegotiation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslNegotiation {
    /// The server is asked first.
    #[default]
    Postgres,
    /// TLS from the first byte on; servers from version 17 understand it.
    Direct,
}

/// A version of TLS. Older ones, which rustls does not have, are not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// `channel_binding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Where TLS is used and the server can.
    #[default]
    Prefer,
    /// Only servers that prove that they know the password, on this very connection.
    Require,
}

/// `require_auth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequireAuth {
    /// As the user wrote it, for messages.
    pub(crate) text: String,
    pub(crate) none: bool,
    pub(crate) password: bool,
    pub(crate) md5: bool,
    pub(crate) scram: bool,
}

impl Default for RequireAuth {
    /// Any.
    fn default() -> Self {
        Self { text: String::new(), none: true, password: true, md5: true, scram: true }
    }
}

/// `target_session_attrs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetSessionAttrs {
    /// Every session will do.
    #[default]
    Any,
    /// It can write by default.
    ReadWrite,
    /// It cannot write by default.
    ReadOnly,
    /// The server is not a standby.
    Primary,
    /// The server is a standby.
    Standby,
    /// A standby; if none of the hosts is one, any session. [`crate::Handshake`] accepts standbys only: when all hosts
    /// have been tried, the caller goes through them again with [`ConnectParams::second_pass`].
    PreferStandby,
}

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolVersion {
    /// 3.0, which every server since 7.4 speaks.
    V3_0,
    /// 3.2 of PostgreSQL 18: longer keys of cancel requests.
    V3_2,
}

impl ProtocolVersion {
    /// As start-up messages say it.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::V3_0 => 0x0003_0000,
            Self::V3_2 => 0x0003_0002,
        }
    }
}

impl ConnectParams {
    /// Parameters of a server of one's own: nothing is taken from the environment or from files, and TLS is not used.
    pub fn new(
        host: impl Into<String>,
        port: u16,
        user: impl Into<String>,
        database: impl Into<String>,
        password: Option<String>,
    ) -> Self {
        let host = Host { host: host.into(), hostaddr: None, port, password, password_from_file: false };
        Self {
            hosts: vec![host],
            user: user.into(),
            database: database.into(),
            application_name: Some(APPLICATION_NAME.to_owned()),
            options: None,
            client_encoding: None,
            replication: None,
            settings: Vec::new(),
            connect_timeout: None,
            keepalives: Keepalives::default(),
            tcp_user_timeout: None,
            ssl: SslParams::disabled(),
            channel_binding: ChannelBinding::default(),
            require_auth: RequireAuth::default(),
            require_peer: None,
            target_session_attrs: TargetSessionAttrs::default(),
            load_balance_hosts: false,
            min_protocol_version: ProtocolVersion::V3_0,
            max_protocol_version: ProtocolVersion::V3_0,
            password_file: None,
            scram_keys: KeyCache::default(),
        }
    }

    /// What to go through all hosts again with when none of them has a session that will do: for `prefer-standby`, any
    /// session.
    pub fn second_pass(&self) -> Option<Self> {
        let prefers = self.target_session_attrs == TargetSessionAttrs::PreferStandby;
        prefers.then(|| Self { target_session_attrs: TargetSessionAttrs::Any, ..self.clone() })
    }

    /// The places of [`ConnectParams::hosts`] in the order in which to try them. `below` draws a number from 0 up to
    /// its argument, exclusive; it is asked only with `load_balance_hosts=random`.
    pub fn host_order(&self, below: impl FnMut(usize) -> usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.hosts.len()).collect();
        if self.load_balance_hosts {
            shuffle(&mut order, below);
        }
        order
    }
}

/// Brings things into a random order (Fisher and Yates). `below` is as for [`ConnectParams::host_order`].
pub fn shuffle<T>(things: &mut [T], mut below: impl FnMut(usize) -> usize) {
    for last in (1..things.len()).rev() {
        things.swap(last, below(last + 1).min(last));
    }
}
