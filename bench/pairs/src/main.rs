//! What paired trials decide, and in what time.
//!
//! `cargo build --release -p pgdyno -p pairs`, then `pairs --help`, which describes the measurement; `bench/README.md`
//! describes how to read it.
//!
//! `cases.rs` has the compared servers, `campaign.rs` runs pgdyno on them, `sessions.rs` reads the sessions of a run,
//! `table.rs` prints.

mod campaign;
mod cases;
mod sessions;
mod table;

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::{Child, Command};

use anyhow::{Context, Result, bail};
use clap::Parser;
use model::units::Span;
use processes::sibling_program;
use store::Store;

use campaign::Campaigns;
use cases::CASES;
use table::{Outcomes, UnpairedOutcomes};

/// Compares servers in pairs, again and again, and counts the verdicts
///
/// Each case is a server against itself, with equal settings or with a planted difference. A round of a case is a run of
/// pgdyno with paired trials, as a user would start it, until it is decided or its time is over. The table has, by case: the
/// rounds with the expected verdict, those with a wrong one, and those undecided; median time and sessions; the ratio
/// over all rounds with its 95 % confidence interval; the spread of sessions; and the CPU time of the paused server as a
/// share of the running one's.
///
/// With --unpaired, trials of the same case run one after another in randomized blocks after each round, for as long as it
/// took, each with the load of one side of a session. A second row of the case has how many of these comparisons decide, and their
/// ratio.
#[derive(Parser)]
struct Options {
    /// Cases whose name contains this; all if not given
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Rounds of each case
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Time limit of a round
    #[arg(long, value_name = "TIME", default_value = "5min")]
    max_time: String,
    /// Runs so many sessions in each round, whatever they show: for the ratio, which a decision would stop at an extreme
    #[arg(long, value_name = "N", conflicts_with = "max_time", value_parser = clap::value_parser!(u32).range(3..))]
    sessions: Option<u32>,
    /// Ratio at which servers are equivalent
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    margin: String,
    /// Load of the slices of one side in a session
    #[arg(long, value_name = "TIME", default_value = "750ms")]
    duration: Span,
    /// CPUs of driver and servers: `separate` for half of them each, as `pgdyno ab` has it, or `none` for all
    #[arg(long, value_name = "PIN", default_value = "separate")]
    pin: String,
    /// Has the server's CPU time decide, too, as `pgdyno ab` where others use the CPUs
    #[arg(long)]
    cpu_decides: bool,
    /// Processes that compute all the time, next to the measurement
    #[arg(long, value_name = "N", default_value_t = 0)]
    busy: u32,
    /// What they run in a shell, again and again, such as a compiler
    #[arg(long, value_name = "COMMAND", default_value = ":")]
    busy_with: String,
    /// Measures the same cases by trials one after another, too, for so many times the time of the paired round
    #[arg(long, value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    unpaired: Option<f64>,
    /// The server: a major or full PostgreSQL version, downloaded if not cached
    #[arg(long, value_name = "VERSION", default_value = "18")]
    postgres: String,
    /// The pgdyno to measure with; the one next to this program if not given
    #[arg(long, value_name = "PATH")]
    pgdyno: Option<PathBuf>,
    /// Keeps the bundles in this store
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let directory = tempfile::tempdir().context("cannot create a temporary directory")?;
    let root = options.store.clone().unwrap_or_else(|| directory.path().join("store"));
    let store = Store::open(&root).with_context(|| format!("cannot open the store {}", root.display()))?;
    let pgdyno = options.pgdyno.clone().map_or_else(|| sibling_program("pgdyno"), Ok)?;
    let is_chosen = |name: &str| {
        options.names.is_empty() || options.names.iter().any(|part| name.contains(part.as_str()))
    };
    let cases: Vec<_> = CASES.iter().filter(|case| is_chosen(case.name)).collect();
    if cases.is_empty() {
        bail!("no case has such a name: {}", CASES.map(|case| case.name).join(", "));
    }
    let campaigns =
        Campaigns { pgdyno: &pgdyno, directory: directory.path(), store: &store, options: &options };
    let _busy = Busy::start(options.busy, &options.busy_with)?;
    let mut out = stdout();
    let length =
        options.sessions.map_or(format!("at most {}", options.max_time), |n| format!("{n} sessions"));
    writeln!(out, "margin {}, {length} a round\n\n{}", options.margin, table::HEAD)?;
    for case in cases {
        let (mut rounds, mut unpaired) = (Vec::new(), Vec::new());
        for seed in 1..=options.rounds {
            let round = campaigns.paired(case, seed)?;
            if let Some(factor) = options.unpaired {
                unpaired.push(campaigns.unpaired(case, round.elapsed.as_secs_f64() * factor)?);
            }
            rounds.push(round);
        }
        writeln!(out, "{}", Outcomes { case, rounds: &rounds })?;
        if !unpaired.is_empty() {
            writeln!(out, "{}", UnpairedOutcomes { case, rounds: &unpaired })?;
        }
        out.flush()?;
    }
    Ok(())
}

/// Shells that run a command again and again, killed when dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn start(count: u32, command: &str) -> Result<Self> {
        let script = format!("while :; do {command}; done");
        let spawn = |_| Command::new("sh").args(["-c", &script]).spawn();
        let children = (0..count).map(spawn).collect::<std::io::Result<_>>();
        Ok(Self(children.context("cannot start a shell")?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Fails only if it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
