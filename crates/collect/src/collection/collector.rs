//! The collector trait and its context.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::message::SessionSamples;
use model::metrics::Metrics;
use model::plan::Collect;
use model::profile::{Profile, ProfileSummary, Stacks};
use model::record::Event;
use model::topology;
use model::waits::{StatementUse, Waits};
use wire::{ConnectParams, ParamError};

use crate::error::CollectError;
use crate::load_clock::LoadClock;
use crate::os::{Backends, Watched};
use crate::postgres::{Commits, LoadSessions, Session};
use crate::profile::Perf;

/// Time limit of a statement that is repeated during the load; if it takes longer, the reading fails.
const REPEATED_QUERY_TIMEOUT: Duration = Duration::from_millis(900);
/// Time limit of a statement before or after the load.
const SINGLE_QUERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Database for queries that the tested one must not count.
pub(super) const CONTROL_DATABASE: &str = "postgres";

/// A started collector. During the load it works in its own thread, if at all, and follows the [clock](Context::clock),
/// which reports start and end of the load.
pub(super) trait Collector {
    /// Waits for what it reads before the load, if its thread has not done so.
    fn wait_until_ready(&self) {}

    /// Returns the results after the clock has reported the load's end. `interrupt` cuts slow work short.
    ///
    /// # Errors
    /// The reason why there are no results.
    fn finish(
        self: Box<Self>,
        context: &Context<'_>,
        interrupt: &AtomicBool,
    ) -> Result<Collected, CollectError>;
}

/// Starts a collector; an error becomes a note of the trial.
pub(super) type Start = fn(&Context<'_>) -> Started;

/// A started collector; none if the plan does not include it, or the server lacks its source.
pub(super) type Started = Result<Option<Box<dyn Collector>>, CollectError>;

/// Server, processes and data to collect.
pub struct Subject<'a> {
    /// The plan's choice of collectors.
    pub collect: Collect,
    /// The profile to take, and the program that takes it.
    pub profile: Option<(Profile, &'a Perf)>,
    /// Parameters of pgdyno's own sessions in a database of the server.
    pub connect: &'a dyn Fn(&str) -> Result<ConnectParams, ParamError>,
    /// The load's sessions.
    pub load: LoadSessions,
    /// Whether the load plays a trace, whose driver wants to know what each session waited for.
    pub plays_trace: bool,
    /// The server's data directory, if it is on this machine.
    pub data_directory: Option<&'a Path>,
    /// Process id of the driver; none if it is not on this machine.
    pub driver: Option<u32>,
    /// Process id of the server's first process, if it is on this machine and known.
    pub postmaster: Option<u32>,
    /// Whether the server may be on this machine without its processes being known.
    pub has_hidden_processes: bool,
    /// Whether the load alternates with that of the other side of a session, whose server and driver run too.
    pub has_other_side: bool,
    /// What the server's topology has next to it.
    pub companion: Option<Companion<'a>>,
}

/// A standby, a subscriber or a pooler next to the server.
pub struct Companion<'a> {
    /// What it is.
    pub kind: topology::Companion,
    /// Process id of its first process.
    pub pid: u32,
    /// Parameters of pgdyno's own sessions with a database of a replica, or with the console of a pooler.
    pub connect: &'a dyn Fn(&str) -> Result<ConnectParams, ParamError>,
    /// The marker row by which lag is measured; none of a pooler.
    pub marker: Option<MarkerTable>,
}

/// A table with the row `(id, number) = (1, …)`.
#[derive(Clone, Copy, Debug)]
pub struct MarkerTable {
    /// Its database.
    pub database: &'static str,
    /// Its name with its schema.
    pub table: &'static str,
}

/// State that collectors share during a trial.
pub(super) struct Context<'a> {
    pub(super) subject: Subject<'a>,
    /// Start and end of the load.
    pub(super) clock: Arc<LoadClock>,
    /// The processes of the trial.
    pub(super) watched: Watched,
    /// Activity of the server's sessions in the latest complete second, for progress displays.
    pub(super) latest_waits: Arc<Mutex<Vec<Waits>>>,
    /// Sessions of a trace in the samples that its driver has not got; none before the first sample.
    pub(super) session_samples: Arc<Mutex<Option<SessionSamples>>>,
    /// Commits of the sessions in the tested database.
    commits: RefCell<Vec<Commits>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(subject: Subject<'a>) -> Self {
        let watched = Watched {
            driver: subject.driver,
            postmaster: subject.postmaster,
            has_hidden_processes: subject.has_hidden_processes,
            has_other_side: subject.has_other_side,
            companion: subject.companion.as_ref().map(|companion| (companion.pid, companion.kind)),
            profilers: Arc::default(),
            backends: Arc::default(),
        };
        let (clock, latest_waits, session_samples, commits) = Default::default();
        Self { subject, clock, watched, latest_waits, session_samples, commits }
    }

    /// The tested database.
    pub(super) fn tested_database(&self) -> &str {
        &self.subject.load.database
    }

    /// Opens a session before or after the load, which may need all connections meanwhile.
    pub(super) fn session(&self, database: &str, purpose: &str) -> Result<Session, CollectError> {
        self.open(database, purpose, SINGLE_QUERY_TIMEOUT)
    }

    /// Opens a session during the load; its backend gets the role `collector`.
    pub(super) fn session_during_load(&self, database: &str, purpose: &str) -> Result<Session, CollectError> {
        let session = self.open(database, purpose, REPEATED_QUERY_TIMEOUT)?;
        self.backends(|backends| backends.collectors.push(session.pid()));
        Ok(session)
    }

    /// Opens a session with a companion.
    pub(super) fn session_of_companion(
        &self,
        companion: &Companion<'_>,
        database: &str,
        purpose: &str,
    ) -> Result<Session, CollectError> {
        Session::open(&(companion.connect)(database)?, purpose, REPEATED_QUERY_TIMEOUT)
    }

    /// Changes the set of backends that are not the load's.
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

/// Ends the load for threads of a trial that is abandoned without one.
impl Drop for Context<'_> {
    fn drop(&mut self) {
        self.clock.end();
    }
}

/// Results of the collectors.
#[derive(Debug, Default)]
pub struct Collected {
    /// Readings of metrics.
    pub metrics: Metrics,
    /// Activity of the server's sessions, second by second.
    pub waits: Vec<Waits>,
    /// Cost of statements.
    pub statements: Vec<StatementUse>,
    /// Parameters and counts of the profile.
    pub profile: Option<ProfileSummary>,
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
    /// Adds the results of another collector.
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
