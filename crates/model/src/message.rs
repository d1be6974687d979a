//! What the runner and the driver process say to each other: one JSON object a line, on the driver's pipes.
//!
//! The runner writes a [`Request::Run`], then at most one [`Request::Stop`]; end of file on the driver's standard
//! input means that the runner is gone, and the driver ends at once. The driver answers with [`Reply`]s:
//! `Hello`, `Connected`, `Started`, then an `Interval` at the end of each second and `ClientDied` as they happen, and
//! at the end exactly one of `Finished` or `Failed`.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::units::Rate;
use crate::workload::{Protocol, Workload};

/// Version of these messages; a driver that says another one in its `Hello` is not used.
pub const VERSION: u32 = 7;

/// From the runner to the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Connect the clients and run this load.
    Run(Box<Load>),
    /// Begin no further transaction, let those in flight end, report `Finished`.
    Stop,
}

/// A load: who connects where and does what for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Where and as whom to connect.
    pub connection: Connection,
    /// The scripts that clients repeat, and what others do at the same time.
    pub workload: Workload,
    /// pgbench's scale factor: the value of the script variable `:scale`.
    pub scale: u32,
    /// How statements are sent.
    pub protocol: Protocol,
    /// Number of clients, at least 1; without background clients.
    pub clients: u32,
    /// Number of event-loop threads, at least 1 and at most `clients`.
    pub threads: u32,
    /// Transactions begun in a second by these clients together, spaced by chance.
    pub rate: Rate,
    /// Processors that the driver keeps to; none for all.
    pub cpus: Option<Vec<u32>>,
    /// Seed of every random number drawn in scripts, as pgbench's `--random-seed`.
    pub seed: u64,
    /// Load before the measured window, in microseconds.
    pub warmup_us: u64,
    /// Length of the measured window, in microseconds; where each client has its iterations, the most it may be.
    pub duration_us: u64,
    /// Length of one [`Interval`], in microseconds (1 s in bundles).
    pub interval_us: u64,
}

/// Where and as whom to connect.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The server's address.
    pub endpoint: Endpoint,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, where the server asks for one.
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
    /// Where a connection string leads to, as libpq resolves it.
    Conninfo {
        /// The connection string; role, database and password are not taken from it.
        conninfo: String,
    },
}

/// From the driver to the runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The first line: which messages this driver speaks.
    Hello {
        /// [`VERSION`] of the driver's build.
        version: u32,
    },
    /// Every client is connected and its statements are prepared; no load yet.
    Connected {
        /// Time it took to connect all clients, in microseconds.
        connect_us: u64,
        /// Process ids of the backends that serve background workloads.
        background: Vec<i32>,
    },
    /// The load begins now.
    Started {
        /// The clocks at this moment.
        at: ClockReading,
    },
    /// What ended in the interval just past.
    Interval(Interval),
    /// A client can't go on; the others do.
    ClientDied(ClientDeath),
    /// The load has ended (by time or by `Stop`) and every connection is closed.
    Finished(Box<Outcome>),
    /// The load could not be run at all.
    Failed {
        /// What was tried, on what, and why it failed.
        message: String,
    },
}

/// A client that could not go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientDeath {
    /// When, in microseconds after the load's start.
    pub at_us: u64,
    /// Which client, from 0.
    pub client: u32,
    /// SQLSTATE, where the server said one.
    pub sqlstate: Option<String>,
    /// What was being done, and why it failed.
    pub message: String,
}

/// Which part of a load an [`Interval`] belongs to. No interval lies in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// Before the measured window.
    Warmup,
    /// The measured window.
    Measure,
    /// After the window, or after `Stop`: transactions that were in flight.
    Drain,
}

