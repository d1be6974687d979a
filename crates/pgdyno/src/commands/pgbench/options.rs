//! The command line as it was written: every option of pgbench, and pgdyno's additions.

use std::ffi::{OsStr, OsString};

use model::workload::Protocol;

use super::compat::Compat;
use super::getopt::{Getopt, Spec};
use super::message::Fatal;
use super::number::{leading_double, leading_whole, whole};
use super::scripts::{self, Scripts};
use super::seed;
use super::{files, help};

/// What the options say, and which kinds of them there were.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) compat: Compat,
    pub(super) connection: Connection,
    pub(super) debug: bool,
    pub(super) scale: Option<u32>,
    pub(super) no_vacuum: bool,
    pub(super) initialize: bool,
    /// Whether there was an option that means something in a benchmark only.
    pub(super) benchmark_option: bool,
    /// Whether there was an option that means something in an initialization only.
    pub(super) initialization_option: bool,
    pub(super) initialization: GivenInitialization,
    pub(super) benchmark: GivenBenchmark,
    pub(super) operands: Vec<OsString>,
}

/// Where and as whom to connect; what is none comes from environment and defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) host: Option<String>,
    pub(super) port: Option<String>,
    pub(super) user: Option<String>,
    /// A database, a connection string or a URI.
    pub(super) database: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct GivenInitialization {
    pub(super) steps: Option<String>,
    pub(super) fillfactor: Option<u32>,
    pub(super) foreign_keys: bool,
    pub(super) quiet: bool,
    pub(super) unlogged: bool,
    pub(super) tablespace: Option<String>,
    pub(super) index_tablespace: Option<String>,
    pub(super) partitions: u32,
    pub(super) partition_method: Option<PartitionMethod>,
}

/// How the accounts are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartitionMethod {
    Range,
    Hash,
}

