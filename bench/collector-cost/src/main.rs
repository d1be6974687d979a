//! What pgdyno's collectors cost the load beside which they read.
//!
//! `cargo build --release -p pgdyno -p collector-cost`, then `collector-cost --help`, which says what is measured and
//! how; `bench/README.md` says how to read it.
//!
//! In the order of a run: `trial.rs` runs one trial as a user would and reads its bundle, `collectors.rs` is what the
//! bundle says of the collectors, `verdict.rs` what the pairs say together, `table.rs` what is printed.

mod collectors;
mod table;
mod trial;
mod verdict;

use std::env;
use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use model::shuffle::Shuffler;
use model::units::Span;
use signal_hook::consts::{SIGINT, SIGTERM};
use store::Store;

use trial::{Bench, Load, Trial};
use verdict::Pair;

/// Runs of the shortest duration with and without collectors: what these take is not the load's.
const BARE_RUNS: u32 = 2;

/// Compares loads with pgdyno's collectors at work beside them to loads without
///
/// One campaign of a single trial is run again and again by pgdyno itself, with its collectors on and off. The two take
/// turns in pairs, and which is first is random, by a seed. The server is PostgreSQL, started anew for each trial with
/// warm caches, and the load is prepared statements over a Unix socket.
///
/// Throughput is that of the bundles. A ratio is on over off of one pair; shown is their geometric mean with its 95 %
/// confidence interval (Student's t of the pairs' logarithms). Collectors are to change throughput by less than 1 %:
/// "met" where the whole interval is within 1 % of 1, "missed" where all of it is beyond, else "not decided", with the
/// number of pairs that would decide if they spread alike.
///
/// CPU time for a transaction is that of pgdyno, driver and server together, user and system, as the kernel counts it
/// for processes that have ended. What starting and ending them takes is measured by runs of 100 ms and subtracted.
/// What each collector took is what the bundles say, the warm-up included.
#[derive(Parser)]
struct Options {
    /// The server: a major or full PostgreSQL version, downloaded where it is not cached
    #[arg(long, value_name = "VERSION", default_value = "18")]
    postgres: String,
    /// The pgdyno to measure; the one beside this program if not given
    #[arg(long, value_name = "PATH")]
    pgdyno: Option<PathBuf>,
    /// What the clients do
    #[arg(long, value_enum, default_value = "select-only")]
    workload: Workload,
    /// pgbench's scale factor
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    scale: u32,
    /// Number of clients
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// How many pairs are measured
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Length of one measurement; a second of warm-up is before it
    #[arg(long, default_value = "5s")]
    duration: Span,
    /// How often a second it is looked what sessions wait for; pgdyno's own default if not given
    #[arg(long, value_name = "HZ")]
    waits_hz: Option<f64>,
    /// Of the order within the pairs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keeps the bundles in this store
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
    let interrupted = interrupt()?;
    let directory = tempfile::tempdir().context("there is no place for the bundles")?;
    let root = options.store.clone().unwrap_or_else(|| directory.path().join("store"));
    let store = Store::open(&root).with_context(|| format!("cannot keep bundles in {}", root.display()))?;
    let bench = Bench {
        pgdyno: options.pgdyno.clone().map_or_else(|| beside_us("pgdyno"), Ok)?,
        directory: directory.path(),
        store: &store,
        interrupted: &interrupted,
    };
    let load = options.load();

    let mut out = stdout();
    writeln!(out, "{load}; {} pairs of {}, seed {}", options.pairs, options.duration, options.seed)?;
    if let Ok(load) = fs::read_to_string("/proc/loadavg") {
        let load = load.split(' ').next().unwrap_or_default();
        writeln!(out, "load average at the start: {load} (of others: the more, the wider the interval)")?;
    }
    let bare = bare(&bench, &load)?;
    table::head(&mut out)?;
    let mut shuffler = Shuffler::new(options.seed);
    let mut pairs = Vec::new();
    for number in 1..=options.pairs {
        let mut order = [false, true];
        shuffler.shuffle(&mut order);
        let [first, second] = [bench.run(&load, order[0])?, bench.run(&load, order[1])?];
        let (off, on) = if order[0] { (second, first) } else { (first, second) };
        let pair = Pair { on_is_first: order[0], off: off.beyond(&bare[0]), on: on.beyond(&bare[1]) };
        table::pair(&mut out, number, &pair)?;
        pairs.push(pair);
    }
    table::summary(&mut out, &pairs)?;
    Ok(())
}

/// What the shortest runs take, off and on, on average.
fn bare(bench: &Bench, load: &Load) -> Result<[Trial; 2]> {
    let shortest = Load { duration: Span::from_us(100_000), ..load.clone() };
    // The first of all may have to make the data set.
    bench.run(&shortest, false)?;
    let mut both = [Vec::new(), Vec::new()];
    for _ in 0..BARE_RUNS {
        both[0].push(bench.run(&shortest, false)?);
        both[1].push(bench.run(&shortest, true)?);
    }
    Ok(both.map(|trials| Trial::mean(&trials)))
}

/// Set by Ctrl-C, which pgdyno gets as well: it ends in order, and so do we.
fn interrupt() -> Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&asked)).context("could not watch for Ctrl-C")?;
    }
    Ok(asked)
}

/// The program of this name in the directory of this one.
fn beside_us(name: &str) -> Result<PathBuf> {
    let us = env::current_exe().context("cannot tell where this program is")?;
    let program = us.with_file_name(name);
    program.is_file().then_some(program).with_context(|| {
        let place = us.parent().unwrap_or(&us).display();
        format!("no {name} in {place}: build it there (cargo build --release -p {name})")
    })
}

/// An error once the user wants to stop.
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
            duration: self.duration,
            waits_hz: self.waits_hz,
        }
    }
}