impl Phase {
    /// Its name in messages and bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What ended in one interval of the load, over all threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Start, in microseconds after the load's start.
    pub start_us: u64,
    /// Length in microseconds; the last interval of a phase may be shorter.
    pub width_us: u64,
    /// The part of the load it belongs to.
    pub phase: Phase,
    /// One entry a script, in the load's order.
    pub scripts: Vec<ScriptInterval>,
    /// The same of background workloads, each script named [`BackgroundWorkload::script`](crate::workload::BackgroundWorkload::script).
    /// Documents for other programs have it by its former name.
    #[serde(rename = "beside")]
    pub background: Vec<ScriptInterval>,
    /// Transactions that ended, of workloads whose spans are asked for; in no order.
    pub spans: Vec<TransactionSpan>,
    /// Share of the time that the busiest driver thread was not waiting for its sockets, 0 to 1; none where it is not
    /// known.
    pub busy: Option<f64>,
    /// Largest driver lag seen (wake-up → response handled), in microseconds; none as above.
    pub lag_max_us: Option<f64>,
    /// Mean driver lag, in microseconds; none where nothing was handled.
    pub lag_mean_us: Option<f64>,
    /// Responses that were handled; none where it is not known.
    pub responses: Option<u64>,
    /// How late the driver itself was to begin a transaction whose time had come, at worst, in microseconds; none in a
    /// closed loop.
    pub send_lag_max_us: Option<f64>,
}

impl Interval {
    /// Driver lag of all responses together, in microseconds; none where it is not known.
    pub fn lag_us(&self) -> Option<f64> {
        Some(self.lag_mean_us? * self.responses? as f64)
    }
}

/// The transactions of one script that ended in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptInterval {
    /// The script's name.
    pub script: String,
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Transactions that failed; none where it is not known.
    pub failed: Option<u64>,
    /// Latency from the intended start in nanoseconds: HdrHistogram V2, deflated, base64 (the payload of an interval
    /// log line); empty where there is none.
    pub latency_ns: String,
    /// The same from the start as it was: service time; none in a closed loop, where it is no other.
    pub service_ns: Option<String>,
}

/// When a transaction ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionSpan {
    /// The script's name, as in intervals.
    pub script: String,
    /// Number of its client in the whole load, from 0; background clients come last.
    pub client: u32,
    /// Start as it was, in microseconds after the load's start.
    pub start_us: u64,
    /// End, likewise.
    pub end_us: u64,
    /// Whether it failed.
    pub failed: bool,
}

/// Totals of a load that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Length of the measured window as it was, in microseconds; shorter than asked after `Stop`.
    pub window_us: u64,
    /// True where `Stop`, or the death of every client, ended the load early; and where not every client had done its
    /// iterations in time.
    pub stopped_early: bool,
    /// Succeeded transactions, warm-up.
    pub warmup_transactions: u64,
    /// Succeeded transactions that ended in the window.
    pub window_transactions: u64,
    /// Succeeded transactions that ended after the window.
    pub drain_transactions: u64,
    /// Failed transactions in any phase.
    pub failed_transactions: u64,
    /// Latency of the window's succeeded transactions over all scripts; none where there were none.
    pub latency: Option<Latency>,
    /// The same from the start as it was: service time; none in a closed loop, where it is no other.
    pub service: Option<Latency>,
    /// Results of each background workload, in their order.
    pub background: Vec<BackgroundOutcome>,
    /// Connections that were opened.
    pub connections: u64,
    /// Commits that the server told of, in any phase: one for each transaction of pgbench's scripts, none, one or more
    /// for one of others'.
    pub commits: u64,
    /// Whether statements ran that may have committed without telling: `CALL` and `DO`.
    pub silent_commits: bool,
    /// Commits that the server counts besides these: for each connection, its own start-up transaction.
    pub other_commits: u64,
    /// CPU time of the driver process from `Started` to the end of the load, user and system, in microseconds.
    pub cpu_us: u64,
    /// The event loop that ran: `io_uring` or `epoll`.
    pub engine: String,
    /// Why it was not `io_uring`; none where it was.
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
    /// Latency of the window's succeeded transactions; none where there were none.
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

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// `CLOCK_MONOTONIC`, in microseconds.
    pub monotonic_us: i64,
    /// `CLOCK_REALTIME`, in microseconds since the Unix epoch.
    pub unix_us: i64,
}
