//! A load to run, built by `serve` from a runner's message, or from a command line.

use std::iter;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use model::part::Part;
use model::workload::Protocol;
use script::{Script, Seeds, Slot, Variables};
use wire::ConnectParams;

use crate::arrivals::Arrivals;

/// A load to run: its connection, clients and length. Of a load on several hosts, groups, threads and seeds are those of all.
#[derive(Clone, Debug)]
pub struct Load {
    /// Connection parameters.
    pub connection: ConnectParams,
    /// The measured clients.
    pub main: Group,
    /// Clients of background workloads.
    pub background: Vec<Group>,
    /// How statements are sent.
    pub protocol: Protocol,
    /// Number of event-loop threads, from 1 to the number of clients.
    pub threads: u32,
    /// Random states of the clients of all groups, and of the threads.
    pub seeds: Seeds,
    /// Maximum length after the warm-up; None: until all clients have run their transactions.
    pub length: Option<Duration>,
    /// Load before the measured window.
    pub warmup: Duration,
    /// Length of an interval, for which an observer receives one [`Record`](crate::Record).
    pub interval: Duration,
    /// Time that transactions in flight have after the end of the load before they are aborted; None: no limit.
    pub drain: Option<Duration>,
    /// Pause of a client between two transactions.
    pub think: Option<Think>,
    /// Transactions that take longer are late; in an open loop, those that would begin later are skipped.
    pub latency_limit: Option<Duration>,
    /// Handling of errors.
    pub errors: ErrorPolicy,
    /// Whether each command is measured.
    pub per_command: bool,
    /// The transaction log.
    pub log: Option<LogOptions>,
    /// Messages that an observer receives in addition to errors.
    pub verbosity: Verbosity,
    /// The event loop to use.
    pub engine: Engine,
    /// If the load runs in slices ([`Slices`](model::message::Slices)), their guard.
    pub slice_guard: Option<Duration>,
    /// The part of the load that this process runs.
    pub part: Part,
    /// Whether it begins at the instant of [`Stopper::start_at`](crate::Stopper::start_at), not when all clients are connected.
    pub awaits_start: bool,
}

impl Load {
    /// A load with defaults: only these clients, the simple protocol, as many threads as there are seeds for, and
    /// pgbench's error policy. Callers override the fields.
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
            slice_guard: None,
            part: Part::WHOLE,
            awaits_start: false,
        }
    }

    /// All groups: the measured one, then the background ones.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        iter::once(&self.main).chain(&self.background)
    }

    /// Number of clients of all groups that this process runs.
    pub fn clients(&self) -> u32 {
        self.clients_of(self.groups())
    }

    /// Number of those that connect to the load's server.
    pub(crate) fn clients_of_server(&self) -> u32 {
        self.clients_of(self.groups().filter(|group| group.connection.is_none()))
    }

    /// Number of clients of these groups that this process runs.
    fn clients_of<'a>(&self, groups: impl Iterator<Item = &'a Group>) -> u32 {
        groups.map(|group| self.part.clients(group.clients).len() as u32).sum()
    }

    /// Number of clients of all groups on all hosts.
    pub(crate) fn clients_of_all_hosts(&self) -> u32 {
        self.groups().map(|group| group.clients).sum()
    }

    /// The threads that this process runs.
    pub(crate) fn own_threads(&self) -> Range<u32> {
        self.part.threads(self.threads)
    }
}

/// Clients that share scripts, rate, start and end.
#[derive(Clone, Debug)]
pub struct Group {
    /// Their scripts, at least one with a weight above 0.
    pub scripts: Vec<WeightedScript>,
    /// Initial variables of each client, over the names that the scripts were parsed with.
    pub variables: Variables,
    /// The variable that receives the client's number in the group; None if no script uses it or it already has a
    /// value.
    pub client_id: Option<Slot>,
    /// Number of clients, at least 1.
    pub clients: u32,
    /// Intended starts of transactions.
    pub arrivals: Arrivals,
    /// Whether each transaction opens a connection of its own.
    pub reconnect: bool,
    /// Their server, if it is not the load's: their commits are none of that.
    pub connection: Option<ConnectParams>,
    /// `application_name` of their sessions, if it is not the connection's.
    pub application_name: Option<String>,
    /// Start of the first client, after the load's start.
    pub start: Duration,
    /// Delay between the starts of successive clients.
    pub stagger: Duration,
    /// Transactions per client; None: until the load ends.
    pub transactions: Option<u64>,
    /// Whether the span of each transaction is recorded.
    pub spans: bool,
}

