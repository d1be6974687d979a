//! A running server: a child of ours, which ends when we do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use model::environment::ServerFacts;
use model::limits::{Limits, LimitsInForce};
use model::message::{Connection, Endpoint};
use model::record::Setting;
use model::workload::{Statement, Transport};
use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, sched_setaffinity};
use wire::blocking::Session;

use crate::cluster::Cluster;
use crate::control::{Control, socket_params};
use crate::error::Error;
use crate::launch::{Launch, Launched, log_text, read_log};
use crate::limits::Group;
use crate::process::{end_all, postgres_processes};
use crate::readiness::Warmed;
use host::Doing;
use host::process::{signal, until};

/// A fast stop writes all that is dirty to the disk.
const FAST_WITHIN: Duration = Duration::from_secs(120);

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Disconnects clients, writes everything down, ends (`SIGINT`). The data directory is clean then. A server that
    /// takes longer than two minutes is stopped at once.
    Fast,
    /// Ends at once (`SIGQUIT`); the next start has to recover.
    Immediate,
}

/// A server that is running. Dropping it stops it at once and deletes its cluster.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// None only while it is being taken apart.
    cluster: Option<Cluster>,
    data: PathBuf,
    sockets: PathBuf,
    log: PathBuf,
    /// Where in its log this start begins.
    log_from: u64,
    /// How far its log has been taken.
    log_taken: u64,
    port: u16,
    /// The password over TCP; none where it does not listen there.
    password: Option<Secret>,
    pub(crate) control: Control,
    /// Where its limits are; none where it has none.
    group: Option<Box<Group>>,
}

/// A password that is never printed.
#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl Cluster {
    /// Starts a server on it with these settings, and waits until it takes connections through its socket.
    ///
    /// # Errors
    /// A setting that can't be used; a server that does not start, with the end of its log.
    pub fn start(self, settings: &BTreeMap<String, String>) -> Result<Server, Error> {
        Server::start(self, settings, &Limits::none(), Transport::Unix)
    }

    /// Starts a server that is held to limits from its first moment on, and listens on 127.0.0.1, too, for `Transport::Tcp`. What the system's page cache has of its files
    /// is dropped before: it would count for whoever brought it there.
    ///
    /// # Errors
    /// As [`Self::start`]; limits that can't be had here, or in which the server can't live.
    pub fn start_within(
        self,
        settings: &BTreeMap<String, String>,
        limits: &Limits,
        transport: Transport,
    ) -> Result<Server, Error> {
        if !limits.is_none() {
            self.forget_files()?;
        }
        Server::start(self, settings, limits, transport)
    }
}

impl Server {
    pub(crate) fn start(
        cluster: Cluster,
        settings: &BTreeMap<String, String>,
        limits: &Limits,
        transport: Transport,
    ) -> Result<Self, Error> {
        let (data, log) = (cluster.data_directory(), cluster.log());
        let group = if limits.is_none() { None } else { Some(Box::new(cluster.group(limits)?)) };
        let Launched { child, port, password, log_from } = Launch {
            installation: cluster.installation(),
            user: cluster.user(),
            home: cluster.directory(),
            data: &data,
            sockets: cluster.sockets(),
            log: &log,
            settings,
            port: None,
            access: cluster.access(transport),
            detached: false,
            group: group.as_deref(),
        }
        .run()?;
        let sockets = cluster.sockets().to_owned();
        let version = cluster.installation().version();
        let control = Control::new(
            socket_params(&sockets, port, "postgres"),
            format!("in {}", data.display()),
            format!("PostgreSQL {version}"),
            version.major(),
        );
        Ok(Self {
            child,
            cluster: Some(cluster),
            data,
            sockets,
            log,
            log_from,
            log_taken: log_from,
            port,
            password: password.map(Secret),
            control,
            group,
        })
    }

