//! The task that the options describe, checked as a whole.

use std::ffi::OsString;
use std::time::Duration;

use model::workload::Protocol;

use crate::compat::Compat;
use crate::message::Fatal;
use crate::options::{BenchmarkOptions, Connection, InitializationOptions, Options};
use crate::partition::PartitionMethod;
use crate::scripts::Scripts;
use crate::seed;

/// One of the two tasks of pgbench.
#[derive(Debug)]
pub(crate) enum Task {
    Initialize(Initialization),
    Benchmark(Box<Benchmark>),
}

/// Tables to create and fill.
#[derive(Debug)]
pub(crate) struct Initialization {
    pub(crate) compat: Compat,
    pub(crate) connection: Connection,
    /// Characters of `dtgGvpf`; spaces mean nothing.
    pub(crate) steps: String,
    pub(crate) scale: u32,
    pub(crate) fillfactor: u32,
    pub(crate) quiet: bool,
    pub(crate) unlogged: bool,
    pub(crate) tablespace: Option<String>,
    pub(crate) index_tablespace: Option<String>,
    pub(crate) partitions: Option<(PartitionMethod, u32)>,
}

/// A load to run and to report.
#[derive(Debug)]
pub(crate) struct Benchmark {
    pub(crate) compat: Compat,
    pub(crate) connection: Connection,
    pub(crate) debug: bool,
    pub(crate) scale: Option<u32>,
    pub(crate) vacuum: Vacuum,
    pub(crate) scripts: Scripts,
    /// Variables of `-D`, in order.
    pub(crate) defines: Vec<(String, String)>,
    pub(crate) random_seed: u64,
    pub(crate) clients: u32,
    pub(crate) threads: u32,
    pub(crate) length: Length,
    pub(crate) protocol: Protocol,
    pub(crate) connect: bool,
    /// Target rate, transactions per second.
    pub(crate) rate: Option<f64>,
    pub(crate) latency_limit: Option<Duration>,
    /// Tries per transaction; None: no limit.
    pub(crate) max_tries: Option<u32>,
    pub(crate) report_per_command: bool,
    pub(crate) failures_detailed: bool,
    pub(crate) verbose_errors: bool,
    pub(crate) exit_on_abort: bool,
    pub(crate) progress: Option<Progress>,
    pub(crate) log: Option<Log>,
    pub(crate) engine: driver::Engine,
}

/// Length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// After this many seconds.
    Seconds(u32),
    /// After this many transactions of each client.
    Transactions(u32),
}

/// The tables to vacuum before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vacuum {
    None,
    /// All tables but the accounts.
    SmallTables,
    AllTables,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) interval_s: u32,
    /// Whether times are Unix timestamps.
    pub(crate) timestamp: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Log {
    pub(crate) prefix: OsString,
    pub(crate) sampling_rate: Option<f64>,
    pub(crate) aggregate_interval_s: Option<u32>,
}

const DEFAULT_TRANSACTIONS: u32 = 10;
const DEFAULT_STEPS: &str = "dtgvp";
const DEFAULT_LOG_PREFIX: &str = "pgbench_log";

impl Task {
    pub(crate) fn new(mut options: Options) -> Result<Self, Fatal> {
        if options.benchmark.scripts.list.is_empty() && !options.initialize {
            options.benchmark.scripts.add_builtin("tpcb-like", 1)?;
            options.benchmark_option = true;
        }
        if options.benchmark.protocol.is_some_and(|protocol| protocol != Protocol::Simple) {
            for script in &options.benchmark.scripts.list {
                script.script.check_params().map_err(Fatal::new)?;
            }
        }
        if options.benchmark.scripts.total_weight() == 0 && !options.initialize {
            return Err(Fatal::new("total script weight must not be zero"));
        }
        take_database(&mut options)?;
        if options.initialize {
            if options.benchmark_option {
                let why = "some of the specified options cannot be used in initialization (-i) mode";
                return Err(Fatal::new(why));
            }
            Initialization::new(options).map(Self::Initialize)
        } else {
            if options.initialization_option {
                let why = "some of the specified options cannot be used in benchmarking mode";
                return Err(Fatal::new(why));
            }
            Benchmark::new(options).map(|benchmark| Self::Benchmark(Box::new(benchmark)))
        }
    }
}

/// The first operand is the database, unless an option names it.
fn take_database(options: &mut Options) -> Result<(), Fatal> {
    let mut operands = options.operands.iter().map(|operand| operand.to_string_lossy().into_owned());
    if options.connection.database.is_none() {
        options.connection.database = operands.next();
    }
    match operands.next() {
        None => Ok(()),
        Some(first) => {
            Err(Fatal::new(format_args!("too many command-line arguments (first is \"{first}\")")).see_help())
        }
    }
}

impl Initialization {
    fn new(options: Options) -> Result<Self, Fatal> {
        let Options { compat, connection, scale, no_vacuum, initialization, .. } = options;
        let InitializationOptions {
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
    fn new(options: Options) -> Result<Self, Fatal> {
        let Options { compat, connection, debug, scale, no_vacuum, benchmark, .. } = options;
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
            vacuum: vacuum(no_vacuum, benchmark.vacuum_all),
            scripts: benchmark.scripts,
            defines: benchmark.defines,
            random_seed: benchmark.random_seed.unwrap_or_else(seed::from_time),
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

fn vacuum(no_vacuum: bool, vacuum_all: bool) -> Vacuum {
    if no_vacuum {
        Vacuum::None
    } else if vacuum_all {
        Vacuum::AllTables
    } else {
        Vacuum::SmallTables
    }
}

fn length(benchmark: &BenchmarkOptions) -> Result<Length, Fatal> {
    match (benchmark.transactions, benchmark.seconds) {
        (Some(_), Some(_)) => {
            Err(Fatal::new("specify either a number of transactions (-t) or a duration (-T), not both"))
        }
        (transactions, None) => Ok(Length::Transactions(transactions.unwrap_or(DEFAULT_TRANSACTIONS))),
        (None, Some(seconds)) => Ok(Length::Seconds(seconds)),
    }
}

fn log(benchmark: &BenchmarkOptions, length: Length) -> Result<Option<Log>, Fatal> {
    let &BenchmarkOptions { sampling_rate, aggregate_interval_s, ref log_prefix, log, .. } = benchmark;
    let refuse = |why: &str| Err(Fatal::new(why));
    if sampling_rate.is_some() && !log {
        return refuse("log sampling (--sampling-rate) is allowed only when logging transactions (-l)");
    }
    if sampling_rate.is_some() && aggregate_interval_s.is_some() {
        return refuse(
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
        );
    }
    if aggregate_interval_s.is_some() && !log {
        return refuse("log aggregation is allowed only when actually logging transactions");
    }
    if log_prefix.is_some() && !log {
        return refuse("log file prefix (--log-prefix) is allowed only when logging transactions (-l)");
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
