//! A collector, and what it is given.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::metrics::Metrics;
use model::plan::Collect;
use model::profile::{Profile, Profiled, Stacks};
use model::record::Event;
use model::waits::{StatementUse, Waits};
use wire::{ConnectParams, ParamError};

use crate::error::CollectError;
use crate::load_clock::LoadClock;
use crate::os::{Backends, Watched};
use crate::postgres::{Commits, LoadSessions, Session};
use crate::profile::Perf;

/// Time limit of a statement that is repeated during the load; one that takes longer is a failed reading.
const REPEATED_WITHIN: Duration = Duration::from_millis(900);
/// Time limit of a statement before or after the load.
const ONCE_WITHIN: Duration = Duration::from_secs(30);

/// The database for questions that the tested one must not count.
pub(super) const CONTROL_DATABASE: &str = "postgres";

/// A collector that has started. During the load it works in a thread of its own, if at all, and goes by the
/// [clock](Context::clock), which says when the load starts and ends.
pub(super) trait Collector {
    /// Everything it gathered; the clock says that the load has ended. `interrupt` cuts short what takes long.
    ///
    /// # Errors
    /// It gathered nothing, and why.
    fn finish(
        self: Box<Self>,
        context: &Context<'_>,
        interrupt: &AtomicBool,
    ) -> Result<Collected, CollectError>;
}

/// Starts a collector; what it returns as an error becomes a note of the trial.
pub(super) type Start = fn(&Context<'_>) -> Started;

/// A collector that has started; none if the plan does not ask for it, or the server does not have what it reads.
pub(super) type Started = Result<Option<Box<dyn Collector>>, CollectError>;

/// What to collect, and of what.
pub struct Subject<'a> {
    /// The plan's choice of collectors.
    pub collect: Collect,
    /// The profile to take, and the program that takes it.
    pub profile: Option<(Profile, &'a Perf)>,
    /// Parameters of pgdyno's own sessions in a database of the server.
    pub connect: &'a dyn Fn(&str) -> Result<ConnectParams, ParamError>,
    /// The load's sessions.
    pub load: LoadSessions,
    /// The server's data directory, if it is on this machine.
    pub data_directory: Option<&'a Path>,
    /// Process id of the driver.
    pub driver: u32,
    /// Process id of the server's first process, if it is on this machine.
    pub postmaster: Option<u32>,
}

/// What collectors share during a trial.
pub(super) struct Context<'a> {
    pub(super) subject: Subject<'a>,
    /// Start and end of the load.
    pub(super) clock: Arc<LoadClock>,
    /// The processes of the trial.
    pub(super) watched: Watched,
    /// Activity of the server's sessions in the latest complete second, for progress displays.
    pub(super) latest_waits: Arc<Mutex<Vec<Waits>>>,
    /// Commits of the sessions in the tested database.
    commits: RefCell<Vec<Commits>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(subject: Subject<'a>) -> Self {
        let watched = Watched {
            driver: Some(subject.driver),
            postmaster: subject.postmaster,
            profilers: Arc::default(),
            backends: Arc::default(),
        };
        let (clock, latest_waits, commits) = Default::default();
        Self { subject, clock, watched, latest_waits, commits }
    }

    /// The tested database.
    pub(super) fn tested_database(&self) -> &str {
        &self.subject.load.database
    }

    /// A session before or after the load, whose connections the load needs for itself meanwhile.
    pub(super) fn session(&self, database: &str, purpose: &str) -> Result<Session, CollectError> {
        self.open(database, purpose, ONCE_WITHIN)
    }

    /// A session during the load; its backend gets the role `collector`.
    pub(super) fn session_during_load(&self, database: &str, purpose: &str) -> Result<Session, CollectError> {
        let session = self.open(database, purpose, REPEATED_WITHIN)?;
        self.backends(|backends| backends.collectors.push(session.pid()));
        Ok(session)
    }

    /// Changes which backends are none of the load's.
    pub(super) fn backends(&self, change: impl FnOnce(&mut Backends)) {
        change(&mut self.watched.backends.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Commits that the tested database counted for collectors.
    pub(super) fn commits(&self) -> u64 {
        self.commits.borrow().iter().map(Commits::get).sum()
    }

    fn open(&self, database: &str, purpose: &str, timeout: Duration) -> Result<Session, CollectError> {
        let session = Session::open(&(self.subject.connect)(database)?, purpose, timeout)?;
        if database == self.tested_database() {
            self.commits.borrow_mut().push(session.commits());
        }
        Ok(session)
    }
}

/// A trial that is given up has no load, and threads must not wait for it.
impl Drop for Context<'_> {
    fn drop(&mut self) {
        self.clock.end();
    }
}

/// What collectors gathered.
#[derive(Debug, Default)]
pub struct Collected {
    /// Readings of metrics.
    pub metrics: Metrics,
    /// Activity of the server's sessions, second by second.
    pub waits: Vec<Waits>,
    /// Cost of statements.
    pub statements: Vec<StatementUse>,
    /// How functions were sampled.
    pub profile: Option<Profiled>,
    /// Samples by role.
    pub stacks: Vec<Stacks>,
    /// Waits of threads by role.
    pub off_cpu: Vec<Stacks>,
    /// Sessions that held back the load.
    pub events: Vec<Event>,
    /// Failures, for people.
    pub notes: Vec<String>,
    /// Commits that the tested database counted for collectors.
    pub commits: u64,
}

impl Collected {
    /// Adds what another collector gathered.
    pub(super) fn merge(&mut self, other: Self) {
        self.metrics.0.extend(other.metrics.0);
        self.waits.extend(other.waits);
        self.statements.extend(other.statements);
        self.profile = self.profile.take().or(other.profile);
        self.stacks.extend(other.stacks);
        self.off_cpu.extend(other.off_cpu);
        self.events.extend(other.events);
        self.notes.extend(other.notes);
        self.commits += other.commits;
    }
}
