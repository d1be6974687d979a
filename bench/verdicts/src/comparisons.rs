//! Comparisons of two cells: of as many runs as it takes, of fixed numbers, in blocks, alone and in families.

use std::hint::black_box;
use std::ops::RangeInclusive;
use std::time::Instant;

use stats::{Cell, Comparison, Spread, Verdict, runs_for_cell, verdicts};

use crate::random::Random;
use crate::table::{Bound, Row, percent};

/// The noise of a cell: the standard deviation of logarithms.
const NOISE: f64 = 0.02;
/// The noise of a wide cell.
const WIDE_NOISE: f64 = 0.1;
/// Comparisons in a family, as many as the client sweep of 2008 has.
const FAMILY: usize = 52;
/// Runs of each side in the comparisons whose speed is measured.
const RUNS: usize = 10;

/// Runs a side that a campaign may have: looked at after each from the first number on.
const LOOKS: RangeInclusive<usize> = 3..=20;

pub(crate) fn rows(random: &mut Random, times: usize) -> Vec<Row> {
    let mut rows = sequential(random, times);
    rows.extend(until_precise(random, times));
    rows.extend(blocks(random, times));
    rows.extend(unstable(random, times));
    rows
}

/// Comparisons that are looked at after each block, and end with a verdict.
fn sequential(random: &mut Random, times: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (noise, block) in [(0.02, 0.0), (0.02, 0.06), (0.04, 0.0)] {
        let (mut runs, mut held, mut equivalent) = (0, 0, 0);
        let what = |figure: &str| {
            let blocks = if block > 0.0 { ", blocks 6%" } else { "" };
            format!("{figure}, 3 to 20 runs a side, noise {}%{blocks}", 100.0 * noise)
        };
        rows.push(Row::share(what("false alarm"), times, Bound::AtMost(0.01), || {
            let (comparison, verdict) = looked_at(random, 1.0, noise, block);
            runs += comparison.a.n;
            held += usize::from(holds(&comparison, 1.0));
            equivalent += usize::from(verdict == Verdict::Equivalent);
            is_change(verdict)
        }));
        let share = |count: usize| count as f64 / times as f64;
        rows.push(Row::new(
            what("95% interval at the end holds the ratio"),
            share(held),
            Bound::AtLeast(0.95),
            percent,
        ));
        rows.push(Row::new(what("equivalence found"), share(equivalent), Bound::Unbounded, percent));
        rows.push(Row::new(
            what("runs a side where nothing changed"),
            share(runs),
            Bound::Unbounded,
            two_digits,
        ));
    }
    let mut runs = 0;
    let what = "loss of 5% found, 3 to 20 runs a side, noise 2%";
    rows.push(Row::share(what, times, Bound::AtLeast(0.95), || {
        let (comparison, verdict) = looked_at(random, 0.95, NOISE, 0.0);
        runs += comparison.a.n;
        verdict == Verdict::Regression
    }));
    let mean = runs as f64 / times as f64;
    rows.push(Row::new("runs a side for that loss", mean, Bound::Unbounded, two_digits));
    let what = "any false alarm among 52 comparisons, 3 to 20 runs a side, noise 2%";
    rows.push(Row::share(what, times / 10, Bound::AtMost(0.05), || {
        let family: Vec<Comparison> = (0..FAMILY).map(|_| looked_at(random, 1.0, NOISE, 0.0).0).collect();
        verdicts(&family).into_iter().any(is_change)
    }));
    let what = "false alarm, looked at after each of 3 to 20 runs a side by Welch's test";
    rows.push(Row::share(what, times, Bound::Unbounded, || {
        let (a, b) = (random.runs(20, 1.0, NOISE), random.runs(20, 1.0, NOISE));
        LOOKS.clone().any(|n| judge(&a[..n], &b[..n]).is_some_and(is_change))
    }));
    rows
}

/// Cells that get runs until their mean is known to 2%.
fn until_precise(random: &mut Random, times: usize) -> Vec<Row> {
    const WIDTH: f64 = 0.02;
    let mut rows = Vec::new();
    for noise in [0.01, 0.02, 0.03, 0.04] {
        let what = format!("mean within the 2% that runs were added for, noise {}%", 100.0 * noise);
        rows.push(Row::share(what, times / 2, Bound::AtLeast(0.95), || {
            let mut runs = random.runs(3, 1.0, noise);
            while runs_for_cell(&runs, WIDTH, Spread::MEAN).is_some_and(|(wanted, _)| wanted > runs.len()) {
                runs.push(random.run(1.0, noise));
            }
            let mean = Cell::new(&runs).map_or(f64::NAN, |cell| cell.geometric_mean);
            (mean / random.run(1.0, 0.0)).ln().abs() <= WIDTH.ln_1p()
        }));
    }
    rows
}

