//! What pgdyno's collectors cost the load during which they read.
//!
//! `cargo build --release -p pgdyno -p collector-cost`, then `collector-cost --help`, which says what is measured and
//! how; `bench/README.md` says how to read it.
//!
//! In the order of a run: `trial.rs` runs one long trial as a user would, with its collectors switched on and off,
//! `blocks.rs` takes the pairs out of its bundle, `collectors.rs` what it says of the collectors, `verdict.rs` is what the
//! pairs say together, `table.rs` what is printed.

mod blocks;
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
use signal_hook::consts::{SIGINT, SIGTERM};
use store::Store;

use blocks::{Switch, pairs};
use collectors::Collectors;
use trial::Load;

/// Compares a load with pgdyno's collectors to the same load without them
///
/// One long trial is run by pgdyno itself, with its collectors. They are in pgdyno's own process, while clients and server
/// are in others: that process is stopped and continued by signals, block by block. Blocks with and without collectors
/// take turns in pairs, and which is first is random, by a seed. So both are of one load, on one server, seconds apart,
/// and what differs between runs on a shared machine differs in both alike.
///
/// Throughput is the bundle's, of the full seconds of each block but its first. A ratio is on over off of one pair; shown
/// is their geometric mean with its 95 % confidence interval (Student's t of the pairs' logarithms).
///
/// One reading costs what it costs, and all of them so many times that. So collectors read ten times as often as by default
/// (--times), which costs about ten times as much and is seen ten times as well, and the root of the ratio is what they cost
/// by default: the tenth, or less where not as much more was read. Collectors are to change throughput by less than 1 %:
/// "met" where the whole interval of that is within 1 % of 1, "missed" where all of it is beyond, else "not decided", with the
/// number of pairs that would decide if they spread alike. With --times 1, nothing is concluded: it is what is measured.
#[derive(Parser)]
struct Options {
    /// The server: a major or full PostgreSQL version, downloaded where it is not cached
    #[arg(long, value_name = "VERSION", default_value = "18")]
    postgres: String,
    /// The pgdyno to measure; the one next to this program if not given
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
    /// How many pairs of blocks are measured
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Seconds of a block; the first of them is not counted
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(3..=20))]
    block: u32,
    /// How many times as often as by default collectors read
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
    times: u32,
    /// Of the order within the pairs
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
    let interrupted = interrupt()?;
    let directory = tempfile::tempdir().context("there is no place for the bundle")?;
    let root = options.store.clone().unwrap_or_else(|| directory.path().join("store"));
    let store = Store::open(&root).with_context(|| format!("cannot keep a bundle in {}", root.display()))?;
    let pgdyno = options.pgdyno.clone().map_or_else(|| sibling_program("pgdyno"), Ok)?;
    let load = options.load();

    let mut out = stdout();
    writeln!(out, "{load}; {} pairs of blocks of {} s, seed {}", options.pairs, options.block, options.seed)?;
    if let Ok(load) = fs::read_to_string("/proc/loadavg") {
        let load = load.split(' ').next().unwrap_or_default();
        writeln!(out, "load average at the start: {load} (of others: the more, the wider the interval)")?;
    }
    let switches = Switch::plan(options.pairs, options.block, options.seed);
    let (record, switched) = trial::run(&pgdyno, directory.path(), &store, &load, &switches, &interrupted)?;
    let pairs = pairs(&record, &switched)?;
    table::pairs(&mut out, &pairs)?;
    table::summary(&mut out, &pairs, &Collectors::new(&record, &switched))?;
    Ok(())
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
fn sibling_program(name: &str) -> Result<PathBuf> {
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
            seconds: 2 * self.pairs * self.block,
            times: self.times,
        }
    }
}
