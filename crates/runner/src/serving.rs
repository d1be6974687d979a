//! The server that a trial runs on, whosever it is.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use model::environment::ServerFacts;
use model::limits::LimitsInForce;
use model::message::Connection;
use model::record::Setting;
use model::workload::{Statement, Transport};
use server::{ExternalServer, RawReading, Server, Warmed};

/// The argument that makes pgdyno a process which reads files past the page cache.
const READ_COMMAND: &str = "read-files";

/// A server that answers.
pub(crate) enum Serving {
    /// Started by us, on a data directory of ours.
    Own(Server),
    /// One that runs without us.
    External(ExternalServer),
}

impl Serving {
    pub(crate) fn connection(&self, transport: Transport) -> Result<Connection, server::Error> {
        match self {
            Self::Own(server) => Ok(server.connection(transport)),
            Self::External(server) => server.connection(transport),
        }
    }

    pub(crate) fn version(&self) -> Result<(String, String), server::Error> {
        match self {
            Self::Own(server) => server.version(),
            Self::External(server) => server.version(),
        }
    }

    /// How sessions of pgdyno's own connect to a database. The tested one counts their transactions with the load's.
    pub(crate) fn own_connection(&self, database: &str) -> Connection {
        match self {
            Self::Own(server) => server.own_connection(database),
            Self::External(server) => server.own_connection(database),
        }
    }

    /// Runs statements in the tested database, in one session, up to one that is refused: its place, and why.
    pub(crate) fn run_all(&self, statements: &[Statement]) -> Result<(), server::Error> {
        match self {
            Self::Own(server) => server.run_all(statements),
            Self::External(server) => server.run_all(statements),
        }
    }

    /// The process id of its first process, where that is ours.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Own(server) => Some(server.pid()),
            Self::External(_) => None,
        }
    }

    pub(crate) fn settings(&self) -> Result<Vec<Setting>, server::Error> {
        match self {
            Self::Own(server) => server.settings(),
            Self::External(server) => server.settings(),
        }
    }

    /// What it says of itself; asking is counted in the tested database.
    pub(crate) fn facts(&self) -> ServerFacts {
        match self {
            Self::Own(server) => server.facts(),
            Self::External(server) => server.facts(),
        }
    }

    pub(crate) fn database_bytes(&self) -> Result<u64, server::Error> {
        match self {
            Self::Own(server) => server.database_bytes(),
            Self::External(server) => server.database_bytes(),
        }
    }

    pub(crate) fn commits(&self, expected: Option<u64>) -> Result<u64, server::Error> {
        match self {
            Self::Own(server) => server.commits(expected),
            Self::External(server) => server.commits(expected),
        }
    }

    pub(crate) fn run(&self, statement: &str) -> Result<u64, server::Error> {
        match self {
            Self::Own(server) => server.run(statement),
            Self::External(server) => server.run(statement),
        }
    }

    pub(crate) fn warm(&self) -> Result<Warmed, server::Error> {
        match self {
            Self::Own(server) => server.warm(),
            Self::External(server) => server.warm(),
        }
    }

    /// What the disk gives of a relation, past the server; none where its files are not ours.
    pub(crate) fn raw_read(
        &self,
        relation: &str,
        program: &Path,
        interrupt: &AtomicBool,
    ) -> Result<Option<RawReading>, server::Error> {
        match self {
            Self::Own(server) => server.raw_read(relation, program, &[READ_COMMAND], interrupt).map(Some),
            Self::External(_) => Ok(None),
        }
    }

    /// False where the role may not.
    pub(crate) fn checkpoint(&self) -> Result<bool, server::Error> {
        match self {
            Self::Own(server) => server.checkpoint().map(|()| true),
            Self::External(server) => server.checkpoint(),
        }
    }

    /// The limits that it is under, and what they have done to it.
    pub(crate) fn limits(&self) -> Option<LimitsInForce> {
        match self {
            Self::Own(server) => server.limits(),
            Self::External(_) => None,
        }
    }

    /// Where its data are, if that is here.
    pub(crate) fn data_directory(&self) -> Option<&Path> {
        match self {
            Self::Own(server) => Some(server.data_directory()),
            Self::External(_) => None,
        }
    }

    /// How it ended, if it has; of one that is not ours that can't be known.
    pub(crate) fn exited(&mut self) -> Option<String> {
        match self {
            Self::Own(server) => server.exited().map(|status| status.to_string()),
            Self::External(_) => None,
        }
    }

    /// What it has written to its log since this was last asked, if that is ours.
    pub(crate) fn take_log(&mut self) -> Option<String> {
        match self {
            Self::Own(server) => server.take_log().ok(),
            Self::External(_) => None,
        }
    }
}
