//! Messages between the runner and the driver process: one JSON object per line, on the driver's pipes.
//!
//! The runner writes a [`Request::Run`], then at most one [`Request::Stop`]; end of file on the driver's standard input
//! means that the runner has exited, and the driver ends at once. The driver replies with [`Reply`]s: `Hello`,
//! `Connected`, `Started`, then an `Interval` at the end of each second and `ClientDied` as they happen, and at the end
//! exactly one of `Finished` or `Failed`. Of a trace, a `Statement` for each of its shapes precedes `Finished`; the runner
//! answers each `Interval` of it with a [`Request::Sampled`].
//!
//! A load in slices ([`Load::slices`]) begins no transaction before its first [`Request::Resume`], which begins a slice.
//! [`Request::Pause`] ends it; once the transactions in flight have ended, the driver replies `Paused`, and does nothing
//! until the next `Resume`. A slice that the end of the load cuts short is reported before `Finished`: there is one
//! `Paused` per `Resume`.
//!
//! A part of a load ([`Load::part`]) begins at the instant of its [`Request::Start`], which follows `Connected`. Its driver
//! answers [`Request::ReadClock`] until its standard input ends, also after `Finished`.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::outage::Outage;
use crate::part::Part;
use crate::trace::PlayedStatement;
use crate::units::Rate;
use crate::workload::{Protocol, Workload};

/// Version of these messages; a driver with another version in its `Hello` is not used.
pub const VERSION: u32 = 15;

/// Message from the runner to the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Connect the clients and run this load.
    Run(Box<Load>),
    /// Start no further transactions, wait for those in flight, report `Finished`.
    Stop,
    /// Begin a slice; only after `Started`, and after the `Paused` of the slice before.
    Resume,
    /// End the slice: start no further transactions, wait for those in flight, report `Paused`. Ignored if no slice
    /// runs, because it may cross the end of the load.
    Pause,
    /// Report the driver's clock at once, as a [`Reply::Clock`] with this number.
    ReadClock {
        /// Number of the request.
        number: u32,
    },
    /// Begin the part of a load at this instant: at once if it has passed, but with the times of all that follows as if it
    /// had begun then.
    Start {
        /// The instant, by the driver's `CLOCK_MONOTONIC`, in microseconds.
        at_us: i64,
    },
    /// The sessions that executed a statement of a trace when they were sampled, since the last of these requests; none if
    /// sessions are not sampled.
    Sampled(Option<SessionSamples>),
}

/// Samples of sessions, each as often as it was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSamples {
    /// Time of the last sample, in microseconds after the load's start: later ones are in later requests.
    pub until_us: i64,
    /// The sessions that executed a statement, in the order of time.
    pub sessions: Vec<SessionSample>,
}

/// A session that executed a statement when it was sampled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSample {
    /// Process id of its backend.
    pub pid: i32,
    /// Start of its statement, in microseconds after the load's start.
    pub started_us: i64,
    /// What it waited for, as `IO:DataFileRead`; [`CPU`](crate::waits::CPU) if it did not wait.
    pub wait: String,
}

/// A load: connection, workload, clients and duration. Clients, threads and rate are those of the whole load, also if the
/// driver runs a part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Server, role and database to connect to.
    pub connection: Connection,
    /// The same of the standby or subscriber, for background workloads that connect to it.
    #[serde(default)]
    pub replica: Option<Connection>,
    /// The workload of the clients, with its background workloads.
    pub workload: Workload,
    /// pgbench's scale factor: the value of the script variable `:scale`.
    pub scale: u32,
    /// Path of the trace that the workload plays, if it plays one: then clients, threads, rate, protocol, seed and slices have
    /// no meaning.
    #[serde(default)]
    pub trace: Option<PathBuf>,
    /// Protocol of the statements.
    pub protocol: Protocol,
    /// Number of clients, at least 1; excludes background clients.
    pub clients: u32,
    /// Number of event-loop threads, at least 1 and at most `clients`.
    pub threads: u32,
    /// Transactions started per second by these clients together, at random intervals.
    pub rate: Rate,
    /// CPUs that the driver is pinned to; none for all.
    pub cpus: Option<Vec<u32>>,
    /// Seed of every random number drawn in scripts, as pgbench's `--random-seed`.
    pub seed: u64,
    /// Load before the measured window, in microseconds; not used with `slices`.
    pub warmup_us: u64,
    /// Length of the measured window, in microseconds; if clients have iterations, its maximum. Not used with `slices`.
    pub duration_us: u64,
    /// Length of one [`Interval`], in microseconds (1 s in bundles).
    pub interval_us: u64,
    /// Runs the load in slices, until `Stop` or until clients with iterations have run them; none: in one piece.
    pub slices: Option<Slices>,
    /// The part of the load that this driver runs, from a `Start` on; none: all of it, from the moment at which all clients
    /// are connected.
    pub part: Option<Part>,
}

