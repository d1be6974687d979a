//! From a connection string to a way to the server, as libpq resolves it.

use model::message::{Connection, Endpoint};
use model::server::Dsn;
use model::workload::Transport;
use postgres::config::{ChannelBinding, SslMode, SslNegotiation};
use tokio_postgres_rustls::MakeRustlsConnect;
use wire::{ConnectParams, Given, Host, RequireAuth, TlsContext};

use crate::Major;
use crate::control::Control;
use crate::error::Error;

/// The way to a server that a connection string leads to.
pub(super) struct Reach {
    pub(super) control: Control,
    /// The connection string, with host, port and role as they were resolved, without secrets.
    pub(super) conninfo: String,
    pub(super) host: String,
    pub(super) port: u16,
    transport: Transport,
    user: String,
    password: Option<String>,
}

impl Reach {
    /// Resolves a connection string. Nothing is connected.
    ///
    /// # Errors
    /// It can't be read, or asks for what pgdyno can't do.
    pub(super) fn resolve(name: &str, dsn: &Dsn) -> Result<Self, Error> {
        let refuse = |why: String| Error::External { server: name.to_owned(), why };
        // The errors of these quote the string, and with it perhaps a password.
        let unreadable = || {
            refuse(
                "its connection string can't be read, which is not shown as it may have a password; expected \
                 keywords and values (host=db.example user=bench) or a URI (postgresql://bench@db.example), as \
                 psql takes them"
                    .to_owned(),
            )
        };
        wire::without_secrets(&dsn.conninfo, &[]).map_err(|_| unreadable())?;
        let given: Given =
            [("dbname", dsn.conninfo.as_str()), ("fallback_application_name", "pgdyno control")]
                .into_iter()
                .collect();
        let resolved = ConnectParams::resolve(&given, &|name: &str| std::env::var(name).ok());
        let wire::Resolved { params, warnings } =
            resolved.map_err(|error| refuse(format!("its connection string: {error}")))?;
        for warning in warnings {
            tracing::warn!("the server {name}: {warning}");
        }
        let [host] = params.hosts.as_slice() else {
            return Err(refuse(
                "its connection string has several hosts; give the one that is to be measured".to_owned(),
            ));
        };
        if params.require_auth != RequireAuth::default() || params.require_peer.is_some() {
            return Err(refuse(
                "require_auth and requirepeer can't be kept to where pgdyno asks the server for its own part; \
                 leave them out, and use sslmode=verify-full to know the server"
                    .to_owned(),
            ));
        }
        let (place, transport) = match host.transport() {
            wire::Transport::Unix => (format!("{}, port {}", host.host, host.port), Transport::Unix),
            wire::Transport::Tcp => (format!("{}:{}", address(host), host.port), Transport::Tcp),
        };
        let tls = TlsContext::new(&params).map_err(|error| refuse(format!("TLS: {error}")))?;
        // Where TLS is not asked for and what it needs can't be read, it goes on without, as libpq does.
        let tls = tls.and_then(|tls| tls.client_config().ok()).map(MakeRustlsConnect::new);
        let port = host.port.to_string();
        let mut known = vec![("port", port.as_str()), ("user", params.user.as_str())];
        known.extend((!host.host.is_empty()).then_some(("host", host.host.as_str())));
        Ok(Self {
            conninfo: wire::without_secrets(&dsn.conninfo, &known).map_err(|_| unreadable())?,
            host: address(host),
            port: host.port,
            transport,
            user: params.user.clone(),
            password: host.password.clone(),
            control: Control {
                config: config(&params, host),
                ssl_modes: ssl_modes(&params, tls.is_some()),
                tls,
                called: format!("{name} ({place})"),
                title: name.to_owned(),
                // Until the server has told its own.
                major: Major::new(0),
            },
        })
    }

    /// How clients connect to the tested database. The password, which goes to the driver alone, is beside the
    /// connection string.
    pub(super) fn connection(&self, transport: Transport) -> Result<Connection, Error> {
        if transport != self.transport {
            let [leads, asked] = [self.transport, transport].map(|transport| match transport {
                Transport::Unix => "unix",
                Transport::Tcp => "tcp",
            });
            return Err(Error::External {
                server: self.control.called.clone(),
                why: format!(
                    "its connection string leads to it by {leads}, and the transport is to be {asked}; name {leads} \
                     as the transport, or another host in the connection string (a directory is a Unix socket's)"
                ),
            });
        }
        Ok(self.own_connection(crate::DATABASE))
    }

    /// How to connect to a database as the connection string says, with the password beside it.
    pub(super) fn own_connection(&self, database: &str) -> Connection {
        Connection {
            endpoint: Endpoint::Conninfo { conninfo: self.conninfo.clone() },
            user: self.user.clone(),
            database: database.to_owned(),
            password: self.password.clone(),
        }
    }
}

fn address(host: &Host) -> String {
    match host.hostaddr {
        Some(address) if host.host.is_empty() => address.to_string(),
        _ => host.host.clone(),
    }
}

/// With and without TLS, in libpq's order.
fn ssl_modes(params: &ConnectParams, has_tls: bool) -> Vec<SslMode> {
    match params.ssl.mode {
        _ if !has_tls => vec![SslMode::Disable],
        wire::SslMode::Disable => vec![SslMode::Disable],
        wire::SslMode::Allow => vec![SslMode::Disable, SslMode::Require],
        wire::SslMode::Prefer => vec![SslMode::Require, SslMode::Disable],
        wire::SslMode::Require | wire::SslMode::VerifyCa | wire::SslMode::VerifyFull => {
            vec![SslMode::Require]
        }
    }
}

fn config(params: &ConnectParams, host: &Host) -> postgres::Config {
    let mut config = postgres::Config::new();
    match (host.transport(), host.hostaddr) {
        (wire::Transport::Unix, _) => config.host_path(&host.host),
        (wire::Transport::Tcp, Some(address)) => config.host(&self::address(host)).hostaddr(address),
        (wire::Transport::Tcp, None) => config.host(&host.host),
    };
    config.port(host.port).user(&params.user).keepalives(params.keepalives.on);
    if let Some(password) = &host.password {
        config.password(password);
    }
    if let Some(options) = &params.options {
        config.options(options);
    }
    if let Some(name) = &params.application_name {
        config.application_name(name);
    }
    if let Some(timeout) = params.connect_timeout {
        config.connect_timeout(timeout);
    }
    if let Some(idle) = params.keepalives.idle {
        config.keepalives_idle(idle);
    }
    if let Some(interval) = params.keepalives.interval {
        config.keepalives_interval(interval);
    }
    if let Some(count) = params.keepalives.count {
        config.keepalives_retries(count);
    }
    if let Some(timeout) = params.tcp_user_timeout {
        config.tcp_user_timeout(timeout);
    }
    config.channel_binding(match params.channel_binding {
        wire::ChannelBinding::Disable => ChannelBinding::Disable,
        wire::ChannelBinding::Prefer => ChannelBinding::Prefer,
        wire::ChannelBinding::Require => ChannelBinding::Require,
    });
    if params.ssl.negotiation == wire::SslNegotiation::Direct {
        config.ssl_negotiation(SslNegotiation::Direct);
    }
    config
}