impl PartitionMethod {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Hash => "hash",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct GivenBenchmark {
    pub(super) scripts: Scripts,
    pub(super) defines: Vec<(String, String)>,
    pub(super) clients: Option<u32>,
    pub(super) threads: Option<u32>,
    pub(super) transactions: Option<u32>,
    pub(super) seconds: Option<u32>,
    pub(super) protocol: Option<Protocol>,
    pub(super) connect: bool,
    pub(super) rate: Option<f64>,
    pub(super) latency_limit_us: Option<u64>,
    pub(super) max_tries: Option<u32>,
    pub(super) vacuum_all: bool,
    pub(super) report_per_command: bool,
    pub(super) failures_detailed: bool,
    pub(super) verbose_errors: bool,
    pub(super) exit_on_abort: bool,
    pub(super) progress_s: Option<u32>,
    pub(super) progress_timestamp: bool,
    pub(super) log: bool,
    pub(super) log_prefix: Option<OsString>,
    pub(super) sampling_rate: Option<f64>,
    pub(super) aggregate_interval_s: Option<u32>,
    pub(super) random_seed: Option<u64>,
    pub(super) engine: driver::Engine,
}

/// What the command line comes to.
#[derive(Debug)]
pub(super) enum Read {
    /// Something to do.
    Given(Box<Given>),
    /// Text for standard output, and nothing else.
    Show(String),
    /// Text for standard error, and nothing else.
    ShowOnStderr(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opt {
    Builtin,
    Client,
    Connect,
    Dbname,
    Define,
    File,
    Fillfactor,
    Host,
    Initialize,
    InitSteps,
    Jobs,
    Log,
    LatencyLimit,
    NoVacuum,
    Port,
    Progress,
    Protocol,
    Quiet,
    ReportPerCommand,
    Rate,
    Scale,
    SelectOnly,
    SkipSomeUpdates,
    Time,
    Transactions,
    Username,
    VacuumAll,
    UnloggedTables,
    Tablespace,
    IndexTablespace,
    SamplingRate,
    AggregateInterval,
    ProgressTimestamp,
    LogPrefix,
    ForeignKeys,
    RandomSeed,
    ShowScript,
    Partitions,
    PartitionMethod,
    FailuresDetailed,
    MaxTries,
    VerboseErrors,
    ExitOnAbort,
    Debug,
    Help,
    Version,
    Compat,
    Engine,
}

/// The options of a pgbench, in the order in which it lists those that an abbreviation could mean.
fn specs(compat: Compat) -> Vec<Spec<Opt>> {
    let spec = |id, short: &str, long, takes_value| Spec {
        id,
        short: short.bytes().next(),
        long,
        takes_value,
        in_full: false,
    };
    let with_value = |id, short, long| spec(id, short, long, true);
    let flag = |id, short, long| spec(id, short, long, false);
    let addition = |spec: Spec<Opt>| Spec { in_full: true, ..spec };

    let mut specs = vec![
        with_value(Opt::Builtin, "b", "builtin"),
        with_value(Opt::Client, "c", "client"),
        flag(Opt::Connect, "C", "connect"),
        match compat {
            Compat::V15 => flag(Opt::Debug, "d", "debug"),
            _ => with_value(Opt::Dbname, "d", "dbname"),
        },
        with_value(Opt::Define, "D", "define"),
        with_value(Opt::File, "f", "file"),
        with_value(Opt::Fillfactor, "F", "fillfactor"),
        with_value(Opt::Host, "h", "host"),
        flag(Opt::Initialize, "i", "initialize"),
        with_value(Opt::InitSteps, "I", "init-steps"),
        with_value(Opt::Jobs, "j", "jobs"),
        flag(Opt::Log, "l", "log"),
        with_value(Opt::LatencyLimit, "L", "latency-limit"),
        flag(Opt::NoVacuum, "n", "no-vacuum"),
        with_value(Opt::Port, "p", "port"),
        with_value(Opt::Progress, "P", "progress"),
        with_value(Opt::Protocol, "M", "protocol"),
        flag(Opt::Quiet, "q", "quiet"),
        flag(Opt::ReportPerCommand, "r", "report-per-command"),
        with_value(Opt::Rate, "R", "rate"),
        with_value(Opt::Scale, "s", "scale"),
        flag(Opt::SelectOnly, "S", "select-only"),
        flag(Opt::SkipSomeUpdates, "N", "skip-some-updates"),
        with_value(Opt::Time, "T", "time"),
        with_value(Opt::Transactions, "t", "transactions"),
        with_value(Opt::Username, "U", "username"),
        flag(Opt::VacuumAll, "v", "vacuum-all"),
        flag(Opt::UnloggedTables, "", "unlogged-tables"),
        with_value(Opt::Tablespace, "", "tablespace"),
        with_value(Opt::IndexTablespace, "", "index-tablespace"),
        with_value(Opt::SamplingRate, "", "sampling-rate"),
        with_value(Opt::AggregateInterval, "", "aggregate-interval"),
        flag(Opt::ProgressTimestamp, "", "progress-timestamp"),
        with_value(Opt::LogPrefix, "", "log-prefix"),
        flag(Opt::ForeignKeys, "", "foreign-keys"),
        with_value(Opt::RandomSeed, "", "random-seed"),
        with_value(Opt::ShowScript, "", "show-script"),
        with_value(Opt::Partitions, "", "partitions"),
        with_value(Opt::PartitionMethod, "", "partition-method"),
        flag(Opt::FailuresDetailed, "", "failures-detailed"),
        with_value(Opt::MaxTries, "", "max-tries"),
        flag(Opt::VerboseErrors, "", "verbose-errors"),
        addition(flag(Opt::Help, "?", "help")),
        addition(flag(Opt::Version, "V", "version")),
        addition(with_value(Opt::Compat, "", "compat")),
        addition(with_value(Opt::Engine, "", "engine")),
    ];
    if compat > Compat::V15 {
        specs.push(flag(Opt::ExitOnAbort, "", "exit-on-abort"));
        specs.push(flag(Opt::Debug, "", "debug"));
    }
    specs
}

/// Reads a command line without the program's name. Scripts are read and seeds are drawn in the order of the options,
/// as their messages are expected.
pub(super) fn read(args: &[OsString]) -> Result<Read, Fatal> {
    let compat = Compat::of(args)?;
    let mut given = Given {
        compat,
        connection: Connection::default(),
        debug: false,
        scale: None,
        no_vacuum: false,
        initialize: false,
        benchmark_option: false,
        initialization_option: false,
        initialization: GivenInitialization::default(),
        benchmark: GivenBenchmark::default(),
        operands: Vec::new(),
    };
    if let Some(seed) = std::env::var_os("PGBENCH_RANDOM_SEED") {
        given.benchmark.random_seed = Some(seed::given(&seed.to_string_lossy(), seed::Source::Environment)?);
    }

    let specs = specs(compat);
    let mut getopt = Getopt::new(args, &specs, std::env::var_os("POSIXLY_CORRECT").is_some());
    while let Some(met) = getopt.next() {
        let (option, value) = met.map_err(|complaint| Fatal::usage(&complaint))?;
        let value = value.unwrap_or_default();
        if let Some(show) = option.shows(&value, compat)? {
            return Ok(show);
        }
        given.benchmark_option |= option.is_for_benchmarks();
        given.initialization_option |= option.is_for_initialization();
        given.take(option, &value)?;
    }
    given.operands = getopt.operands();
    Ok(Read::Given(Box::new(given)))
}

impl Opt {
    /// What an option shows in place of doing anything.
    fn shows(self, value: &OsStr, compat: Compat) -> Result<Option<Read>, Fatal> {
        Ok(Some(match self {
            Self::Help => Read::Show(help::text(compat)),
            Self::Version => Read::Show(format!("pgbench (PostgreSQL) {}\n", compat.version())),
            Self::Builtin if value == "list" => Read::ShowOnStderr(scripts::list()),
            Self::ShowScript => {
                let builtin = scripts::find(&value.to_string_lossy())?;
                let script::Builtin { name, description, text } = builtin;
                Read::ShowOnStderr(format!("-- {name}: {description}\n{text}\n"))
            }
            _ => return Ok(None),
        }))
    }

    fn is_for_initialization(self) -> bool {
        matches!(
            self,
            Self::Fillfactor
                | Self::InitSteps
                | Self::Quiet
                | Self::UnloggedTables
                | Self::Tablespace
                | Self::IndexTablespace
                | Self::ForeignKeys
                | Self::Partitions
                | Self::PartitionMethod
        )
    }

    fn is_for_benchmarks(self) -> bool {
        let for_both = matches!(
            self,
            Self::Dbname
                | Self::Host
                | Self::Port
                | Self::Username
                | Self::Initialize
                | Self::NoVacuum
                | Self::Scale
                | Self::Debug
                | Self::Compat
        );
        !for_both && !self.is_for_initialization()
    }
}

impl Given {
    fn take(&mut self, option: Opt, value: &OsStr) -> Result<(), Fatal> {
        let text = || value.to_string_lossy().into_owned();
        let at_least_one = |name: &str| whole(&value.to_string_lossy(), name, 1, i32::MAX).map(Some);
        let Self { compat, connection, initialization, benchmark, .. } = self;
        match option {
            Opt::Host => connection.host = Some(text()),
            Opt::Port => connection.port = Some(text()),
            Opt::Username => connection.user = Some(text()),
            Opt::Dbname => connection.database = Some(text()),
            Opt::Debug => self.debug = true,
            Opt::Initialize => self.initialize = true,
            Opt::NoVacuum => self.no_vacuum = true,
            Opt::Scale => self.scale = at_least_one("-s/--scale")?,

            Opt::InitSteps => initialization.steps = Some(steps(&text())?),
            Opt::Fillfactor => {
                initialization.fillfactor = Some(whole(&text(), "-F/--fillfactor", 10, 100)?);
            }
            Opt::ForeignKeys => initialization.foreign_keys = true,
            Opt::Quiet => initialization.quiet = true,
            Opt::UnloggedTables => initialization.unlogged = true,
            Opt::Tablespace => initialization.tablespace = Some(text()),
            Opt::IndexTablespace => initialization.index_tablespace = Some(text()),
            Opt::Partitions => initialization.partitions = whole(&text(), "--partitions", 0, i32::MAX)?,
            Opt::PartitionMethod => initialization.partition_method = Some(partition_method(&text())?),

            Opt::Builtin => benchmark.scripts.add_builtin_option(value)?,
            Opt::SelectOnly => benchmark.scripts.add_builtin("select-only", 1)?,
            Opt::SkipSomeUpdates => benchmark.scripts.add_builtin("simple-update", 1)?,
            Opt::File => benchmark.scripts.add_file_option(value)?,
            Opt::Define => benchmark.defines.push(definition(&text())?),
            Opt::Client => {
                let name = if *compat == Compat::V15 { "-c/--clients" } else { "-c/--client" };
                benchmark.clients = at_least_one(name)?;
                benchmark.clients.map_or(Ok(()), files::allow_clients)?;
            }
            Opt::Jobs => benchmark.threads = at_least_one("-j/--jobs")?,
            Opt::Transactions => benchmark.transactions = at_least_one("-t/--transactions")?,
            Opt::Time => benchmark.seconds = at_least_one("-T/--time")?,
            Opt::Protocol => benchmark.protocol = Some(protocol(&text())?),
            Opt::Connect => benchmark.connect = true,
            Opt::Rate => benchmark.rate = Some(positive(&text(), "rate limit")?),
            Opt::LatencyLimit => {
                let limit_ms = positive(&text(), "latency limit")?;
                benchmark.latency_limit_us = Some((limit_ms * 1000.0) as u64);
            }
            Opt::MaxTries => benchmark.max_tries = Some(max_tries(&text())?),
            Opt::VacuumAll => benchmark.vacuum_all = true,
            Opt::ReportPerCommand => benchmark.report_per_command = true,
            Opt::FailuresDetailed => benchmark.failures_detailed = true,
            Opt::VerboseErrors => benchmark.verbose_errors = true,
            Opt::ExitOnAbort => benchmark.exit_on_abort = true,
            Opt::Progress => benchmark.progress_s = at_least_one("-P/--progress")?,
            Opt::ProgressTimestamp => benchmark.progress_timestamp = true,
            Opt::Log => benchmark.log = true,
            Opt::LogPrefix => benchmark.log_prefix = Some(value.to_owned()),
            Opt::SamplingRate => benchmark.sampling_rate = Some(sampling_rate(&text())?),
            Opt::AggregateInterval => {
                benchmark.aggregate_interval_s = at_least_one("--aggregate-interval")?;
            }
            Opt::RandomSeed => {
                benchmark.random_seed = Some(seed::given(&text(), seed::Source::Option)?);
            }
            Opt::Engine => benchmark.engine = engine(&text())?,
            // Taken before, or shown.
            Opt::Compat | Opt::Help | Opt::Version | Opt::ShowScript => {}
        }
        Ok(())
    }
}

const INIT_STEPS: &str = "dtgGvpf";

fn steps(steps: &str) -> Result<String, Fatal> {
    if steps.is_empty() {
        return Err(Fatal::new("no initialization steps specified"));
    }
    match steps.chars().find(|step| *step != ' ' && !INIT_STEPS.contains(*step)) {
        None => Ok(steps.to_owned()),
        Some(step) => Err(Fatal::new(format_args!("unrecognized initialization step \"{step}\""))
            .detail(format_args!("Allowed step characters are: \"{INIT_STEPS}\"."))),
    }
}

fn partition_method(text: &str) -> Result<PartitionMethod, Fatal> {
    match text.to_ascii_lowercase().as_str() {
        "range" => Ok(PartitionMethod::Range),
        "hash" => Ok(PartitionMethod::Hash),
        _ => Err(Fatal::new(format_args!(
            "invalid partition method, expecting \"range\" or \"hash\", got: \"{text}\""
        ))),
    }
}

/// `-D name=value`.
fn definition(text: &str) -> Result<(String, String), Fatal> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            if !script::is_valid_variable_name(name) {
                return Err(Fatal::new(format_args!("option: invalid variable name: \"{name}\"")));
            }
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(Fatal::new(format_args!("invalid variable definition: \"{text}\""))),
    }
}

fn protocol(text: &str) -> Result<Protocol, Fatal> {
    match text {
        "simple" => Ok(Protocol::Simple),
        "extended" => Ok(Protocol::Extended),
        "prepared" => Ok(Protocol::Prepared),
        _ => Err(Fatal::new(format_args!("invalid query mode (-M): \"{text}\""))),
    }
}

fn positive(text: &str, what: &str) -> Result<f64, Fatal> {
    let number = leading_double(text);
    if number > 0.0 { Ok(number) } else { Err(Fatal::new(format_args!("invalid {what}: \"{text}\""))) }
}

fn sampling_rate(text: &str) -> Result<f64, Fatal> {
    positive(text, "sampling rate").and_then(|rate| {
        if rate <= 1.0 {
            Ok(rate)
        } else {
            Err(Fatal::new(format_args!("invalid sampling rate: \"{text}\"")))
        }
    })
}

/// 0 stands for no limit, also where there is no number at all.
fn max_tries(text: &str) -> Result<u32, Fatal> {
    let number = leading_whole(text).map_or(Some(0), |(number, _)| number);
    match number.map(|number| number.min(i64::from(i32::MAX))) {
        Some(number) if number >= 0 => Ok(number as u32),
        _ => Err(Fatal::new(format_args!("invalid number of maximum tries: \"{text}\""))),
    }
}

fn engine(text: &str) -> Result<driver::Engine, Fatal> {
    match text {
        "auto" => Ok(driver::Engine::Auto),
        "epoll" => Ok(driver::Engine::Epoll),
        "uring" => Ok(driver::Engine::Uring),
        _ => Err(Fatal::new(format_args!("invalid value \"{text}\" for option --engine"))
            .detail("Expecting \"auto\", \"epoll\" or \"uring\".")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Given {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        match read(&args) {
            Ok(Read::Given(given)) => *given,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_that_mean_something_in_one_mode_only() {
        let kinds = |line| {
            let given = given(line);
            (given.benchmark_option, given.initialization_option)
        };
        assert_eq!(kinds("-h x -p 1 -U u -d db -i -n -s 3 --debug"), (false, false));
        assert_eq!(kinds("-c 3"), (true, false));
        assert_eq!(kinds("-F 90"), (false, true));
        assert_eq!(kinds("--engine epoll"), (true, false));
    }

    #[test]
    fn d_was_debug_before_it_was_the_database() {
        assert!(given("-d db --compat 15").debug);
        assert_eq!(given("-d db").connection.database.as_deref(), Some("db"));
    }

    #[test]
    fn a_latency_limit_is_in_milliseconds() {
        assert_eq!(given("-L 1.5").benchmark.latency_limit_us, Some(1500));
    }

    #[test]
    fn tries_without_limit() {
        for (text, tries) in [("0", 0), ("x", 0), ("7", 7)] {
            assert_eq!(given(&format!("--max-tries {text}")).benchmark.max_tries, Some(tries), "{text}");
        }
    }
}