/// How a load runs in slices.
///
/// A transaction belongs to the slice that began it, with its sleeps, retries and the pauses before them, and so runs on
/// after `Pause`; one that has not ended 5 s later is aborted with its client, as at the end of a load. Between slices
/// time stands still for the clients: what remains of a delay between two transactions passes in the next slice, and
/// the intended starts of an open loop follow the time from each `Resume` to its `Pause`. What was due at a `Pause` and
/// had not begun begins in the next slice, and its latency does not include the pause.
///
/// The window of such a load is the time from its start to its end, with the pauses. Background workloads pause too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slices {
    /// Time after the start of each slice whose transactions only [`Slice::guarded`] counts, in microseconds.
    pub guard_us: u64,
}

/// Server, role and database to connect to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The server's address.
    pub endpoint: Endpoint,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, if the server asks for one.
    pub password: Option<String>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("endpoint", &self.endpoint)
            .field("user", &self.user)
            .field("database", &self.database)
            .field("password", &self.password.as_ref().map(|_| "…"))
            .finish()
    }
}

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// The socket `.s.PGSQL.<port>` in this directory.
    Unix {
        /// Directory of the socket.
        directory: String,
        /// Port, which is part of the socket's name.
        port: u16,
    },
    /// A host name or address, and a port.
    Tcp {
        /// Host name or IP address.
        host: String,
        /// Port.
        port: u16,
    },
    /// The server of a connection string, as libpq resolves it.
    Conninfo {
        /// The connection string; its role, database and password are not used.
        conninfo: String,
    },
}

/// Message from the driver to the runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The first line: version of the driver's messages.
    Hello {
        /// [`VERSION`] of the driver's build.
        version: u32,
    },
    /// Every client is connected and its statements are prepared; no load yet.
    Connected {
        /// Time to connect all clients, in microseconds.
        connect_us: u64,
        /// Process ids of the backends that serve background workloads.
        background: Vec<i32>,
    },
    /// The load has started.
    Started {
        /// The clocks at its start, which is the origin of all times after it.
        at: ClockReading,
        /// Time from then until the driver began.
        late_us: u64,
    },
    /// The driver's `CLOCK_MONOTONIC`, in microseconds, for [`Request::ReadClock`].
    Clock {
        /// Number of the request.
        number: u32,
        /// Time at which it was received.
        received_us: i64,
        /// Time at which this reply was sent.
        sent_us: i64,
    },
    /// Results of the interval just past. Those that end in a pause between slices are reported after it.
    Interval(Interval),
    /// A slice has ended, and no transaction runs.
    Paused(Slice),
    /// A client can't continue; the others do.
    ClientDied(ClientDeath),
    /// The executions of a statement of a trace, after the load.
    Statement(Box<PlayedStatement>),
    /// The load has ended (by time or by `Stop`) and every connection is closed.
    Finished(Box<Outcome>),
    /// The load could not be run at all.
    Failed {
        /// The action, its object, and why it failed.
        message: String,
        /// The outage that is the reason, if it is one.
        outage: Option<Outage>,
    },
}

