//! The cost of pgdyno's collectors to the load that they run with.
//!
//! `cargo build --release -p pgdyno -p collector-cost`, then `collector-cost --help`, which describes the measurement;
//! `bench/README.md` describes how to read it.
//!
//! In the order of a run: `trial.rs` runs one long trial as a user would, with its collectors switched on and off,
//! `blocks.rs` extracts the pairs from its bundle, `collectors.rs` the collectors' figures, `verdict.rs` judges the
//! pairs, `table.rs` prints.

mod blocks;
mod collectors;
mod table;
mod trial;
mod verdict;

use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use processes::sibling_program;
use signal_hook::consts::{SIGINT, SIGTERM};
use store::Store;

use blocks::{Switch, pairs};
use collectors::Collectors;
use trial::Load;

/// Compares a load with pgdyno's collectors to the same load without them
///
/// pgdyno itself runs one long trial with its collectors. They run in pgdyno's own process, clients and server in
/// others: signals stop and continue that process, block by block. Blocks with and without collectors alternate in
/// pairs, in random order by a seed. So both are of one load, on one server, seconds apart, and what differs between
/// runs on a shared machine affects both alike.
///
/// Throughput is that of the bundle, over the full seconds of each block but its first. A ratio is on over off of one
/// pair; the output has their geometric mean with its 95 % confidence interval (Student's t of the pairs' logarithms).
///
/// The cost is proportional to the number of readings. So collectors read ten times as often as by default (--times),
/// which costs about ten times as much and is measured ten times as precisely, and the tenth root of the ratio is the
/// cost at the default rates (a lower root if the collectors did not reach that rate). Collectors must change
/// throughput by less than 1 %: "met" if the whole interval is within 1 % of 1, "missed" if all of it is beyond, else
/// "not decided", with the number of pairs that would decide at the same spread. With --times 1, the cost is measured
/// directly.
#[derive(Parser)]
struct Options {
    /// The server: a major or full PostgreSQL version, downloaded if not cached
    #[arg(long, value_name = "VERSION", default_value = "18")]
    postgres: String,
    /// The pgdyno to measure; the one next to this program if not given
    #[arg(long, value_name = "PATH")]
    pgdyno: Option<PathBuf>,
    /// The clients' workload
    #[arg(long, value_enum, default_value = "select-only")]
    workload: Workload,
    /// pgbench's scale factor
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    scale: u32,
    /// Number of clients
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// Number of pairs of blocks
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Seconds of a block; the first of them is not counted
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(3..=20))]
    block: u32,
    /// Reading rate of the collectors, as a multiple of the default
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
    times: u32,
    /// Seed of the order within the pairs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keeps the bundle in this store
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Workload {
    SelectOnly,
    TpcbLike,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let interrupted = interrupt_flag()?;
    let directory = tempfile::tempdir().context("cannot create a temporary directory")?;
    let root = options.store.clone().unwrap_or_else(|| directory.path().join("store"));
    let store = Store::open(&root).with_context(|| format!("cannot open the store {}", root.display()))?;
    let pgdyno = options.pgdyno.clone().map_or_else(|| sibling_program("pgdyno"), Ok)?;
    let load = options.load();

    let mut out = stdout();
    writeln!(out, "{load}; {} pairs of blocks of {} s, seed {}", options.pairs, options.block, options.seed)?;
    if let Ok(load) = fs::read_to_string("/proc/loadavg") {
        let load = load.split(' ').next().unwrap_or_default();
        writeln!(out, "load average at the start: {load} (other load widens the interval)")?;
    }
    let switches = Switch::plan(options.pairs, options.block, options.seed);
    let (record, switched) = trial::run(&pgdyno, directory.path(), &store, &load, &switches, &interrupted)?;
    let pairs = pairs(&record, &switched)?;
    table::pairs(&mut out, &pairs)?;
    table::summary(&mut out, &pairs, &Collectors::new(&record, &switched))?;
    Ok(())
}

/// A flag set by Ctrl-C, which pgdyno receives as well: both end in order.
fn interrupt_flag() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).context("could not handle Ctrl-C")?;
    }
    Ok(interrupted)
}

/// Returns an error once the user has interrupted.
fn check(interrupted: &AtomicBool) -> Result<()> {
    if interrupted.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}

impl Options {
    fn load(&self) -> Load {
        Load {
            server: self.postgres.clone(),
            workload: match self.workload {
                Workload::SelectOnly => "select-only",
                Workload::TpcbLike => "tpcb-like",
            },
            scale: self.scale,
            clients: self.clients,
            seconds: 2 * self.pairs * self.block,
            times: self.times,
        }
    }
}
