//! Simulations of `pgdyno bisect` over many commits with known steps, next to binary search with a threshold.
//!
//! `cargo run --release -p bisect`. `conditions.rs` has what is simulated, `history.rs` draws commits and measures them,
//! `search.rs` is the search of the crate `stats`, `threshold.rs` the binary search.

mod conditions;
mod history;
mod search;
mod threshold;

use std::io::{self, Write, stdout};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Parser;

use conditions::{CONDITIONS, Condition};
use history::History;

/// Simulates the search for the commit that changed the performance
///
/// Each simulation draws a history of commits with planted steps, and measures it in sessions of 2.5 s; a commit that is
/// measured for the first time costs a build of 60 s. The machine's speed drifts. Shares are with two standard errors.
#[derive(Parser)]
struct Options {
    /// Simulations of each condition
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(10..))]
    times: u32,
    /// Random seed
    #[arg(long, default_value_t = 2026)]
    seed: u64,
    /// Only conditions whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

/// Outcome of one simulation.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// Whether the answer has every planted step: with probability sets, as a member.
    is_right: bool,
    /// Whether a commit is blamed that changed nothing.
    is_wrong: bool,
    /// Positions measured.
    probes: usize,
    sessions: usize,
    seconds: f64,
}

/// A way to search.
type Method = fn(&mut History) -> Outcome;

fn main() -> io::Result<()> {
    let options = Options::parse();
    let mut out = stdout();
    writeln!(
        out,
        "seed {}, {} simulations of each, {} commits\n",
        options.seed,
        options.times,
        history::COMMITS
    )?;
    writeln!(out, "| simulated | method | right | wrong | commits measured | sessions | time |")?;
    writeln!(out, "|---|---|---:|---:|---:|---:|---:|")?;
    for condition in CONDITIONS.iter().filter(|condition| condition.name.contains(&*options.only)) {
        let methods: [(&str, Method); 3] = [
            ("posterior", search::run),
            ("posterior, building while measuring", search::run_with_builds_apart),
            ("threshold, 3 runs", threshold::run),
        ];
        for (name, method) in methods {
            let outcomes = simulate(condition, method, options.times as usize, options.seed);
            writeln!(out, "{}", row(condition.name, name, &outcomes))?;
            out.flush()?;
        }
    }
    Ok(())
}

fn simulate(condition: &Condition, method: Method, times: usize, seed: u64) -> Vec<Outcome> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(vec![Outcome::default(); times]));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= times {
                return;
            }
            let outcome = method(&mut History::draw(condition, seed.wrapping_add(at as u64)));
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes[at] = outcome;
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    outcomes.into_inner().unwrap_or_default()
}

fn row(condition: &str, method: &str, outcomes: &[Outcome]) -> String {
    let n = outcomes.len() as f64;
    let share = |is: fn(&Outcome) -> bool| {
        let share = outcomes.iter().filter(|outcome| is(outcome)).count() as f64 / n;
        format!("{:.1}% ± {:.1}", 100.0 * share, 200.0 * (share * (1.0 - share) / n).sqrt())
    };
    let median = |of: fn(&Outcome) -> f64| {
        let mut values: Vec<f64> = outcomes.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    format!(
        "| {condition} | {method} | {} | {} | {} | {} | {:.0} min |",
        share(|outcome| outcome.is_right),
        share(|outcome| outcome.is_wrong),
        median(|outcome| outcome.probes as f64),
        median(|outcome| outcome.sessions as f64),
        median(|outcome| outcome.seconds) / 60.0
    )
}
