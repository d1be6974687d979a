//! `pgdyno bench`: one load against a running server, and its report.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use bench::{
    Conclusion, Define, ErrorOptions, ErrorRule, Interrupt, LiveView, Objective, Outcome, Plan, Report,
    Request, ScheduleOptions, ScriptOptions, Spacing, WeightedName,
};
use clap::{Args, ValueEnum};
use driver::{Engine, Stage, Think};
use model::workload::Protocol;
use runner::campaign_file::draw_seed;

use crate::connection::ConnectionArgs;
use crate::exit::{Exit, Usage, print_error};
use crate::interrupt;
use crate::output::{in_colour, print};
use crate::progress::LoadProgress;

const EXAMPLES: &str = "\
Examples:
  pgdyno bench -c 16 -T 30s -d mydb                    the built-in tpcb-like, as fast as 16 clients can
  pgdyno bench select-only -c 64 -j 2 --warmup 5s      one of pgbench's scripts
  pgdyno bench read.sql@9 write.sql@1 -r -d mydb       two files, nine to one, each statement measured
  pgdyno bench --rate 400/s -c 32 -T 1min              400 a second, whether or not the server keeps up
  pgdyno bench --stage 30s:100..1000 --stage 10s:1000  a ramp, then a constant rate
  pgdyno bench --find-max 'p99 < 10ms' -c 32           the highest rate with 99 % below 10 ms
  pgdyno bench app.sql --on-error 23505=count --think 10ms..50ms --setup make.sql --teardown drop.sql
  pgdyno bench --format json -o out.json --hlog out.hlog -- 'host=db.example dbname=mydb sslmode=require'

The tables of the built-in scripts come from `pgdyno pgbench -i DBNAME`. What each figure means, and how to
choose between closed and open loop, is in docs/bench.md.

Exit codes: 0 ok; 1 error, all clients were aborted, or no rate meets the objectives; 2 usage, nothing was started;
5 some clients were aborted, or a longer run did not confirm the rate; 130 interrupted, what ran is reported.";

/// Put a load on a server, and report throughput and latency
///
/// Clients run scripts in pgbench's language, in a closed loop (each as fast as it can) or an open one (on a schedule).
/// In an open loop latency counts from the intended start of a transaction, waiting included.
/// The report goes to standard output, a live view to standard error; the first Ctrl-C ends the load and reports it.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    scripts: ScriptArgs,

    #[command(flatten)]
    load: LoadArgs,

    #[command(flatten)]
    arrivals: ArrivalArgs,

    #[command(flatten)]
    errors: ErrorArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
struct ScriptArgs {
    /// Scripts in pgbench's language: files, or built-in scripts by name; each is chosen in proportion to its weight
    /// [default: the built-in tpcb-like]
    #[arg(value_name = "SCRIPT[@WEIGHT]")]
    scripts: Vec<WeightedName>,

    /// Built-in script: tpcb-like, simple-update, select-only, or a unique beginning of the name
    #[arg(short, long, value_name = "NAME[@WEIGHT]")]
    builtin: Vec<WeightedName>,

    /// Script file; - is standard input
    #[arg(short, long, value_name = "FILE[@WEIGHT]")]
    file: Vec<WeightedName>,

    /// Value of the scripts' variable :NAME
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    define: Vec<Define>,

    /// Value of :scale [default: for built-in scripts the number of rows in pgbench_branches, else 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    scale: Option<u32>,

    /// Seed of all random numbers; the same seed sends the same statements as pgbench's --random-seed [default: drawn,
    /// and reported]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Script to run once before the load, in a session of its own
    #[arg(long, value_name = "FILE")]
    setup: Option<PathBuf>,

    /// Script to run once after the load, also after errors and Ctrl-C
    #[arg(long, value_name = "FILE")]
    teardown: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
struct LoadArgs {
    /// Clients: concurrent sessions
    #[arg(short, long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: u32,

    /// Threads of the driver; one is enough unless a warning asks for more
    #[arg(short = 'j', long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    threads: u32,

