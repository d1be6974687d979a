//! The command line as written: every option of pgbench, and pgdyno's additions.

use std::ffi::{OsStr, OsString};

use model::workload::Protocol;

use crate::compat::Compat;
use crate::console::Console;
use crate::getopt::{Getopt, Spec};
use crate::help;
use crate::message::Fatal;
use crate::number::{leading_double, leading_integer, parse_integer};
use crate::open_files;
use crate::partition::PartitionMethod;
use crate::scripts::{self, Scripts};
use crate::seed;

/// The options of a command line, not yet checked against each other.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) compat: Compat,
    pub(crate) connection: Connection,
    pub(crate) debug: bool,
    pub(crate) scale: Option<u32>,
    pub(crate) no_vacuum: bool,
    pub(crate) initialize: bool,
    /// Whether an option is for benchmarks only.
    pub(crate) benchmark_option: bool,
    /// Whether an option is for initializations only.
    pub(crate) initialization_option: bool,
    pub(crate) initialization: InitializationOptions,
    pub(crate) benchmark: BenchmarkOptions,
    pub(crate) operands: Vec<OsString>,
}

/// Connection options. The environment and defaults fill in those that are None.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Connection {
    pub(crate) host: Option<String>,
    pub(crate) port: Option<String>,
    pub(crate) user: Option<String>,
    /// A database, a connection string or a URI.
    pub(crate) database: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct InitializationOptions {
    pub(crate) steps: Option<String>,
    pub(crate) fillfactor: Option<u32>,
    pub(crate) foreign_keys: bool,
    pub(crate) quiet: bool,
    pub(crate) unlogged: bool,
    pub(crate) tablespace: Option<String>,
    pub(crate) index_tablespace: Option<String>,
    pub(crate) partitions: u32,
    pub(crate) partition_method: Option<PartitionMethod>,
}

