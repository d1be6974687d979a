//! A load as the driver runs it: made from a runner's message by `serve`, or by a command line.

use std::iter;
use std::path::PathBuf;
use std::time::Duration;

use model::workload::Protocol;
use script::{Script, Seeds, Slot, Variables};
use wire::ConnectParams;

use crate::arrivals::Arrivals;

/// Who connects where, and does what for how long.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where and as whom to connect.
    pub connection: ConnectParams,
    /// The clients that are measured.
    pub main: Group,
    /// Others that do something else at the same time.
    pub background: Vec<Group>,
    /// How statements are sent.
    pub protocol: Protocol,
    /// Number of event-loop threads, at least 1 and at most as many as there are clients.
    pub threads: u32,
    /// The random states of all groups' clients, and of threads.
    pub seeds: Seeds,
    /// When it ends at the latest, the warm-up not counted; none: when all clients have done their transactions.
    pub length: Option<Duration>,
    /// Load before the measured window.
    pub warmup: Duration,
    /// Length of one [`Record`](crate::Record) that an observer gets.
    pub interval: Duration,
    /// How long a transaction may go on after the end of the load before it is cut off; none: as long as it takes.
    pub drain: Option<Duration>,
    /// Pause of a client between the end of a transaction and its next.
    pub think: Option<Think>,
    /// Transactions that take longer are late; with an open loop, those that would begin later are skipped.
    pub latency_limit: Option<Duration>,
    /// What to do about errors.
    pub errors: ErrorPolicy,
    /// Whether each command is measured.
    pub per_command: bool,
    /// The log of every transaction.
    pub log: Option<LogOptions>,
    /// What an observer is told beyond errors.
    pub verbosity: Verbosity,
    /// Which event loop to use.
    pub engine: Engine,
}

impl Load {
    /// The plainest load: these clients alone, over the simple protocol, with as many threads as there are seeds for, and
    /// pgbench's ways about errors. Whoever wants it otherwise sets the fields.
    pub fn new(connection: ConnectParams, main: Group, seeds: Seeds) -> Self {
        Self {
            connection,
            main,
            background: Vec::new(),
            protocol: Protocol::Simple,
            threads: u32::try_from(seeds.threads.len()).unwrap_or(u32::MAX),
            seeds,
            length: None,
            warmup: Duration::ZERO,
            interval: Duration::from_secs(1),
            drain: None,
            think: None,
            latency_limit: None,
            errors: ErrorPolicy::pgbench(Some(1)),
            per_command: false,
            log: None,
            verbosity: Verbosity::default(),
            engine: Engine::Auto,
        }
    }

    /// All groups: the one that is measured, then the background ones.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        iter::once(&self.main).chain(&self.background)
    }

    /// Number of clients of all groups.
    pub fn clients(&self) -> u32 {
        self.groups().map(|group| group.clients).sum()
    }
}

/// Clients that do the same.
#[derive(Clone, Debug)]
pub struct Group {
    /// What they run, at least one with a weight.
    pub scripts: Vec<WeightedScript>,
    /// The variables with which each of them begins, over the names that the scripts were parsed with.
    pub variables: Variables,
    /// The variable that gets the client's number in the group; none where no script names it or it has been given a
    /// value.
    pub client_id: Option<Slot>,
    /// How many they are, at least 1.
    pub clients: u32,
    /// When transactions are to begin.
    pub arrivals: Arrivals,
    /// Whether each transaction has a connection of its own.
    pub reconnect: bool,
    /// What their sessions are called in `pg_stat_activity`, where it is not the connection's name.
    pub application_name: Option<String>,
    /// When the first of them begins, after the load's start.
    pub start: Duration,
    /// How much later each further one begins.
    pub stagger: Duration,
    /// How many transactions each of them runs; none: until the load ends.
    pub transactions: Option<u64>,
    /// Whether an observer is told the start and the end of each transaction.
    pub spans: bool,
}

