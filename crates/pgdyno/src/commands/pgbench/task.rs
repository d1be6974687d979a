//! What is to be done: the options, checked as a whole.

use std::ffi::OsString;
use std::time::Duration;

use model::workload::Protocol;

use super::compat::Compat;
use super::message::Fatal;
use super::options::{Connection, Given, GivenBenchmark, GivenInitialization, PartitionMethod};
use super::scripts::Scripts;
use super::seed;

/// One of the two things that pgbench does.
#[derive(Debug)]
pub(super) enum Task {
    Initialize(Initialization),
    Benchmark(Box<Benchmark>),
}

/// Tables to create and to fill.
#[derive(Debug)]
pub(super) struct Initialization {
    pub(super) compat: Compat,
    pub(super) connection: Connection,
    /// Characters of `dtgGvpf`, and spaces, which mean nothing.
    pub(super) steps: String,
    pub(super) scale: u32,
    pub(super) fillfactor: u32,
    pub(super) quiet: bool,
    pub(super) unlogged: bool,
    pub(super) tablespace: Option<String>,
    pub(super) index_tablespace: Option<String>,
    pub(super) partitions: Option<(PartitionMethod, u32)>,
}

/// A load to run and to report.
#[derive(Debug)]
pub(super) struct Benchmark {
    pub(super) compat: Compat,
    pub(super) connection: Connection,
    pub(super) debug: bool,
    pub(super) scale: Option<u32>,
    pub(super) vacuum: Vacuum,
    pub(super) scripts: Scripts,
    /// What `-D` defines, in order.
    pub(super) defines: Vec<(String, String)>,
    pub(super) random_seed: u64,
    pub(super) clients: u32,
    pub(super) threads: u32,
    pub(super) length: Length,
    pub(super) protocol: Protocol,
    pub(super) connect: bool,
    /// Transactions to begin per second.
    pub(super) rate: Option<f64>,
    pub(super) latency_limit: Option<Duration>,
    /// How often to try a transaction; without limit if none.
    pub(super) max_tries: Option<u32>,
    pub(super) report_per_command: bool,
    pub(super) failures_detailed: bool,
    pub(super) verbose_errors: bool,
    pub(super) exit_on_abort: bool,
    pub(super) progress: Option<Progress>,
    pub(super) log: Option<Log>,
    pub(super) engine: driver::Engine,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// After so many seconds.
    Seconds(u32),
    /// After so many transactions of each client.
    Transactions(u32),
}

/// What is vacuumed before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vacuum {
    Nothing,
    /// All tables but the accounts.
    SmallTables,
    AllTables,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) interval_s: u32,
    /// Whether times are Unix times.
    pub(super) timestamp: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Log {
    pub(super) prefix: OsString,
    pub(super) sampling_rate: Option<f64>,
    pub(super) aggregate_interval_s: Option<u32>,
}

const DEFAULT_TRANSACTIONS: u32 = 10;
const DEFAULT_STEPS: &str = "dtgvp";
const DEFAULT_LOG_PREFIX: &str = "pgbench_log";

impl Task {
    pub(super) fn of(mut given: Given) -> Result<Self, Fatal> {
        if given.benchmark.scripts.list.is_empty() && !given.initialize {
            given.benchmark.scripts.add_builtin("tpcb-like", 1)?;
            given.benchmark_option = true;
        }
        if given.benchmark.protocol.is_some_and(|protocol| protocol != Protocol::Simple) {
            for script in &given.benchmark.scripts.list {
                script.script.check_params().map_err(Fatal::new)?;
            }
        }
        if given.benchmark.scripts.total_weight() == 0 && !given.initialize {
            return Err(Fatal::new("total script weight must not be zero"));
        }
        take_database(&mut given)?;
        match (given.initialize, given.benchmark_option, given.initialization_option) {
            (true, true, _) => {
                Err(Fatal::new("some of the specified options cannot be used in initialization (-i) mode"))
            }
            (true, false, _) => Initialization::of(given).map(Self::Initialize),
            (false, _, true) => {
                Err(Fatal::new("some of the specified options cannot be used in benchmarking mode"))
            }
            (false, _, false) => Benchmark::of(given).map(|benchmark| Self::Benchmark(Box::new(benchmark))),
        }
    }
}

/// The first operand is the database, unless an option names it.
fn take_database(given: &mut Given) -> Result<(), Fatal> {
    let mut operands = given.operands.iter().map(|operand| operand.to_string_lossy().into_owned());
    if given.connection.database.is_none() {
        given.connection.database = operands.next();
    }
    match operands.next() {
        None => Ok(()),
        Some(first) => {
            Err(Fatal::new(format_args!("too many command-line arguments (first is \"{first}\")")).see_help())
        }
    }
}

