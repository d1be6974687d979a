//! Whether the rules of `docs/statistics.md` keep what they promise, by simulation, and how fast they are.
//!
//! `cargo run --release -p verdicts`. `random.rs` makes runs and histories whose truth is known, `comparisons.rs`,
//! `cells.rs` and `histories.rs` ask the crate `stats` about them, `table.rs` is what is printed.

mod cells;
mod comparisons;
mod histories;
mod random;
mod table;

use std::io::{self, Write, stdout};

use clap::Parser;

use random::Random;
use table::Row;

/// Simulates what the statistics promise: false alarms, power, unstable cells, change points, and their speed
///
/// Throughputs are simulated with logarithms that are normal, unless said otherwise. A share is shown with two standard
/// errors of the simulation; "met" and "missed" are the share's. Speeds are this machine's, now.
#[derive(Parser)]
struct Options {
    /// Simulations of each kind; of families of 52 comparisons a tenth, of histories a fifth of that
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    times: u32,
    /// Where the random numbers begin
    #[arg(long, default_value_t = 2026)]
    seed: u64,
    /// Threads for the history; all processors if not given
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
    show(cells::rows(&mut random, times))?;
    show(histories::rows(&mut random, times / 5))?;
    show(vec![comparisons::speed(&mut random, times)])?;
    show(vec![histories::speed(&mut random, threads)])
}