    /// Where it listens.
    pub fn endpoint(&self, transport: Transport) -> Endpoint {
        match transport {
            Transport::Unix => {
                Endpoint::Unix { directory: self.sockets.display().to_string(), port: self.port }
            }
            Transport::Tcp => Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: self.port },
        }
    }

    /// How clients connect to the tested database.
    pub fn connection(&self, transport: Transport) -> Connection {
        Connection {
            endpoint: self.endpoint(transport),
            user: crate::USER.to_owned(),
            database: crate::DATABASE.to_owned(),
            password: self
                .password
                .as_ref()
                .filter(|_| transport == Transport::Tcp)
                .map(|secret| secret.0.clone()),
        }
    }

    /// How pgdyno's own sessions connect to a database, whatever the clients' transport.
    pub fn own_connection(&self, database: &str) -> Connection {
        Connection { database: database.to_owned(), ..self.connection(Transport::Unix) }
    }

    /// A session of pgdyno's own with a database.
    ///
    /// # Errors
    /// The server does not answer, or has no such database.
    pub fn session(&self, database: &str) -> Result<Session, Error> {
        self.control.connect(database)
    }

    /// Its `server_version`, such as `18.1`, and what `version()` prints.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn version(&self) -> Result<(String, String), Error> {
        self.control.version()
    }

    /// Size of the tested database in bytes.
    ///
    /// # Errors
    /// The server does not answer, or has no such database.
    pub fn database_bytes(&self) -> Result<u64, Error> {
        self.control.database_bytes()
    }

    /// Every setting in force, by name.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn settings(&self) -> Result<Vec<Setting>, Error> {
        self.control.settings()
    }

    /// `xact_commit` of the tested database, complete for all connections that have ended: waits until the database
    /// has none, and until the count has settled. `expected` is the count at which waiting is over at once.
    ///
    /// # Errors
    /// The server does not answer, or clients stay connected.
    pub fn commits(&self, expected: Option<u64>) -> Result<u64, Error> {
        self.control.commits(expected)
    }

    /// Process id of the postmaster.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// PostgreSQL's data directory.
    pub fn data_directory(&self) -> &Path {
        &self.data
    }

    /// What it has written to its log since this start.
    ///
    /// # Errors
    /// The log can't be read.
    pub fn log(&self) -> Result<String, Error> {
        Ok(log_text(&read_log(&self.log, self.log_from)?))
    }

    /// What it has written to its log since this was last asked; the first time, since this start.
    ///
    /// # Errors
    /// The log can't be read.
    pub fn take_log(&mut self) -> Result<String, Error> {
        let bytes = read_log(&self.log, self.log_taken)?;
        self.log_taken += bytes.len() as u64;
        Ok(log_text(&bytes))
    }

    /// What it says of its build, its extensions, its authentication and its tables. It is asked in the tested database,
    /// too, where that adds to the count of commits. A question that it does not answer leaves none.
    pub fn facts(&self) -> ServerFacts {
        self.control.facts()
    }

    /// Runs a statement in the tested database. Gives the commits that it counts there, the connection's own among
    /// them.
    ///
    /// # Errors
    /// The server refuses it, or does not answer.
    pub fn run(&self, statement: &str) -> Result<u64, Error> {
        self.control.run(statement)
    }

    /// Runs statements in the tested database, in one session and in their order.
    ///
    /// # Errors
    /// There is no session; or the place of the one that was refused, and why: those after it are not run.
    pub fn run_all(&self, statements: &[Statement]) -> Result<(), Error> {
        self.control.run_all(statements)
    }

    /// Reads the tested database's tables and indexes into the server's buffers, as far as they fit.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn warm(&self) -> Result<Warmed, Error> {
        self.control.warm()
    }

    /// Writes all that is dirty to the disk.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.control.checkpoint().map(drop)
    }

    /// The limits that it is under, and what they have done to it since its start; none where there are none.
    pub fn limits(&self) -> Option<LimitsInForce> {
        self.group.as_deref().map(Group::in_force)
    }

    pub(crate) fn group(&self) -> Option<&Group> {
        self.group.as_deref()
    }

    /// Keeps the server's processes, and those that they will start, to some processors.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn keep_to(&self, cpus: &[u32]) -> Result<(), Error> {
        let mut set = CpuSet::new();
        for &cpu in cpus.iter().filter(|&&cpu| (cpu as usize) < CpuSet::MAX_CPU) {
            set.set(cpu as usize);
        }
        // The postmaster first: what it starts from then on has its processors.
        let others = postgres_processes(self.data_directory()).into_iter().filter(|pid| *pid != self.pid());
        for pid in std::iter::once(self.pid()).chain(others) {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            match sched_setaffinity(pid, &set) {
                Err(error) if error != rustix::io::Errno::SRCH => {
                    return Ok(
                        Err(error).doing("keep to some processors the server in", self.data_directory())?
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// How it ended, if it has. Does not wait.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops it and gives its cluster back.
    ///
    /// # Errors
    /// It does not end even when killed.
    pub fn stop(mut self, mode: StopMode) -> Result<Cluster, Error> {
        self.end(mode)?;
        self.cluster.take().ok_or_else(|| Error::WontStop { pids: vec![], directory: self.data.clone() })
    }

    /// Whether it went down cleanly.
    pub(crate) fn end(&mut self, mode: StopMode) -> Result<bool, Error> {
        if mode == StopMode::Fast && self.exited().is_none() {
            signal(self.pid(), Signal::INT);
            until(FAST_WITHIN, || self.exited().is_some());
        }
        let clean = self.exited().is_some_and(|status| mode == StopMode::Fast && status.success());
        if self.exited().is_none() {
            signal(self.pid(), Signal::QUIT);
        }
        // Also where the postmaster is gone: its children may not be.
        let ended = end_all(&self.data);
        let _ = self.child.wait();
        self.group = None;
        ended.map(|_| clean)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.cluster.is_some()
            && let Err(error) = self.end(StopMode::Immediate)
        {
            tracing::warn!("{error}");
        }
    }
}