impl Initialization {
    fn of(given: Given) -> Result<Self, Fatal> {
        let Given { compat, connection, scale, no_vacuum, initialization, .. } = given;
        let GivenInitialization {
            steps,
            fillfactor,
            foreign_keys,
            quiet,
            unlogged,
            tablespace,
            index_tablespace,
            partitions,
            partition_method,
        } = initialization;

        let partitions = match (partitions, partition_method) {
            (0, None) => None,
            (0, Some(_)) => {
                return Err(Fatal::new("--partition-method requires greater than zero --partitions"));
            }
            (count, method) => Some((method.unwrap_or(PartitionMethod::Range), count)),
        };
        let mut steps = steps.unwrap_or_else(|| DEFAULT_STEPS.to_owned());
        if no_vacuum {
            steps.retain(|step| step != 'v');
        }
        if foreign_keys && !steps.contains('f') {
            steps.push('f');
        }
        Ok(Self {
            compat,
            connection,
            steps,
            scale: scale.unwrap_or(1),
            fillfactor: fillfactor.unwrap_or(100),
            quiet,
            unlogged,
            tablespace,
            index_tablespace,
            partitions,
        })
    }
}

impl Benchmark {
    fn of(given: Given) -> Result<Self, Fatal> {
        let Given { compat, connection, debug, scale, no_vacuum, benchmark, .. } = given;
        let length = length(&benchmark)?;
        let log = log(&benchmark, length)?;
        if benchmark.progress_timestamp && benchmark.progress_s.is_none() {
            return Err(Fatal::new("--progress-timestamp is allowed only under --progress"));
        }
        let latency_limit = benchmark.latency_limit_us.filter(|limit| *limit > 0).map(Duration::from_micros);
        let max_tries = Some(benchmark.max_tries.unwrap_or(1)).filter(|tries| *tries > 0);
        if max_tries.is_none() && latency_limit.is_none() && matches!(length, Length::Transactions(_)) {
            return Err(Fatal::new(
                "an unlimited number of transaction tries can only be used with --latency-limit \
                 or a duration (-T)",
            ));
        }
        let clients = benchmark.clients.unwrap_or(1);
        Ok(Self {
            compat,
            connection,
            debug,
            scale,
            vacuum: match (no_vacuum, benchmark.vacuum_all) {
                (true, _) => Vacuum::Nothing,
                (false, false) => Vacuum::SmallTables,
                (false, true) => Vacuum::AllTables,
            },
            scripts: benchmark.scripts,
            defines: benchmark.defines,
            random_seed: benchmark.random_seed.unwrap_or_else(seed::by_time),
            clients,
            threads: benchmark.threads.unwrap_or(1).min(clients),
            length,
            protocol: benchmark.protocol.unwrap_or(Protocol::Simple),
            connect: benchmark.connect,
            rate: benchmark.rate,
            latency_limit,
            max_tries,
            report_per_command: benchmark.report_per_command,
            failures_detailed: benchmark.failures_detailed,
            verbose_errors: benchmark.verbose_errors,
            exit_on_abort: benchmark.exit_on_abort,
            progress: benchmark
                .progress_s
                .map(|interval_s| Progress { interval_s, timestamp: benchmark.progress_timestamp }),
            log,
            engine: benchmark.engine,
        })
    }
}

fn length(benchmark: &GivenBenchmark) -> Result<Length, Fatal> {
    match (benchmark.transactions, benchmark.seconds) {
        (Some(_), Some(_)) => {
            Err(Fatal::new("specify either a number of transactions (-t) or a duration (-T), not both"))
        }
        (transactions, None) => Ok(Length::Transactions(transactions.unwrap_or(DEFAULT_TRANSACTIONS))),
        (None, Some(seconds)) => Ok(Length::Seconds(seconds)),
    }
}

fn log(benchmark: &GivenBenchmark, length: Length) -> Result<Option<Log>, Fatal> {
    let &GivenBenchmark { sampling_rate, aggregate_interval_s, ref log_prefix, log, .. } = benchmark;
    let refused = |why: &str| Err(Fatal::new(why));
    if sampling_rate.is_some() && !log {
        return refused("log sampling (--sampling-rate) is allowed only when logging transactions (-l)");
    }
    if sampling_rate.is_some() && aggregate_interval_s.is_some() {
        return refused(
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
        );
    }
    if aggregate_interval_s.is_some() && !log {
        return refused("log aggregation is allowed only when actually logging transactions");
    }
    if log_prefix.is_some() && !log {
        return refused("log file prefix (--log-prefix) is allowed only when logging transactions (-l)");
    }
    if let (Some(interval), Length::Seconds(seconds)) = (aggregate_interval_s, length) {
        if interval > seconds {
            return Err(Fatal::new(format_args!(
                "number of seconds for aggregation ({interval}) must not be higher than test duration ({seconds})"
            )));
        }
        if seconds % interval != 0 {
            return Err(Fatal::new(format_args!(
                "duration ({seconds}) must be a multiple of aggregation interval ({interval})"
            )));
        }
    }
    let prefix = log_prefix.clone().unwrap_or_else(|| DEFAULT_LOG_PREFIX.into());
    Ok(log.then_some(Log { prefix, sampling_rate, aggregate_interval_s }))
}
