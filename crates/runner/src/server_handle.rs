//! The server under test: one that pgdyno started, or an external one.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use host::process::wait_until;
use model::environment::ServerFacts;
use model::limits::LimitsInForce;
use model::message::Connection;
use model::record::{Log, Setting};
use model::secret::mask;
use model::workload::{Statement, Transport};
use server::{Companion, ExternalServer, RawReading, Server, Warmed};

use crate::rig::ServerUnderTest;

/// The argument that makes pgdyno read files, bypassing the page cache.
const READ_COMMAND: &str = "read-files";

/// A running server.
pub(crate) enum ServerHandle {
    /// Started by pgdyno on its own data directory.
    Own(OwnServer),
    /// Given by a connection string.
    External(ExternalServer),
}

/// A server that pgdyno started, with what its topology has next to it, which ends first.
pub(crate) struct OwnServer {
    pub(crate) companion: Option<Companion>,
    pub(crate) server: Server,
}

impl OwnServer {
    /// The count of commits in the tested database, to which a pooler would keep connections open.
    fn commits(&self, expected: Option<u64>) -> Result<u64, server::Error> {
        if let Some(companion) = &self.companion {
            companion.close_idle_connections()?;
        }
        self.server.commits(expected)
    }

    fn warm(&self) -> Result<Warmed, server::Error> {
        if let Some(companion) = &self.companion {
            companion.warm()?;
        }
        self.server.warm()
    }
}

impl ServerHandle {
    /// Facts that it reports about itself. The tested database counts the queries.
    pub(crate) fn facts(&self) -> ServerFacts {
        match self {
            Self::Own(own) => own.server.facts(),
            Self::External(server) => server.facts(),
        }
    }
}

impl ServerUnderTest for ServerHandle {
    fn connection(&self, transport: Transport) -> Result<Connection, server::Error> {
        match self {
            Self::Own(own) => {
                let companion = own.companion.as_ref().and_then(|companion| companion.connection(transport));
                Ok(companion.unwrap_or_else(|| own.server.connection(transport)))
            }
            Self::External(server) => server.connection(transport),
        }
    }

    fn own_connection(&self, database: &str) -> Connection {
        match self {
            Self::Own(own) => own.server.own_connection(database),
            Self::External(server) => server.own_connection(database),
        }
    }

    fn pid(&self) -> Option<u32> {
        match self {
            Self::Own(own) => Some(own.server.pid()),
            Self::External(server) => server.pid(),
        }
    }

    fn has_hidden_processes(&self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::External(server) => server.has_hidden_processes(),
        }
    }

    fn data_directory(&self) -> Option<&Path> {
        match self {
            Self::Own(own) => Some(own.server.data_directory()),
            Self::External(_) => None,
        }
    }

    fn run(&self, statement: &str) -> Result<u64, server::Error> {
        match self {
            Self::Own(own) => own.server.run(statement),
            Self::External(server) => server.run(statement),
        }
    }

    fn run_all(&self, statements: &[Statement]) -> Result<(), server::Error> {
        match self {
            Self::Own(own) => own.server.run_all(statements),
            Self::External(server) => server.run_all(statements),
        }
    }

    fn figure(&self, statements: &[Statement]) -> Result<f64, server::Error> {
        match self {
            Self::Own(own) => own.server.figure(statements),
            Self::External(server) => server.figure(statements),
        }
    }

    fn checkpoint(&self) -> Result<bool, server::Error> {
        match self {
            Self::Own(own) => own.server.checkpoint().map(|()| true),
            Self::External(server) => server.checkpoint(),
        }
    }

    fn warm(&self) -> Result<Warmed, server::Error> {
        match self {
            Self::Own(own) => own.warm(),
            Self::External(server) => server.warm(),
        }
    }

    fn raw_read(
        &self,
        relation: &str,
        program: &Path,
        interrupt: &AtomicBool,
    ) -> Result<Option<RawReading>, server::Error> {
        match self {
            Self::Own(own) => own.server.raw_read(relation, program, &[READ_COMMAND], interrupt).map(Some),
            Self::External(_) => Ok(None),
        }
    }

    fn version(&self) -> Result<(String, String), server::Error> {
        match self {
            Self::Own(own) => own.server.version(),
            Self::External(server) => server.version(),
        }
    }

    fn database_bytes(&self) -> Result<u64, server::Error> {
        match self {
            Self::Own(own) => own.server.database_bytes(),
            Self::External(server) => server.database_bytes(),
        }
    }

    fn settings(&self) -> Result<Vec<Setting>, server::Error> {
        match self {
            Self::Own(own) => own.server.settings(),
            Self::External(server) => server.settings(),
        }
    }

    fn commits(&self, expected: Option<u64>) -> Result<u64, server::Error> {
        match self {
            Self::Own(own) => own.commits(expected),
            Self::External(server) => server.commits(expected),
        }
    }

    fn limits(&self) -> Option<LimitsInForce> {
        match self {
            Self::Own(own) => own.server.limits(),
            Self::External(_) => None,
        }
    }

    fn exit_status(&mut self, within: Duration) -> Option<String> {
        match self {
            Self::Own(own) => {
                wait_until(within, || own.server.exited().is_some());
                own.server.exited().map(|status| status.to_string())
            }
            Self::External(_) => None,
        }
    }

    fn take_log(&mut self) -> Option<String> {
        match self {
            Self::Own(own) => own.server.take_log().ok(),
            Self::External(_) => None,
        }
    }

    fn companion(&self) -> Option<&Companion> {
        match self {
            Self::Own(own) => own.companion.as_ref(),
            Self::External(_) => None,
        }
    }

    fn catch_up(&self, within: Duration) -> Result<bool, server::Error> {
        match self {
            Self::Own(OwnServer { companion: Some(companion), server }) => companion.catch_up(server, within),
            Self::Own(_) | Self::External(_) => Ok(true),
        }
    }

    fn companion_failure(&mut self) -> Option<String> {
        match self {
            Self::Own(OwnServer { companion: Some(companion), server }) => companion.failure(server),
            Self::Own(_) | Self::External(_) => None,
        }
    }

    fn take_companion_log(&mut self) -> Option<Log> {
        match self {
            Self::Own(own) => {
                let companion = own.companion.as_mut()?;
                let name = companion.kind().as_str().to_owned();
                Some(Log { name, text: mask(&companion.take_log()?) })
            }
            Self::External(_) => None,
        }
    }
}