    /// Length of the measured window: 30s, 500ms, 5min; a plain number is seconds [default: 10s; the sum of the stages;
    /// 5s a step of --find-max]
    #[arg(short = 'T', long, value_name = "TIME", value_parser = bench::positive_duration)]
    duration: Option<Duration>,

    /// Transactions of each client, in place of a duration
    #[arg(short = 't', long, value_name = "N", conflicts_with_all = ["duration", "warmup", "find_max"],
          value_parser = clap::value_parser!(u64).range(1..))]
    transactions: Option<u64>,

    /// Load before the measured window [default: none; 1s a step of --find-max]
    #[arg(long, value_name = "TIME", value_parser = bench::duration)]
    warmup: Option<Duration>,

    /// How statements are sent
    #[arg(short = 'M', long, value_enum, default_value = "prepared", value_name = "PROTOCOL")]
    protocol: ProtocolName,

    /// Pause of a client between two transactions: 10ms, or a random time: 10ms..50ms
    #[arg(long, value_name = "TIME[..TIME]", value_parser = bench::think_time)]
    think: Option<Think>,

    /// Each transaction has a connection of its own
    #[arg(short = 'C', long)]
    connect: bool,

    /// The driver's event loop
    #[arg(long, value_enum, default_value = "auto", value_name = "ENGINE")]
    engine: EngineName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProtocolName {
    /// As text, with the values in it
    Simple,
    /// Parsed each time
    Extended,
    /// Parsed once a session
    Prepared,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineName {
    /// io_uring if it works, else epoll
    Auto,
    Epoll,
    Uring,
}

#[derive(Debug, Args)]
#[command(
    next_help_heading = "Open loop: transactions start when they are due, whether or not the server keeps up"
)]
struct ArrivalArgs {
    /// Transactions per second of all clients together, such as 400/s
    #[arg(long, value_name = "RATE", conflicts_with_all = ["stage", "find_max"], value_parser = bench::positive_rate)]
    rate: Option<f64>,

    /// A part of the schedule: 10s:200 at a rate, 10s:100..500 a ramp, 5s:0 a pause; one after the other
    #[arg(long, value_name = "TIME:RATE[..RATE]", conflicts_with = "find_max", value_parser = bench::stage)]
    stage: Vec<Stage>,

    /// How they are spaced: poisson (at random, as of many independent users), uniform, or file:PATH with the times of
    /// all arrivals, in seconds after the start, one a line [default: poisson]
    #[arg(long, value_name = "SPACING")]
    arrivals: Option<Spacing>,

    /// Search for the highest rate that meets an objective: "p99 < 10ms", also p50 to p99.99, mean, max, "errors < 1%";
    /// may be repeated
    #[arg(long, value_name = "OBJECTIVE")]
    find_max: Vec<Objective>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Errors")]
struct ErrorArgs {
    /// What to do about errors of a SQLSTATE, of a class (40) or all others (*): retry, count (as failed), reconnect, or
    /// abort (the client) [default: 40001 and 40P01 retry, class 42 aborts, all others count]
    #[arg(long, value_name = "STATE=ACTION")]
    on_error: Vec<ErrorRule>,

    /// Tries per transaction, the first included; 0 is without limit
    #[arg(long, value_name = "N", default_value = "10")]
    max_tries: u32,

    /// Pause before a transaction is tried again; doubles each further time up to 64 times, and varies at random by half
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = bench::duration, hide_default_value = true)]
    back_off: Duration,

    /// Reconnect clients that lose their connection; their transactions count as failed
    #[arg(long)]
    reconnect: bool,

    /// Transactions that take longer are late; in an open loop those that could only start later are skipped
    #[arg(long, value_name = "TIME", value_parser = bench::positive_duration)]
    latency_limit: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
struct OutputArgs {
    /// Measure each statement of the scripts
    #[arg(short = 'r', long)]
    per_statement: bool,