/// End of a client that could not continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientDeath {
    /// Time, in microseconds after the load's start.
    pub at_us: u64,
    /// Number of the client, from 0.
    pub client: u32,
    /// SQLSTATE, if the server sent one.
    pub sqlstate: Option<String>,
    /// The action, and why it failed.
    pub message: String,
}

/// Figures of a slice: those of the main clients that began in it. Times are in microseconds after the load's start.
///
/// The throughput of the slice is `transactions` × clients / `client_us`: a client that waits at the end of the slice for
/// the others costs nothing, and no transaction is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Its `Resume`.
    pub start_us: u64,
    /// Its `Pause`, or what ended the load.
    pub pause_us: u64,
    /// End of its last transaction, also of background workloads; `start_us` without any.
    pub end_us: u64,
    /// Succeeded transactions that began after the guard.
    pub transactions: u64,
    /// Failed ones that began after the guard.
    pub failed: u64,
    /// Transactions that began before the end of the guard, succeeded and failed ones.
    pub guarded: u64,
    /// Time of each client from its first begin after the guard to its last end, summed over the clients.
    pub client_us: u64,
    /// Sum of the latencies of `transactions`, from their intended starts.
    pub latency_us: u64,
    /// The same from their actual starts; none in a closed loop.
    pub service_us: Option<u64>,
}

/// Part of a load that an [`Interval`] belongs to. No interval spans two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Phase {
    /// Before the measured window.
    Warmup,
    /// The measured window.
    Measure,
    /// After the window, or after `Stop`: transactions that are still in flight.
    Drain,
}

impl Phase {
    /// Its name in messages and bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Results of one interval of the load, over all threads.
///
/// Intervals follow the clock of the load. In a load in slices they contain the pauses, so that throughput and `busy` of
/// an interval are those of the slices diluted by the pauses in it; each transaction is in exactly one interval, also
/// those of the guard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// Start, in microseconds after the load's start.
    pub start_us: u64,
    /// Length in microseconds; the last interval of a phase may be shorter.
    pub width_us: u64,
    /// Phase of the interval.
    pub phase: Phase,
    /// One entry per script, in the load's order.
    pub scripts: Vec<ScriptInterval>,
    /// The same for background workloads, each script named by
    /// [`BackgroundWorkload::script`](crate::workload::BackgroundWorkload::script). Documents for other programs use
    /// its former name.
    #[serde(rename = "beside")]
    pub background: Vec<ScriptInterval>,
    /// Transactions that ended, of workloads that record spans; in no order.
    pub spans: Vec<TransactionSpan>,
    /// Share of the time that the busiest driver thread worked, also in the kernel, 0 to 1; none if unknown.
    pub busy: Option<f64>,
    /// Largest driver lag (wake-up → response handled), in microseconds; none as above.
    pub lag_max_us: Option<f64>,
    /// Mean driver lag, in microseconds; none if no responses were handled.
    pub lag_mean_us: Option<f64>,
    /// Number of responses handled; none if unknown.
    pub responses: Option<u64>,
    /// Largest delay of the driver in starting a transaction that was due, in microseconds; none in a closed loop.
    pub send_lag_max_us: Option<f64>,
}

impl Interval {
    /// Total driver lag of all responses, in microseconds; none if unknown.
    pub fn lag_us(&self) -> Option<f64> {
        Some(self.lag_mean_us? * self.responses? as f64)
    }
}

/// The transactions of one script that ended in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScriptInterval {
    /// The script's name.
    pub script: String,
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Transactions that failed; none if unknown.
    pub failed: Option<u64>,
    /// Transactions that were to start in the window of an open loop and will not end, as known since this interval; none
    /// in a closed loop, of background workloads, and if unknown.
    pub unfinished: Option<u64>,
    /// Latencies of those that succeeded, and of the unfinished ones the time until then, by the phase that they count
    /// in; none if unknown.
    pub latencies: Vec<PhaseLatencies>,
}