impl Group {
    /// The plainest group: so many clients run one transaction each, in a closed loop, all at once.
    pub fn new(clients: u32, scripts: Vec<WeightedScript>, variables: Variables) -> Self {
        Self {
            scripts,
            variables,
            client_id: None,
            clients,
            arrivals: Arrivals::Closed,
            reconnect: false,
            application_name: None,
            start: Duration::ZERO,
            stagger: Duration::ZERO,
            transactions: Some(1),
            spans: false,
        }
    }
}

/// A script and how often it is chosen.
#[derive(Clone, Debug)]
pub struct WeightedScript {
    /// The script.
    pub script: Script,
    /// Its weight among those of all scripts; 0 means never.
    pub weight: u64,
}

/// A pause of random length, evenly spread between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// Shortest.
    pub least: Duration,
    /// Longest.
    pub most: Duration,
}

/// What to do about a statement that the server refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPolicy {
    /// By SQLSTATE, or the beginning of one, such as `40` for its class; the longest that fits counts.
    pub rules: Vec<(String, OnError)>,
    /// For all others.
    pub otherwise: OnError,
    /// How often a transaction is tried in all; none: without limit.
    pub max_tries: Option<u32>,
    /// Pause before the first repetition; doubled with each further one up to 64 times, and spread by ± 50 %. Zero:
    /// none.
    pub back_off: Duration,
    /// Whether a client that lost its connection gets another one, its transaction counted as failed.
    pub reconnect: bool,
    /// Whether the load ends where a client is aborted.
    pub exit_on_abort: bool,
}

/// What to do about a transaction with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Roll back and repeat it, as often as [`ErrorPolicy::max_tries`] allows; then as `Count`.
    Retry,
    /// Roll back, count it as failed, and go on with the next.
    Count,
    /// Count it as failed, and go on over a new connection.
    Reconnect,
    /// The client ends.
    Abort,
}

impl ErrorPolicy {
    /// pgbench's: serialization failures and deadlocks are retried, or counted where no try is left; any other error
    /// ends the client.
    pub fn pgbench(max_tries: Option<u32>) -> Self {
        let retry = |state: &str| (state.to_owned(), OnError::Retry);
        Self {
            rules: vec![retry(SERIALIZATION_FAILURE), retry(DEADLOCK_DETECTED)],
            otherwise: OnError::Abort,
            max_tries,
            back_off: Duration::ZERO,
            reconnect: false,
            exit_on_abort: false,
        }
    }

    /// What to do about an error of this SQLSTATE.
    pub fn action(&self, sqlstate: &str) -> OnError {
        let fits = self.rules.iter().filter(|(state, _)| sqlstate.starts_with(state.as_str()));
        fits.max_by_key(|(state, _)| state.len()).map_or(self.otherwise, |(_, action)| *action)
    }
}

/// SQLSTATE of a serialization failure.
pub(crate) const SERIALIZATION_FAILURE: &str = "40001";

/// SQLSTATE of a deadlock.
pub(crate) const DEADLOCK_DETECTED: &str = "40P01";

/// The files that pgbench's `--log` writes: one a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct LogOptions {
    /// What the files' names begin with; the process's number follows, and the thread's from the second thread on.
    pub prefix: PathBuf,
    /// Share of the transactions to write; none: all.
    pub sampling_rate: Option<f64>,
    /// Length in seconds of the intervals that are written in place of single transactions.
    pub aggregate_interval: Option<u64>,
    /// Whether failures are told apart.
    pub failures_detailed: bool,
    /// Whether lines have a column for retries.
    pub retries: bool,
}

/// What an observer is told beyond errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verbosity {
    /// Each error that leads to a retry or to a failed transaction.
    pub errors: bool,
    /// Each step of each client.
    pub debug: bool,
    /// The server's notices and warnings.
    pub notices: bool,
}

/// The event loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// io_uring where it works, else epoll.
    #[default]
    Auto,
    /// Edge-triggered epoll.
    Epoll,
    /// io_uring; an error where the kernel does not offer it.
    Uring,
}
