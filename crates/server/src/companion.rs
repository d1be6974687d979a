//! What runs next to a server in a topology: a standby, a subscriber, or a pooler. Like the server, it ends with pgdyno.

pub(crate) mod pooler;
mod replica;

use std::collections::BTreeMap;
use std::time::Duration;

use model::limits::Limits;
use model::message::Connection;
use model::topology::{Companion as Kind, Topology};
use model::workload::Transport;

use crate::cluster::Cluster;
use crate::error::Error;
use crate::server::{Server, StopMode};
use pooler::{Pooler, PoolerLimits};

/// Schema and name of the table that has the marker row, by which the time until changes arrive is measured.
pub const MARKER: &str = "pgdyno.marker";

/// A running companion of a server. Dropping it ends it, and deletes its files.
#[derive(Debug)]
pub enum Companion {
    /// A standby.
    Standby(Box<Server>),
    /// A subscriber.
    Subscriber(Box<Server>),
    /// A pooler.
    Pooler(Box<Pooler>),
}

/// What a companion is started with.
#[derive(Debug)]
pub struct CompanionStart<'a> {
    /// The topology, which has one.
    pub topology: Topology,
    /// Its own settings.
    pub settings: &'a BTreeMap<String, String>,
    /// The limits of the server, which a replica has, too.
    pub limits: &'a Limits,
    /// Transport of the clients.
    pub transport: Transport,
    /// Number of connections that clients may open, and of those that a pooler opens to the server.
    pub connections: [u32; 2],
    /// A copy of the server's data, as the server found them when it started; none for a pooler.
    pub replica: Option<Cluster>,
}

impl CompanionStart<'_> {
    /// Starts the companion of a server, and waits until it works.
    ///
    /// # Errors
    /// It does not start, or does not receive what the server sends.
    pub fn run(self, server: &Server) -> Result<Companion, Error> {
        let Self { topology, settings, limits, transport, connections: [clients, servers], replica } = self;
        let missing = || Error::Companion {
            companion: topology.as_str().to_owned(),
            why: "has no copy of the data: this is a bug in pgdyno, please report it".to_owned(),
        };
        match topology.companion() {
            Some(Kind::Standby) => {
                let cluster = replica.ok_or_else(missing)?;
                replica::standby(server, cluster, settings, limits, topology).map(Companion::Standby)
            }
            Some(Kind::Subscriber) => {
                let cluster = replica.ok_or_else(missing)?;
                replica::subscriber(server, cluster, settings, limits).map(Companion::Subscriber)
            }
            Some(Kind::Pgbouncer) => {
                let limits = PoolerLimits { clients, servers };
                let pooler = Pooler::start(server, topology, settings, limits, transport)?;
                Ok(Companion::Pooler(Box::new(pooler)))
            }
            None => Err(missing()),
        }
    }
}

impl Companion {
    /// What it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Standby(_) => Kind::Standby,
            Self::Subscriber(_) => Kind::Subscriber,
            Self::Pooler(_) => Kind::Pgbouncer,
        }
    }

    /// Process id of its first process.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Standby(replica) | Self::Subscriber(replica) => replica.pid(),
            Self::Pooler(pooler) => pooler.pid(),
        }
    }

    /// Clients' connection, if they connect to it instead of the server.
    pub fn connection(&self, transport: Transport) -> Option<Connection> {
        match self {
            Self::Standby(_) | Self::Subscriber(_) => None,
            Self::Pooler(pooler) => Some(pooler.connection(transport, crate::DATABASE)),
        }
    }

    /// pgdyno's own connection: to a database of a replica, or to the console of a pooler.
    pub fn own_connection(&self, database: &str) -> Connection {
        match self {
            Self::Standby(replica) | Self::Subscriber(replica) => replica.own_connection(database),
            Self::Pooler(pooler) => pooler.connection(Transport::Unix, pooler::CONSOLE),
        }
    }

    /// The database that has the marker row; none for a pooler.
    pub fn marker_database(&self) -> Option<&'static str> {
        match self {
            Self::Standby(_) => Some("postgres"),
            // Only the changes of the tested database are published.
            Self::Subscriber(_) => Some(crate::DATABASE),
            Self::Pooler(_) => None,
        }
    }

    /// Restricts its processes to some processors.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn set_cpu_affinity(&self, cpus: &[u32]) -> Result<(), Error> {
        match self {
            Self::Standby(replica) | Self::Subscriber(replica) => replica.set_cpu_affinity(cpus),
            Self::Pooler(pooler) => pooler.set_cpu_affinity(cpus),
        }
    }

    /// Waits until everything that the server has written so far has arrived, at most this long. Returns whether it has.
    ///
    /// # Errors
    /// One of them does not answer.
    pub fn catch_up(&self, server: &Server, within: Duration) -> Result<bool, Error> {
        match self {
            Self::Standby(replica) => replica::catch_up_standby(server, replica, within),
            Self::Subscriber(_) => replica::catch_up_subscriber(server, within),
            Self::Pooler(_) => Ok(true),
        }
    }

    /// Closes the connections to the tested database that no client uses.
    ///
    /// # Errors
    /// A pooler does not answer.
    pub fn close_idle_connections(&self) -> Result<(), Error> {
        match self {
            Self::Standby(_) | Self::Subscriber(_) => Ok(()),
            Self::Pooler(pooler) => pooler.close_server_connections(),
        }
    }

    /// Reads the tested database into a replica's buffers.
    ///
    /// # Errors
    /// The replica does not answer.
    pub fn warm(&self) -> Result<(), Error> {
        match self {
            Self::Standby(replica) | Self::Subscriber(replica) => replica.warm().map(drop),
            Self::Pooler(_) => Ok(()),
        }
    }

    /// Why it no longer works, if so: it has ended, or no longer receives changes.
    pub fn failure(&mut self, server: &Server) -> Option<String> {
        let name = self.kind().as_str();
        let exited = match self {
            Self::Standby(replica) | Self::Subscriber(replica) => replica.exited(),
            Self::Pooler(pooler) => pooler.exited(),
        };
        if let Some(status) = exited {
            return Some(format!("the {name} has ended ({status})"));
        }
        match self {
            Self::Standby(_) | Self::Subscriber(_) => replica::failure(server, name),
            Self::Pooler(_) => None,
        }
    }

    /// Its log since the last call.
    pub fn take_log(&mut self) -> Option<String> {
        match self {
            Self::Standby(replica) | Self::Subscriber(replica) => replica.take_log().ok(),
            Self::Pooler(pooler) => pooler.take_log(),
        }
    }

    /// Ends it; returns the cluster of a replica.
    ///
    /// # Errors
    /// It does not end even when killed.
    pub fn stop(self) -> Result<Option<Cluster>, Error> {
        match self {
            Self::Standby(replica) | Self::Subscriber(replica) => replica.stop(StopMode::Immediate).map(Some),
            Self::Pooler(pooler) => {
                drop(pooler);
                Ok(None)
            }
        }
    }
}
