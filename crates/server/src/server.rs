//! A running server: a child of this process, which ends with it.

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
use wire::ConnectParams;
use wire::blocking::Session;

use crate::cluster::Cluster;
use crate::control::{Control, socket_params};
use crate::error::Error;
use crate::launch::{Launch, Launched, log_text, read_log};
use crate::limits::Group;
use crate::process::{end_all, postgres_processes};
use crate::readiness::Warmed;
use host::IoContext;
use host::process::{signal, wait_until};

/// Time limit of a fast stop, which writes all dirty data to disk.
const FAST_STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// Way to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Disconnects clients, writes a checkpoint, ends (`SIGINT`). The data directory is then clean. A server that takes
    /// longer than two minutes is stopped immediately.
    Fast,
    /// Ends immediately (`SIGQUIT`); the next start needs recovery.
    Immediate,
}

/// A running server. Dropping it stops it immediately and deletes its cluster.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// None only while this is taken apart.
    cluster: Option<Cluster>,
    data: PathBuf,
    sockets: PathBuf,
    log: PathBuf,
    /// Offset of this start in its log.
    log_from: u64,
    /// Offset up to which its log was returned.
    log_taken: u64,
    port: u16,
    /// Password over TCP; none if it does not listen there.
    password: Option<Secret>,
    pub(crate) control: Control,
    /// Control groups of its limits; none without limits.
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
    /// Starts a server on it with these settings, and waits until it accepts connections through its socket.
    ///
    /// # Errors
    /// A setting can't be used; the server does not start, with the end of its log.
    pub fn start(self, settings: &BTreeMap<String, String>) -> Result<Server, Error> {
        Server::start(self, settings, &Limits::none(), Transport::Unix)
    }

    /// Starts a server with limits in force from its first moment on, which also listens on 127.0.0.1 for
    /// `Transport::Tcp`. Its files are dropped from the system's page cache before: they would be charged to the group
    /// that read them.
    ///
    /// # Errors
    /// As [`Self::start`]; limits are not available here, or too low for the server.
    pub fn start_within(
        self,
        settings: &BTreeMap<String, String>,
        limits: &Limits,
        transport: Transport,
    ) -> Result<Server, Error> {
        if !limits.is_none() {
            self.drop_page_cache()?;
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

    /// Endpoint that it listens on.
    pub fn endpoint(&self, transport: Transport) -> Endpoint {
        match transport {
            Transport::Unix => {
                Endpoint::Unix { directory: self.sockets.display().to_string(), port: self.port }
            }
            Transport::Tcp => Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: self.port },
        }
    }

    /// Clients' connection to the tested database.
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

    /// Parameters of a session with the tested database, through the socket.
    pub fn socket_params(&self) -> ConnectParams {
        socket_params(&self.sockets, self.port, crate::DATABASE)
    }

    /// pgdyno's own connection to a database, for any transport of the clients.
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

    /// `xact_commit` of the tested database, complete for all connections that have ended: waits until the database has
    /// none, and the count has settled. The wait ends immediately if the count is `expected`.
    ///
    /// # Errors
    /// The server does not answer, or clients stay connected.
    pub fn commits(&self, expected: Option<u64>) -> Result<u64, Error> {
        self.control.commits(expected)
    }

    /// Process ID of the postmaster.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// PostgreSQL's data directory.
    pub fn data_directory(&self) -> &Path {
        &self.data
    }

    /// Output to its log since this start.
    ///
    /// # Errors
    /// The log can't be read.
    pub fn log(&self) -> Result<String, Error> {
        Ok(log_text(&read_log(&self.log, self.log_from)?))
    }

    /// Output to its log since the last call; the first time, since this start.
    ///
    /// # Errors
    /// The log can't be read.
    pub fn take_log(&mut self) -> Result<String, Error> {
        let bytes = read_log(&self.log, self.log_taken)?;
        self.log_taken += bytes.len() as u64;
        Ok(log_text(&bytes))
    }

    /// Facts about its build, extensions, authentication and tables. Queries run in the tested database, too, and count
    /// as commits there. A query that fails leaves no fact.
    pub fn facts(&self) -> ServerFacts {
        self.control.facts()
    }

    /// Runs a statement in the tested database. Returns the commits that it counts there, including the connection's
    /// own.
    ///
    /// # Errors
    /// The server refuses it, or does not answer.
    pub fn run(&self, statement: &str) -> Result<u64, Error> {
        self.control.run(statement)
    }

    /// Runs statements in the tested database, in one session and in order.
    ///
    /// # Errors
    /// There is no session; or a statement was refused, with its place and the cause: those after it do not run.
    pub fn run_all(&self, statements: &[Statement]) -> Result<(), Error> {
        self.control.run_all(statements)
    }

    /// Runs statements in the tested database, in one session that can only read. Returns the number that the last one returns.
    ///
    /// # Errors
    /// There is no session; a statement was refused, with its place and the cause; or the last one returns no number, or not
    /// one row.
    pub fn figure(&self, statements: &[Statement]) -> Result<f64, Error> {
        self.control.figure(statements)
    }

    /// Reads the tested database's tables and indexes into the server's buffers, as far as they fit.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn warm(&self) -> Result<Warmed, Error> {
        self.control.warm()
    }

    /// Writes all dirty data to disk.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.control.checkpoint().map(drop)
    }

    /// Its limits, and their effects since its start; none without limits.
    pub fn limits(&self) -> Option<LimitsInForce> {
        self.group.as_deref().map(Group::in_force)
    }

    /// Parameters of the connections that another server of pgdyno's own makes to it, as libpq's keywords and values: through
    /// its socket, as its user.
    pub(crate) fn conninfo(&self, database: Option<&str>, application_name: &str) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
        let database = database.map(|name| format!(" dbname='{}'", quoted(name))).unwrap_or_default();
        format!(
            "host='{}' port={} user={}{database} application_name={application_name}",
            quoted(&self.sockets.display().to_string()),
            self.port,
            crate::USER,
        )
    }

    /// Its cluster's directory for sockets.
    pub(crate) fn sockets(&self) -> &Path {
        &self.sockets
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The cluster that it runs on.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    pub(crate) fn group(&self) -> Option<&Group> {
        self.group.as_deref()
    }

    /// Restricts the server's processes, and those that they will start, to some processors.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn set_cpu_affinity(&self, cpus: &[u32]) -> Result<(), Error> {
        // The postmaster first: its new children inherit the processors.
        let others = postgres_processes(self.data_directory()).into_iter().filter(|pid| *pid != self.pid());
        for pid in std::iter::once(self.pid()).chain(others) {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            match host::pin_to_cpus(pid, cpus) {
                Err(error) if error != rustix::io::Errno::SRCH => {
                    return Ok(
                        Err(error).doing("set the CPU affinity of the server in", self.data_directory())?
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Exit status, if it has ended. Does not wait.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops it and returns its cluster.
    ///
    /// # Errors
    /// It does not end even when killed.
    pub fn stop(mut self, mode: StopMode) -> Result<Cluster, Error> {
        self.end(mode)?;
        self.cluster.take().ok_or_else(|| Error::WontStop { pids: vec![], directory: self.data.clone() })
    }

    /// Stops it; returns whether it shut down cleanly.
    pub(crate) fn end(&mut self, mode: StopMode) -> Result<bool, Error> {
        if mode == StopMode::Fast && self.exited().is_none() {
            signal(self.pid(), Signal::INT);
            wait_until(FAST_STOP_TIMEOUT, || self.exited().is_some());
        }
        let clean = self.exited().is_some_and(|status| mode == StopMode::Fast && status.success());
        if self.exited().is_none() {
            signal(self.pid(), Signal::QUIT);
        }
        // Even if the postmaster is gone: its children may not be.
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
