//! Simulations that check the promises of `docs/statistics.md`, and measure their speed.
//!
//! `cargo run --release -p verdicts`. `random.rs` generates runs and histories with known truth, `comparisons.rs`, `pairs.rs`,
//! `conditions.rs`, `cells.rs` and `histories.rs` apply the crate `stats` to them, `table.rs` prints.

mod cells;
mod comparisons;
mod conditions;
mod histories;
mod pairs;
mod random;
mod table;

use std::io::{self, Write, stdout};

use clap::Parser;

use random::Random;
use table::Row;

/// Simulates the promises of the statistics: false alarms, power, unstable cells, change points, and their speed
///
/// Simulated throughputs are log-normal unless stated otherwise. A share is shown with two standard errors of the
/// simulation; "met" and "missed" are the share's. Speeds are those of this machine.
#[derive(Parser)]
struct Options {
    /// Simulations of each kind; a tenth of that for families of 52 comparisons, a fifth for histories
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    times: u32,
    /// Random seed
    #[arg(long, default_value_t = 2026)]
    seed: u64,
    /// Threads for the histories; all CPUs if not given
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    let times = options.times as usize;
    let threads = options
        .threads
        .map_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get), usize::from);
    let mut random = Random::new(options.seed);
    let mut out = stdout();
    writeln!(out, "seed {}, {times} simulations\n", options.seed)?;
    writeln!(out, "{}", table::HEAD)?;
    let mut show = |rows: Vec<Row>| -> io::Result<()> {
        rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
        out.flush()
    };
    show(comparisons::rows(&mut random, times))?;
    show(pairs::rows(&mut random, times))?;
    show(conditions::rows(&mut random, times))?;
    show(cells::rows(&mut random, times))?;
    show(histories::rows(&mut random, times / 5))?;
    show(vec![comparisons::speed(&mut random, times)])?;
    show(vec![histories::speed(&mut random, threads)])
}