impl Group {
    /// A group with defaults: each client runs one transaction, in a closed loop, all at once.
    pub fn new(clients: u32, scripts: Vec<WeightedScript>, variables: Variables) -> Self {
        Self {
            scripts,
            variables,
            client_id: None,
            clients,
            arrivals: Arrivals::Closed,
            reconnect: false,
            connection: None,
            application_name: None,
            start: Duration::ZERO,
            stagger: Duration::ZERO,
            transactions: Some(1),
            spans: false,
        }
    }
}

/// A script and its weight.
#[derive(Clone, Debug)]
pub struct WeightedScript {
    /// The script.
    pub script: Script,
    /// How often it is chosen, relative to the other scripts; 0: never.
    pub weight: u64,
}

/// A pause of random length, uniformly distributed between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// Lower bound.
    pub min: Duration,
    /// Upper bound.
    pub max: Duration,
}

/// Handling of failed statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPolicy {
    /// Actions by SQLSTATE, or by the beginning of one, such as `40` for its class; the longest match applies.
    pub rules: Vec<(String, OnError)>,
    /// Action for all other errors.
    pub otherwise: OnError,
    /// Maximum tries of a transaction; None: no limit.
    pub max_tries: Option<u32>,
    /// Pause before the first retry; doubled with each further one up to 64 times, with a jitter of ± 50 %. Zero: none.
    pub back_off: Duration,
    /// Whether a client that loses its connection reconnects, with its transaction counted as failed.
    pub reconnect: bool,
    /// Whether the load ends when a client is aborted.
    pub exit_on_abort: bool,
}

/// Action after an error in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Roll back and retry, as often as [`ErrorPolicy::max_tries`] allows; then as `Count`.
    Retry,
    /// Roll back, count it as failed, and continue with the next.
    Count,
    /// Count it as failed, and continue over a new connection.
    Reconnect,
    /// Abort the client.
    Abort,
}

impl ErrorPolicy {
    /// pgbench's policy: serialization failures and deadlocks are retried, or counted if no try is left; any other
    /// error aborts the client.
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

    /// The action for an error of this SQLSTATE.
    pub fn action(&self, sqlstate: &str) -> OnError {
        let matching = self.rules.iter().filter(|(state, _)| sqlstate.starts_with(state.as_str()));
        matching.max_by_key(|(state, _)| state.len()).map_or(self.otherwise, |(_, action)| *action)
    }
}

/// SQLSTATE of a serialization failure.
pub(crate) const SERIALIZATION_FAILURE: &str = "40001";

/// SQLSTATE of a deadlock.
pub(crate) const DEADLOCK_DETECTED: &str = "40P01";

/// Options of the log that pgbench's `--log` writes, one file per thread.
#[derive(Clone, Debug, PartialEq)]
pub struct LogOptions {
    /// Prefix of the file names; the process ID follows, and from the second thread on the thread's number.
    pub prefix: PathBuf,
    /// Share of the transactions to write; None: all.
    pub sampling_rate: Option<f64>,
    /// Length in seconds of the intervals that are written instead of single transactions.
    pub aggregate_interval: Option<u64>,
    /// Whether failures are written by kind.
    pub failures_detailed: bool,
    /// Whether lines have a column for retries.
    pub retries: bool,
}

/// Messages that an observer receives in addition to errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verbosity {
    /// Each error that leads to a retry or to a failed transaction.
    pub errors: bool,
    /// Each step of each client.
    pub debug: bool,
    /// The server's notices and warnings.
    pub notices: bool,
}

/// An event loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Epoll if each thread has one client; else io_uring if it works.
    #[default]
    Auto,
    /// Edge-triggered epoll; a thread with one client receives its answers directly.
    Epoll,
    /// io_uring; an error if the kernel does not support it.
    Uring,
}