    /// Length of the intervals in JSON and the interval log; may be below a second
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = bench::interval)]
    interval: Duration,

    /// How to print the report
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    format: FormatName,

    /// File for the report, in place of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// File for the histograms of every interval, as an HdrHistogram interval log
    #[arg(long, value_name = "FILE")]
    hlog: Option<PathBuf>,

    /// No live view
    #[arg(short, long)]
    quiet: bool,

    /// Print help
    #[arg(short = '?', long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatName {
    Table,
    Json,
}

impl BenchArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let (output, format, quiet) = (self.output.output.clone(), self.output.format, self.output.quiet);
        let plan = Plan::new(self.request()?).map_err(|error| Usage(format!("error: {error}")))?;
        if let Some(path) = &output {
            // A path that can't be written is reported before the load, not after it.
            let opened = OpenOptions::new().append(true).create(true).open(path);
            opened.with_context(|| cannot_write(path))?;
        }
        let interrupt = Interrupt::default();
        let first = interrupt.clone();
        interrupt::on_first_signal(move |_| first.request(), interrupt::exit)
            .context("could not watch for Ctrl-C")?;
        let mut progress = (!quiet).then(LoadProgress::new);
        let view = progress.as_mut().map(|progress| progress as &mut dyn LiveView);
        let Outcome { report, teardown } = bench::run(plan, &interrupt, view, &mut io::stderr());
        let report = match (report, teardown) {
            (Ok(report), teardown) => {
                print_report(&report, format, output.as_deref())?;
                teardown?;
                report
            }
            (Err(error), teardown) => {
                teardown.unwrap_or_else(|error| print_error(&error.into()));
                return Err(error.into());
            }
        };
        Ok(match report.conclusion() {
            Conclusion::Complete => Exit::Ok,
            Conclusion::Partial => Exit::Partial,
            Conclusion::Failed => Exit::Error,
            Conclusion::Interrupted => Exit::Interrupted,
        })
    }

    fn request(self) -> Result<Request, Usage> {
        let Self { scripts, load, arrivals, errors, output, connection } = self;
        Ok(Request {
            connection: connection.resolve()?,
            scripts: ScriptOptions {
                named: scripts.scripts,
                builtin: scripts.builtin,
                files: scripts.file,
                define: scripts.define,
                scale: scripts.scale,
                seed: scripts.seed.unwrap_or_else(draw_seed),
                setup: scripts.setup,
                teardown: scripts.teardown,
            },
            clients: load.clients,
            threads: load.threads,
            duration: load.duration,
            transactions: load.transactions,
            warmup: load.warmup,
            protocol: match load.protocol {
                ProtocolName::Simple => Protocol::Simple,
                ProtocolName::Extended => Protocol::Extended,
                ProtocolName::Prepared => Protocol::Prepared,
            },
            think: load.think,
            connect: load.connect,
            engine: match load.engine {
                EngineName::Auto => Engine::Auto,
                EngineName::Epoll => Engine::Epoll,
                EngineName::Uring => Engine::Uring,
            },
            schedule: ScheduleOptions {
                rate: arrivals.rate,
                stages: arrivals.stage,
                spacing: arrivals.arrivals,
                objectives: arrivals.find_max,
            },
            errors: ErrorOptions {
                rules: errors.on_error,
                max_tries: errors.max_tries,
                back_off: errors.back_off,
                reconnect: errors.reconnect,
            },
            latency_limit: errors.latency_limit,
            per_statement: output.per_statement,
            interval: output.interval,
            interval_log: output.hlog,
        })
    }
}

fn print_report(report: &Report, format: FormatName, path: Option<&Path>) -> anyhow::Result<()> {
    let text = match format {
        FormatName::Json => serde_json::to_string_pretty(report).context("could not write JSON")? + "\n",
        FormatName::Table => bench::text(report, path.is_none() && in_colour()),
    };
    match path {
        Some(path) => std::fs::write(path, text).with_context(|| cannot_write(path)),
        None => print(&text),
    }
}

fn cannot_write(path: &Path) -> String {
    format!("the report can't be written to {}", path.display())
}