#[derive(Debug, Default)]
pub(crate) struct BenchmarkOptions {
    pub(crate) scripts: Scripts,
    pub(crate) defines: Vec<(String, String)>,
    pub(crate) clients: Option<u32>,
    pub(crate) threads: Option<u32>,
    pub(crate) transactions: Option<u32>,
    pub(crate) seconds: Option<u32>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) connect: bool,
    pub(crate) rate: Option<f64>,
    pub(crate) latency_limit_us: Option<u64>,
    pub(crate) max_tries: Option<u32>,
    pub(crate) vacuum_all: bool,
    pub(crate) report_per_command: bool,
    pub(crate) failures_detailed: bool,
    pub(crate) verbose_errors: bool,
    pub(crate) exit_on_abort: bool,
    pub(crate) progress_s: Option<u32>,
    pub(crate) progress_timestamp: bool,
    pub(crate) log: bool,
    pub(crate) log_prefix: Option<OsString>,
    pub(crate) sampling_rate: Option<f64>,
    pub(crate) aggregate_interval_s: Option<u32>,
    pub(crate) random_seed: Option<u64>,
    pub(crate) engine: driver::Engine,
}

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum CommandLine {
    /// An initialization or a benchmark.
    Run(Box<Options>),
    /// Text on standard output, and nothing else.
    Show(String),
    /// Text on standard error, and nothing else.
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

/// The options of pgbench, in the order in which it lists the possibilities of an ambiguous abbreviation.
fn specs(compat: Compat) -> Vec<Spec<Opt>> {
    let spec = |id, short: &str, long, takes_value| Spec {
        id,
        short: short.bytes().next(),
        long,
        takes_value,
        abbreviable: true,
    };
    let with_value = |id, short, long| spec(id, short, long, true);
    let flag = |id, short, long| spec(id, short, long, false);
    let addition = |spec: Spec<Opt>| Spec { abbreviable: false, ..spec };

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

/// Parses a command line without the program's name. Scripts are read and seeds are drawn in the order of the options:
/// that is the order of their messages.
pub(crate) fn parse(args: &[OsString], console: &Console) -> Result<CommandLine, Fatal> {
    let compat = Compat::from_args(args)?;
    let mut options = Options {
        compat,
        connection: Connection::default(),
        debug: false,
        scale: None,
        no_vacuum: false,
        initialize: false,
        benchmark_option: false,
        initialization_option: false,
        initialization: InitializationOptions::default(),
        benchmark: BenchmarkOptions::default(),
        operands: Vec::new(),
    };
    if let Some(seed) = std::env::var_os("PGBENCH_RANDOM_SEED") {
        let seed = seed::parse(&seed.to_string_lossy(), seed::Source::Environment, console)?;
        options.benchmark.random_seed = Some(seed);
    }

    let specs = specs(compat);
    let mut getopt = Getopt::new(args, &specs, std::env::var_os("POSIXLY_CORRECT").is_some());
    while let Some(parsed) = getopt.next() {
        let (option, value) = parsed.map_err(Fatal::usage)?;
        let value = value.unwrap_or_default();
        if let Some(show) = option.informational_text(&value, compat)? {
            return Ok(show);
        }
        options.benchmark_option |= option.is_for_benchmarks();
        options.initialization_option |= option.is_for_initialization();
        options.set(option, &value, console)?;
    }
    options.operands = getopt.operands();
    Ok(CommandLine::Run(Box::new(options)))
}

impl Opt {
    /// The text that an option prints instead of a run.
    fn informational_text(self, value: &OsStr, compat: Compat) -> Result<Option<CommandLine>, Fatal> {
        Ok(Some(match self {
            Self::Help => CommandLine::Show(help::text(compat)),
            Self::Version => CommandLine::Show(format!("pgbench (PostgreSQL) {}\n", compat.version())),
            Self::Builtin if value == "list" => CommandLine::ShowOnStderr(scripts::list()),
            Self::ShowScript => {
                let builtin = scripts::find(&value.to_string_lossy())?;
                let script::Builtin { name, description, text } = builtin;
                CommandLine::ShowOnStderr(format!("-- {name}: {description}\n{text}\n"))
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

impl Options {
    fn set(&mut self, option: Opt, value: &OsStr, console: &Console) -> Result<(), Fatal> {
        let text = || value.to_string_lossy().into_owned();
        let at_least_one = |name: &str| parse_integer(&value.to_string_lossy(), name, 1, i32::MAX).map(Some);
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
                initialization.fillfactor = Some(parse_integer(&text(), "-F/--fillfactor", 10, 100)?);
            }
            Opt::ForeignKeys => initialization.foreign_keys = true,
            Opt::Quiet => initialization.quiet = true,
            Opt::UnloggedTables => initialization.unlogged = true,
            Opt::Tablespace => initialization.tablespace = Some(text()),
            Opt::IndexTablespace => initialization.index_tablespace = Some(text()),
            Opt::Partitions => {
                initialization.partitions = parse_integer(&text(), "--partitions", 0, i32::MAX)?;
            }
            Opt::PartitionMethod => initialization.partition_method = Some(partition_method(&text())?),

            Opt::Builtin => benchmark.scripts.add_builtin_option(value)?,
            Opt::SelectOnly => benchmark.scripts.add_builtin("select-only", 1)?,
            Opt::SkipSomeUpdates => benchmark.scripts.add_builtin("simple-update", 1)?,
            Opt::File => benchmark.scripts.add_file_option(value)?,
            Opt::Define => benchmark.defines.push(definition(&text())?),
            Opt::Client => {
                let name = if *compat == Compat::V15 { "-c/--clients" } else { "-c/--client" };
                benchmark.clients = at_least_one(name)?;
                benchmark.clients.map_or(Ok(()), open_files::allow_clients)?;
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
                benchmark.random_seed = Some(seed::parse(&text(), seed::Source::Option, console)?);
            }
            Opt::Engine => benchmark.engine = engine(&text())?,
            // Handled before.
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

/// 0 is no limit, and so is a text without a number.
fn max_tries(text: &str) -> Result<u32, Fatal> {
    let number = leading_integer(text).map_or(Some(0), |(number, _)| number);
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

    fn options(line: &str) -> Options {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        match parse(&args, &Console::new(std::io::sink(), std::io::sink(), false)) {
            Ok(CommandLine::Run(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_for_one_mode_only_are_distinguished() {
        let kinds = |line| {
            let options = options(line);
            (options.benchmark_option, options.initialization_option)
        };
        assert_eq!(kinds("-h x -p 1 -U u -d db -i -n -s 3 --debug"), (false, false));
        assert_eq!(kinds("-c 3"), (true, false));
        assert_eq!(kinds("-F 90"), (false, true));
        assert_eq!(kinds("--engine epoll"), (true, false));
    }

    #[test]
    fn the_meaning_of_d_depends_on_the_version() {
        assert!(options("-d db --compat 15").debug);
        assert_eq!(options("-d db").connection.database.as_deref(), Some("db"));
    }

    #[test]
    fn a_latency_limit_is_in_milliseconds() {
        assert_eq!(options("-L 1.5").benchmark.latency_limit_us, Some(1500));
    }

    #[test]
    fn max_tries_0_means_no_limit() {
        for (text, tries) in [("0", 0), ("x", 0), ("7", 7)] {
            assert_eq!(options(&format!("--max-tries {text}")).benchmark.max_tries, Some(tries), "{text}");
        }
    }
}