impl ScriptInterval {
    /// The latencies of a phase; empty if they were not yet known.
    pub fn latencies_of(&mut self, phase: Phase) -> &mut PhaseLatencies {
        let known = self.latencies.iter().position(|latencies| latencies.phase == phase);
        let at = known.unwrap_or_else(|| {
            self.latencies.push(PhaseLatencies { phase, latency_ns: String::new(), service_ns: None });
            self.latencies.len() - 1
        });
        &mut self.latencies[at]
    }
}

/// Latencies of those transactions of a script in an interval that count in the same phase: in an open loop the one in
/// which they were to start, else the one in which they ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseLatencies {
    /// The phase.
    pub phase: Phase,
    /// Latency from the intended start in nanoseconds: HdrHistogram V2, deflated, base64 (the payload of an interval
    /// log line).
    pub latency_ns: String,
    /// The same from the actual start: service time; none in a closed loop, where it equals the latency.
    pub service_ns: Option<String>,
}

/// Start and end of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionSpan {
    /// The script's name, as in intervals.
    pub script: String,
    /// Number of its client in the whole load, from 0; background clients come last.
    pub client: u32,
    /// Actual start, in microseconds after the load's start.
    pub start_us: u64,
    /// End, likewise.
    pub end_us: u64,
    /// Whether it failed.
    pub failed: bool,
}

/// Totals of a load that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Actual length of the measured window, in microseconds; shorter than requested after `Stop`.
    pub window_us: u64,
    /// Whether `Stop`, or the death of every client, ended the load early, or a client did not complete its iterations
    /// in time.
    pub stopped_early: bool,
    /// Succeeded transactions, warm-up.
    pub warmup_transactions: u64,
    /// Succeeded transactions that ended in the window.
    pub window_transactions: u64,
    /// Succeeded transactions that ended after the window.
    pub drain_transactions: u64,
    /// Failed transactions in any phase.
    pub failed_transactions: u64,
    /// Latency over all scripts, without failed transactions; none without any. In a closed loop of those that ended in
    /// the window, in an open one of those that were to start in it, whenever they ended.
    pub latency: Option<Latency>,
    /// The same from the actual start: service time; none in a closed loop, where it equals the latency.
    pub service: Option<Latency>,
    /// Longest time in the window without the end of a successful transaction, in microseconds, to within a hundredth of an
    /// interval; none in slices, and of several hosts.
    #[serde(default)]
    pub longest_stall_us: Option<u64>,
    /// Results of each background workload, in their order.
    pub background: Vec<BackgroundOutcome>,
    /// Connections opened.
    pub connections: u64,
    /// Commits that the server reported, in any phase: one per transaction of pgbench's scripts; none, one or more per
    /// transaction of other scripts.
    pub commits: u64,
    /// Whether statements ran that may have committed without reporting it: `CALL`, `DO`, `LISTEN`, and those that change objects.
    #[serde(rename = "silent_commits")]
    pub has_unreported_commits: bool,
    /// Other commits that the server counts: the start-up transaction of each connection.
    pub other_commits: u64,
    /// CPU time of the driver process from `Started` to the end of the load, user and system, in microseconds.
    pub cpu_us: u64,
    /// The event loop that ran: `io_uring` or `epoll`.
    pub engine: String,
    /// Reason for `epoll` where `io_uring` could not be used; else none.
    pub engine_reason: Option<String>,
}

/// Totals of a background workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundOutcome {
    /// The workload's name.
    pub workload: String,
    /// Succeeded transactions in any phase.
    pub transactions: u64,
    /// Those of them that ended in the window.
    pub window_transactions: u64,
    /// Failed transactions in any phase.
    pub failed_transactions: u64,
    /// Transactions that were due before the end of the load and had not begun; none in a closed loop.
    #[serde(default)]
    pub missed: Option<u64>,
    /// Latency of the window's succeeded transactions; none without transactions.
    pub latency: Option<Latency>,
}

/// A latency distribution in figures, microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub stddev_us: f64,
    /// Smallest.
    pub min_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Largest.
    pub max_us: f64,
}

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// `CLOCK_MONOTONIC`, in microseconds.
    pub monotonic_us: i64,
    /// `CLOCK_REALTIME`, in microseconds since the Unix epoch.
    pub unix_us: i64,
}