/// Comparisons of a fixed number of runs in blocks.
fn blocks(random: &mut Random, times: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (n, block) in [(6, 0.0), (10, 0.0), (6, 0.06), (10, 0.06)] {
        let conditions = format!("{n} blocks that spread by {}%, noise 2%", 100.0 * block);
        let mut pairs = |ratio: f64| random.blocks(n, ratio, NOISE, block);
        rows.push(Row::share(format!("false alarm, {conditions}"), times, Bound::AtMost(0.01), || {
            is_change(verdicts(&[in_blocks(&pairs(1.0))])[0])
        }));
        rows.push(Row::share(format!("loss of 5% found, {conditions}"), times, Bound::Unbounded, || {
            verdicts(&[in_blocks(&pairs(0.95))])[0] == Verdict::Regression
        }));
        let what = format!("loss of 5% found as two samples, {conditions}");
        rows.push(Row::share(what, times, Bound::Unbounded, || {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs(0.95).into_iter().unzip();
            judge(&a, &b) == Some(Verdict::Regression)
        }));
    }
    rows
}

/// Comparisons of unstable cells, wide and with modes.
fn unstable(random: &mut Random, times: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for runs in [3, 5, 10] {
        let what = format!("halved throughput found, {runs} runs a side, noise 10%");
        rows.push(Row::share(what, times, Bound::AtLeast(0.99), || {
            let (a, b) = (random.runs(runs, 1.0, WIDE_NOISE), random.runs(runs, 0.5, WIDE_NOISE));
            judge(&a, &b) == Some(Verdict::Regression)
        }));
    }
    // Blocks of unstable cells.
    for (n, bound) in [(6, Bound::AtMost(0.01)), (10, Bound::AtMost(0.01))] {
        let what = format!("false alarm, {n} blocks, noise 10%");
        rows.push(Row::share(what, times, bound, || {
            is_change(verdicts(&[in_blocks(&random.blocks(n, 1.0, WIDE_NOISE, 0.0))])[0])
        }));
        let what = format!("false alarm, {n} blocks, modes 30% apart, noise 1%");
        rows.push(Row::share(what, times, bound, || {
            let (a, b) = (random.bimodal_runs(n, 1.3, 0.01), random.bimodal_runs(n, 1.3, 0.01));
            let pairs: Vec<(f64, f64)> = a.into_iter().zip(b).collect();
            is_change(verdicts(&[in_blocks(&pairs)])[0])
        }));
    }
    // Three runs can't show that a cell has modes.
    for (runs, bound) in
        [(3, Bound::Unbounded), (4, Bound::AtMost(0.01)), (5, Bound::AtMost(0.01)), (10, Bound::AtMost(0.01))]
    {
        let what = format!("false alarm, {runs} runs a side, noise 10%");
        rows.push(Row::share(what, times, bound, || {
            let (a, b) = (random.runs(runs, 1.0, WIDE_NOISE), random.runs(runs, 1.0, WIDE_NOISE));
            judge(&a, &b).is_some_and(is_change)
        }));
        let what = format!("false alarm, {runs} runs a side, modes 30% apart, noise 1%");
        rows.push(Row::share(what, times, bound, || {
            let (a, b) = (random.bimodal_runs(runs, 1.3, 0.01), random.bimodal_runs(runs, 1.3, 0.01));
            judge(&a, &b).is_some_and(is_change)
        }));
    }
    rows
}

/// Comparisons with their verdicts per second, on one CPU.
pub(crate) fn speed(random: &mut Random, times: usize) -> Row {
    let cells: Vec<Vec<f64>> = (0..=times).map(|_| random.runs(RUNS, 1.0, NOISE)).collect();
    let begin = Instant::now();
    let matrix: Vec<Comparison> =
        cells.windows(2).filter_map(|pair| Comparison::new(&pair[0], &pair[1])).collect();
    black_box(verdicts(&matrix));
    let rate = matrix.len() as f64 / begin.elapsed().as_secs_f64();
    Row::new("comparisons of 10 runs a side in a second", rate, Bound::AtLeast(10_000.0), |rate| {
        format!("{rate:.0}")
    })
}

/// A comparison of cells whose throughputs have this ratio, looked at after each block until it has a verdict.
fn looked_at(random: &mut Random, ratio: f64, noise: f64, block: f64) -> (Comparison, Verdict) {
    let pairs = random.blocks(*LOOKS.end(), ratio, noise, block);
    for n in LOOKS {
        let comparison = in_blocks(&pairs[..n]).sequential();
        let verdict = verdicts(std::slice::from_ref(&comparison))[0];
        if n == *LOOKS.end() || verdict != Verdict::Inconclusive {
            return (comparison, verdict);
        }
    }
    unreachable!("the last look returns")
}

pub(crate) fn in_blocks(pairs: &[(f64, f64)]) -> Comparison {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    match Comparison::new(&a, &b) {
        Some(comparison) => comparison.in_blocks(pairs),
        None => unreachable!("simulated throughputs are positive"),
    }
}

pub(crate) fn judge(a: &[f64], b: &[f64]) -> Option<Verdict> {
    Comparison::new(a, b).map(|comparison| verdicts(&[comparison])[0])
}

/// Whether the 95% interval has the true ratio; an unbounded one has.
pub(crate) fn holds(comparison: &Comparison, ratio: f64) -> bool {
    let interval = comparison.estimate.and_then(|estimate| estimate.confidence_interval(0.95));
    interval.is_none_or(|interval| interval.low <= ratio && ratio <= interval.high)
}

pub(crate) fn is_change(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Improvement | Verdict::Regression)
}

fn two_digits(number: f64) -> String {
    format!("{number:.2}")
}
