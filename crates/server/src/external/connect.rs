//! From a connection string to a route to the server, resolved as in libpq.

use model::message::{Connection, Endpoint};
use model::server::Dsn;
use model::version::Major;
use model::workload::Transport;
use wire::{ConnectParams, Given, Host, TlsContext};

use super::processes::is_local;
use crate::control::{APPLICATION_NAME, CONNECT_TIMEOUT, Control};
use crate::error::Error;

/// Route to the server of a connection string.
pub(super) struct Route {
    pub(super) control: Control,
    /// The connection string, with resolved host, port and role, without secrets.
    pub(super) conninfo: String,
    pub(super) host: String,
    pub(super) port: u16,
    transport: Transport,
    user: String,
    password: Option<String>,
}

/// Transport of a connection string, without connecting.
///
/// # Errors
/// It can't be parsed, or requires something that pgdyno does not support.
pub fn transport(name: &str, dsn: &Dsn) -> Result<Transport, Error> {
    Route::resolve(name, dsn).map(|route| route.transport)
}

impl Route {
    /// Resolves a connection string, without connecting.
    ///
    /// # Errors
    /// It can't be parsed, or requires something that pgdyno does not support.
    pub(super) fn resolve(name: &str, dsn: &Dsn) -> Result<Self, Error> {
        let refuse = |why: String| Error::External { server: name.to_owned(), why };
        // Its errors quote the string, which may contain a password.
        let invalid = || {
            refuse(
                "its connection string is invalid (it is not shown, since it may contain a password); expected \
                 keywords and values (host=db.example user=bench) or a URI (postgresql://bench@db.example), as for psql"
                    .to_owned(),
            )
        };
        wire::without_secrets(&dsn.conninfo, &[]).map_err(|_| invalid())?;
        let given: Given =
            [("dbname", dsn.conninfo.as_str()), ("fallback_application_name", APPLICATION_NAME)]
                .into_iter()
                .collect();
        let resolved = ConnectParams::resolve(&given, &|name: &str| std::env::var(name).ok());
        let wire::Resolved { mut params, warnings } =
            resolved.map_err(|error| refuse(format!("its connection string: {error}")))?;
        for warning in warnings {
            tracing::warn!("the server {name}: {warning}");
        }
        params.connect_timeout.get_or_insert(CONNECT_TIMEOUT);
        let [host] = params.hosts.as_slice() else {
            return Err(refuse(
                "its connection string has several hosts; name only the one to measure".to_owned(),
            ));
        };
        let (place, transport) = match host.transport() {
            wire::Transport::Unix => (format!("{}, port {}", host.host, host.port), Transport::Unix),
            wire::Transport::Tcp => (format!("{}:{}", address(host), host.port), Transport::Tcp),
        };
        // Certificates that can't be read are an error of the connection string, reported before anything is connected.
        TlsContext::new(&params).map_err(|error| refuse(format!("TLS: {error}")))?;
        let port = host.port.to_string();
        let mut known = vec![("port", port.as_str()), ("user", params.user.as_str())];
        known.extend((!host.host.is_empty()).then_some(("host", host.host.as_str())));
        Ok(Self {
            conninfo: wire::without_secrets(&dsn.conninfo, &known).map_err(|_| invalid())?,
            host: address(host),
            port: host.port,
            transport,
            user: params.user.clone(),
            password: host.password.clone(),
            // Its major is known after the first answer.
            control: Control::new(params, format!("{name} ({place})"), name.to_owned(), Major::new(0)),
        })
    }

    /// Clients' connection to the tested database. The password, which only the driver receives, is separate from the
    /// connection string.
    pub(super) fn connection(&self, transport: Transport) -> Result<Connection, Error> {
        if transport != self.transport {
            let [actual, requested] = [self.transport, transport].map(|transport| match transport {
                Transport::Unix => "unix",
                Transport::Tcp => "tcp",
            });
            return Err(Error::External {
                server: self.control.display_name.clone(),
                why: format!(
                    "its connection string connects by {actual}, but the requested transport is {requested}; set the \
                     transport {actual}, or another host in the connection string (a directory means a Unix socket)"
                ),
            });
        }
        Ok(self.own_connection(crate::DATABASE))
    }

    /// Whether it ends at this machine.
    pub(super) fn is_local(&self) -> bool {
        self.transport == Transport::Unix || is_local(&self.host)
    }

    /// Connection to a database as in the connection string, with a separate password.
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
