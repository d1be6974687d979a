//! Where and how to connect: libpq's connection parameters, resolved.
//!
//! [`ConnectParams::resolve`] derives them from the user's parameters, a service file, the environment, a password file
//! and defaults; [`ConnectParams::new`] uses only its arguments.
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

/// Default application name.
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
    /// Client encoding, unless left to the server.
    pub client_encoding: Option<String>,
    /// Requests a replication connection.
    pub replication: Option<String>,
    /// Settings of the session that come from the environment (`PGDATESTYLE`, `PGTZ`, `PGGEQO`).
    pub settings: Vec<(String, String)>,
    /// Time limit for connecting to one address; unlimited if none.
    pub connect_timeout: Option<Duration>,
    /// TCP keepalives.
    pub keepalives: Keepalives,
    /// Time that data sent by TCP may stay unacknowledged; left to the system if none.
    pub tcp_user_timeout: Option<Duration>,
    /// TLS.
    pub ssl: SslParams,
    /// Whether SCRAM must be bound to the TLS connection.
    pub channel_binding: ChannelBinding,
    /// Accepted authentication methods.
    pub require_auth: RequireAuth,
    /// The operating system user who must run the server; callers with a Unix socket may check it.
    pub require_peer: Option<String>,
    /// Suitable sessions.
    pub target_session_attrs: TargetSessionAttrs,
    /// Whether hosts and addresses are tried in random order.
    pub load_balance_hosts: bool,
    /// Oldest acceptable protocol.
    pub min_protocol_version: ProtocolVersion,
    /// Newest protocol to request.
    pub max_protocol_version: ProtocolVersion,
    /// Password file for the hosts ([`Host::password_from_file`]).
    pub password_file: Option<PathBuf>,
    /// Keys derived from passwords, shared by all clones.
    pub(crate) scram_keys: KeyCache,
}

/// A host to connect to.
#[derive(Clone, PartialEq, Eq)]
pub struct Host {
    /// Name, address, or directory of a Unix socket (an absolute path, or `@` and an abstract name). Empty if only an
    /// address was given.
    pub host: String,
    /// Its address, which saves the name lookup.
    pub hostaddr: Option<IpAddr>,
    /// TCP port, or number of the Unix socket.
    pub port: u16,
    /// Password, sent if requested.
    pub password: Option<String>,
    /// Whether the password comes from the password file.
    pub password_from_file: bool,
}

impl Host {
    /// Returns the path of the Unix socket, if it is one. The path of an abstract socket begins with `@`.
    pub fn socket_path(&self) -> Option<String> {
        let unix = self.hostaddr.is_none() && is_socket_directory(&self.host);
        unix.then(|| format!("{}/.s.PGSQL.{}", self.host, self.port))
    }

    /// Transport by which it is reached.
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

/// Transport to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Unix socket.
    Unix,
    /// TCP.
    Tcp,
}

/// TCP keepalives. None leaves a value to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalives {
    /// Whether to use them.
    pub on: bool,
    /// Idle time before the first probe.
    pub idle: Option<Duration>,
    /// Time to wait for a response before the next probe.
    pub interval: Option<Duration>,
    /// Number of lost probes before the connection is dropped.
    pub count: Option<u32>,
}

impl Default for Keepalives {
    fn default() -> Self {
        Self { on: true, idle: None, interval: None, count: None }
    }
}

/// libpq's parameters with `ssl` in their names, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SslParams {
    /// Whether to use TLS, and the requirements on the server's certificate.
    pub mode: SslMode,
    /// Negotiation of TLS.
    pub negotiation: SslNegotiation,
    /// Trusted certificates.
    pub root_cert: RootCert,
    /// File of certificate revocation lists.
    pub crl: Option<PathBuf>,
    /// Directory of such files.
    pub crl_dir: Option<PathBuf>,
    /// File of the client's certificate. It need not exist.
    pub cert: Option<PathBuf>,
    /// File of the client's key.
    pub key: Option<PathBuf>,
    /// Whether a certificate is sent at all.
    pub send_cert: bool,
    /// Whether to send the host's name to the server.
    pub sni: bool,
    /// Oldest TLS version.
    pub min_version: TlsVersion,
    /// Newest TLS version; unlimited if none.
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

/// Location of trusted certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootCert {
    /// Those of the system.
    System,
    /// Those of a file, which need not exist if the mode does not verify.
    File(PathBuf),
    /// No home directory that could contain them.
    None,
}

/// `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// Never TLS.
    Disable,
    /// TLS if the server rejects a connection without.
    Allow,
    /// TLS if the server supports it.
    #[default]
    Prefer,
    /// TLS.
    Require,
    /// TLS, and the server's certificate is signed by a trusted one.
    VerifyCa,
    /// Like verify-ca, and the certificate is the host's.
    VerifyFull,
}

/// `sslnegotiation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslNegotiation {
    /// An SSLRequest comes first.
    #[default]
    Postgres,
    /// TLS from the first byte on; supported by servers from version 17.
    Direct,
}

/// A TLS version. Older ones are missing because rustls does not support them.
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
    /// If TLS is used and the server supports it.
    #[default]
    Prefer,
    /// Only servers that prove on this connection that they know the password.
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
    /// Any method.
    fn default() -> Self {
        Self { text: String::new(), none: true, password: true, md5: true, scram: true }
    }
}

/// `target_session_attrs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetSessionAttrs {
    /// Any session.
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
    /// A standby, or any session if none of the hosts is one. [`crate::Handshake`] accepts standbys only: after all
    /// hosts, the caller tries them again with [`ConnectParams::second_pass`].
    PreferStandby,
}

/// A protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolVersion {
    /// 3.0, which every server since 7.4 supports.
    V3_0,
    /// 3.2 of PostgreSQL 18: longer keys of cancel requests.
    V3_2,
}

impl ProtocolVersion {
    /// The code in start-up messages.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::V3_0 => 0x0003_0000,
            Self::V3_2 => 0x0003_0002,
        }
    }
}

impl ConnectParams {
    /// Parameters of a server of one's own: environment and files are ignored, and TLS is not used.
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

    /// Returns the parameters for a second pass through all hosts if none has a suitable session: for `prefer-standby`,
    /// any session.
    pub fn second_pass(&self) -> Option<Self> {
        let prefers = self.target_session_attrs == TargetSessionAttrs::PreferStandby;
        prefers.then(|| Self { target_session_attrs: TargetSessionAttrs::Any, ..self.clone() })
    }

    /// Returns the indexes of [`ConnectParams::hosts`] in the order in which to try them. `below` draws a number from 0
    /// up to its argument, exclusive; it is called only with `load_balance_hosts=random`.
    pub fn host_order(&self, below: impl FnMut(usize) -> usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.hosts.len()).collect();
        if self.load_balance_hosts {
            shuffle(&mut order, below);
        }
        order
    }
}

/// Shuffles things (Fisher and Yates). `below` is as for [`ConnectParams::host_order`].
pub fn shuffle<T>(things: &mut [T], mut below: impl FnMut(usize) -> usize) {
    for last in (1..things.len()).rev() {
        things.swap(last, below(last + 1).min(last));
    }
}
