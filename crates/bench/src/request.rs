//! A requested load, before it is checked.

use std::path::PathBuf;
use std::time::Duration;

use driver::{Engine, Stage, Think};
use model::workload::Protocol;
use wire::ConnectParams;

use crate::objective::Objective;
use crate::quantity::{Define, ErrorRule, Spacing, WeightedName};

/// A load as the command line describes it. None is the default.
#[derive(Clone, Debug)]
pub struct Request {
    /// Connection parameters.
    pub connection: ConnectParams,
    /// The scripts that clients run.
    pub scripts: ScriptOptions,
    /// Number of clients, at least 1.
    pub clients: u32,
    /// Threads of the driver, at least 1.
    pub threads: u32,
    /// Other numbers of threads to probe after the load, each at least 1; empty without a probe.
    pub other_threads: Vec<u32>,
    /// Length of the measured window.
    pub duration: Option<Duration>,
    /// Transactions of each client, in place of a duration.
    pub transactions: Option<u64>,
    /// Load before the measured window.
    pub warmup: Option<Duration>,
    /// How statements are sent.
    pub protocol: Protocol,
    /// Pause of a client between two transactions.
    pub think: Option<Think>,
    /// Whether each transaction has a connection of its own.
    pub connect: bool,
    /// The driver's event loop.
    pub engine: Engine,
    /// The schedule of an open loop.
    pub schedule: ScheduleOptions,
    /// Handling of errors.
    pub errors: ErrorOptions,
    /// Latency above which transactions are late.
    pub latency_limit: Option<Duration>,
    /// Whether each statement is measured.
    pub per_statement: bool,
    /// Length of an interval of the report.
    pub interval: Duration,
    /// File for the histograms of every interval.
    pub interval_log: Option<PathBuf>,
}

/// Scripts and their variables.
#[derive(Clone, Debug)]
pub struct ScriptOptions {
    /// Files, or built-in scripts by name.
    pub named: Vec<WeightedName>,
    /// Built-in scripts by name or unique prefix.
    pub builtin: Vec<WeightedName>,
    /// Files.
    pub files: Vec<WeightedName>,
    /// Variables with their values.
    pub define: Vec<Define>,
    /// Value of `:scale`.
    pub scale: Option<u32>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Script to run once before the load.
    pub setup: Option<PathBuf>,
    /// Script to run once after the load.
    pub teardown: Option<PathBuf>,
}

/// The schedule of an open loop; a closed loop has none.
#[derive(Clone, Debug, Default)]
pub struct ScheduleOptions {
    /// Transactions per second.
    pub rate: Option<f64>,
    /// Parts of the schedule, one after the other.
    pub stages: Vec<Stage>,
    /// Spacing of arrivals.
    pub spacing: Option<Spacing>,
    /// Objectives of a search for the highest rate.
    pub objectives: Vec<Objective>,
}

/// Handling of errors.
#[derive(Clone, Debug, Default)]
pub struct ErrorOptions {
    /// Rules by SQLSTATE.
    pub rules: Vec<ErrorRule>,
    /// Tries per transaction; 0 is without limit.
    pub max_tries: u32,
    /// Pause before a transaction is tried again.
    pub back_off: Duration,
    /// Whether a client that loses its connection gets another one.
    pub reconnect: bool,
}
