//! The command line of `pgdyno bench`, as written.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use driver::{Stage, Think};

use super::objective::Objective;
use super::quantity::{self, Define, ErrorRule, Weighted};

#[derive(Debug, Args)]
#[command(next_help_heading = "What clients run")]
pub(super) struct ScriptArgs {
    /// Scripts in pgbench's language: files, or built-in scripts by name; each chosen as often as its weight says
    /// [default: the built-in tpcb-like]
    #[arg(value_name = "SCRIPT[@WEIGHT]")]
    pub(super) scripts: Vec<Weighted>,

    /// Built-in script: tpcb-like, simple-update, select-only, or as much of the name as tells them apart
    #[arg(short, long, value_name = "NAME[@WEIGHT]")]
    pub(super) builtin: Vec<Weighted>,

    /// Script file; - is standard input
    #[arg(short, long, value_name = "FILE[@WEIGHT]")]
    pub(super) file: Vec<Weighted>,

    /// Gives the scripts' variable :NAME a value
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    pub(super) define: Vec<Define>,

    /// Value of :scale [default: for built-in scripts the number of rows in pgbench_branches, else 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) scale: Option<u32>,

    /// Seed of all random numbers; the same seed sends the same statements as pgbench's --random-seed [default: drawn,
    /// and reported]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Script that is run once before the load, by a session of its own
    #[arg(long, value_name = "FILE")]
    pub(super) setup: Option<PathBuf>,

    /// Script that is run once after the load, also after errors and Ctrl-C
    #[arg(long, value_name = "FILE")]
    pub(super) teardown: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How much, for how long")]
pub(super) struct LoadArgs {
    /// Clients: sessions at the same time
    #[arg(short, long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) clients: u32,

    /// Threads of the driver; one is enough until a warning says otherwise
    #[arg(short = 'j', long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) threads: u32,

    /// Length of the measured window: 30s, 500ms, 5min; a plain number is seconds [default: 10s; the sum of the stages;
    /// 5s a step of --find-max]
    #[arg(short = 'T', long, value_name = "TIME", value_parser = quantity::some_time)]
    pub(super) duration: Option<Duration>,

    /// Ends after so many transactions of each client, in place of a duration
    #[arg(short = 't', long, value_name = "N", conflicts_with_all = ["duration", "warmup", "find_max"],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) transactions: Option<u64>,

    /// Load before the measured window [default: none; 1s a step of --find-max]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(super) warmup: Option<Duration>,

    /// How statements are sent
    #[arg(short = 'M', long, value_enum, default_value = "prepared", value_name = "PROTOCOL")]
    pub(super) protocol: ProtocolName,

    /// Pause of a client between two transactions: 10ms, or of random length: 10ms..50ms
    #[arg(long, value_name = "TIME[..TIME]", value_parser = quantity::think)]
    pub(super) think: Option<Think>,

    /// Each transaction has a connection of its own
    #[arg(short = 'C', long)]
    pub(super) connect: bool,

    /// The driver's event loop
    #[arg(long, value_enum, default_value = "auto", value_name = "ENGINE")]
    pub(super) engine: EngineName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ProtocolName {
    /// Text with the values in it
    Simple,
    /// Parsed each time
    Extended,
    /// Parsed once a session
    Prepared,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum EngineName {
    /// io_uring where it works, else epoll
    Auto,
    Epoll,
    Uring,
}

#[derive(Debug, Args)]
#[command(
    next_help_heading = "Open loop: transactions begin when they are due, whether or not the server keeps up"
)]
pub(super) struct ArrivalArgs {
    /// Transactions a second of all clients together, such as 400/s
    #[arg(long, value_name = "RATE", conflicts_with_all = ["stage", "find_max"], value_parser = quantity::some_rate)]
    pub(super) rate: Option<f64>,

    /// A part of the schedule: 10s:200 at a rate, 10s:100..500 a ramp, 5s:0 a pause; one after the other
    #[arg(long, value_name = "TIME:RATE[..RATE]", conflicts_with = "find_max", value_parser = quantity::stage)]
    pub(super) stage: Vec<Stage>,

    /// How they are spaced: poisson (by chance, as of many independent users), uniform, or file:PATH with the times of
    /// all arrivals, in seconds after the start, one a line [default: poisson]
    #[arg(long, value_name = "SPACING")]
    pub(super) arrivals: Option<String>,

    /// Searches the highest rate that holds an objective: "p99 < 10ms", also p50 to p99.99, mean, max, "errors < 1%"; may
    /// be given several times
    #[arg(long, value_name = "OBJECTIVE")]
    pub(super) find_max: Vec<Objective>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Errors")]
pub(super) struct ErrorArgs {
    /// What to do about errors of a SQLSTATE, of a class (40) or all others (*): retry, count (as failed), reconnect, or
    /// abort (the client) [default: 40001 and 40P01 retry, class 42 aborts, all others count]
    #[arg(long, value_name = "STATE=ACTION")]
    pub(super) on_error: Vec<ErrorRule>,

    /// How often a transaction is tried in all; 0 is without limit
    #[arg(long, value_name = "N", default_value = "10")]
    pub(super) max_tries: u32,

    /// Pause before a transaction is tried again; doubled each further time up to 64 times, and spread by half
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = quantity::duration, hide_default_value = true)]
    pub(super) back_off: Duration,

    /// A client that loses its connection gets another one, its transaction counted as failed
    #[arg(long)]
    pub(super) reconnect: bool,

    /// Transactions that take longer are late; in an open loop those that could only begin later are skipped
    #[arg(long, value_name = "TIME", value_parser = quantity::some_time)]
    pub(super) latency_limit: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What is reported")]
pub(super) struct OutputArgs {
    /// Measures each statement of the scripts
    #[arg(short = 'r', long)]
    pub(super) per_statement: bool,

    /// Length of the intervals of JSON and interval log; may be below a second
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(super) interval: Duration,

    /// How to print the report
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    pub(super) format: FormatName,

    /// File that gets the report, in place of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// File that gets the histograms of every interval, as an HdrHistogram interval log
    #[arg(long, value_name = "FILE")]
    pub(super) hlog: Option<PathBuf>,

    /// No live view
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// Print help
    #[arg(short = '?', long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatName {
    Table,
    Json,
}

/// Histograms of every interval are handed over and merged: below a millisecond that is all that would be done.
fn interval(text: &str) -> Result<Duration, String> {
    match quantity::duration(text)? {
        short if short < Duration::from_millis(1) => Err("it has to be a millisecond at least".to_owned()),
        interval => Ok(interval),
    }
}
