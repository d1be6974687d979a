//! The rules' error and detection rates, by simulation: runs with normal logarithms, with a fixed seed.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking and print their seed")]

use std::f64::consts::PI;

use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::{
    Cell, Comparison, Estimate, Layout, Logs, SequentialPower, Spread, Verdict, WindowMean, change_points,
    critical_split, runs_for_cell, smallest_effect, verdicts,
};

const SEED: u64 = 2026;

/// Successive runs of a cell.
struct Runs {
    random: Xoshiro256PlusPlus,
}

impl Runs {
    fn new() -> Self {
        println!("seed {SEED}");
        Self { random: Xoshiro256PlusPlus::seed_from_u64(SEED) }
    }

    /// `n` throughputs about `centre`, whose logarithms have the standard deviation `log_sd`.
    fn take(&mut self, n: usize, centre: f64, log_sd: f64) -> Vec<f64> {
        (0..n)
            .map(|_| {
                let normal: f64 = self.random.sample(StandardNormal);
                centre * (log_sd * normal).exp()
            })
            .collect()
    }
}

/// The share of `times` trials in which an event happens.
fn share(times: usize, mut happens: impl FnMut() -> bool) -> f64 {
    (0..times).filter(|_| happens()).count() as f64 / times as f64
}

/// Estimate's p.
fn p(a: &[f64], b: &[f64]) -> f64 {
    let logs = |values: &[f64]| Logs::new(values.iter().copied()).unwrap();
    Estimate::welch(&logs(a), &logs(b)).unwrap().p
}

/// `data/critical-split.csv` is the output of `examples/critical_split.rs`.
#[test]
fn the_critical_splits_are_those_that_were_simulated() {
    let simulated: Vec<Vec<f64>> = include_str!("data/critical-split.csv")
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|field| field.parse().unwrap()).collect())
        .collect();
    assert_eq!(simulated.len(), 48);
    for row in &simulated {
        let (n, value, standard_error) = (row[0] as usize, row[1], row[2]);
        let critical = critical_split(n).unwrap();
        // Some are from a simulation with a tenth of the samples, all are rounded.
        let tolerance = 4.0 * 11.0_f64.sqrt() * standard_error + 0.005;
        assert!(
            (critical - value).abs() <= tolerance,
            "n = {n}: {critical}, simulated {value} ± {standard_error}"
        );
    }
    // For three values, t is the cotangent of an angle that is uniform between 0 and 30 degrees.
    let exact = 1.0 / (PI / 600.0).tan();
    assert!((simulated[0][1] - exact).abs() <= 4.0 * simulated[0][2], "{exact}");
}

#[test]
fn one_sample_in_a_hundred_reaches_the_critical_split() {
    let mut runs = Runs::new();
    for n in [3, 5, 8, 11, 13, 20, 35, 50] {
        let reached = share(20_000, || {
            let cell = Cell::new(&runs.take(n, 1000.0, 0.01)).unwrap();
            cell.split.unwrap().t >= cell.critical.unwrap()
        });
        // 1%, plus or minus four standard errors.
        assert!((reached - 0.01).abs() <= 0.0028, "n = {n}: {reached}");
    }
}

#[test]
fn welch_finds_the_smallest_effect_with_the_computed_power() {
    let mut runs = Runs::new();
    for n in [3, 5] {
        for (alpha, power) in [(0.05, 0.8), (0.01, 0.95)] {
            let effect = smallest_effect(0.02, n, Layout::Independent, alpha, power).unwrap();
            let found = share(5_000, || {
                let (a, b) = (runs.take(n, 1000.0, 0.02), runs.take(n, 1000.0 * (1.0 + effect), 0.02));
                p(&a, &b) <= alpha
            });
            let tolerance = 4.0 * (power * (1.0 - power) / 5_000.0_f64).sqrt();
            assert!((found - power).abs() <= tolerance, "n = {n}, alpha {alpha}: {found} instead of {power}");
        }
    }
}

/// A comparison in blocks that is looked at after each block from the third, up to the 20th, until it is decided: the last
/// comparison with its verdict.
fn sequential(runs: &mut Runs, ratio: f64, noise: f64, block: f64) -> (Comparison, Verdict) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        let common = runs.take(1, 1000.0, block)[0];
        a.push(runs.take(1, common, noise)[0]);
        b.push(runs.take(1, common * ratio, noise)[0]);
        if a.len() < 3 {
            continue;
        }
        let pairs: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
        let comparison = Comparison::new(&a, &b).unwrap().in_blocks(&pairs).sequential();
        let verdict = verdicts(std::slice::from_ref(&comparison))[0];
        if a.len() == 20 || verdict != Verdict::Inconclusive {
            return (comparison, verdict);
        }
    }
}

#[test]
fn a_comparison_looked_at_after_each_run_keeps_its_promises() {
    let mut runs = Runs::new();
    for (noise, block) in [(0.02, 0.0), (0.02, 0.06), (0.04, 0.0)] {
        let (mut false_alarms, mut held, mut equivalent) = (0, 0, 0);
        for _ in 0..1000 {
            let (comparison, verdict) = sequential(&mut runs, 1.0, noise, block);
            false_alarms += u32::from(matches!(verdict, Verdict::Regression | Verdict::Improvement));
            let interval = comparison.estimate.unwrap().confidence_interval(0.95).unwrap();
            held += u32::from(interval.low <= 1.0 && 1.0 <= interval.high);
            equivalent += u32::from(verdict == Verdict::Equivalent);
        }
        assert!(false_alarms <= 10, "{noise} {block}: {false_alarms} of 1000");
        assert!(held >= 950, "{noise} {block}: {held} of 1000");
        assert!(noise > 0.02 || equivalent > 960, "{noise} {block}: {equivalent} of 1000");
    }
    let mut mean_runs = 0.0;
    let found = share(1000, || {
        let (comparison, verdict) = sequential(&mut runs, 0.95, 0.02, 0.0);
        mean_runs += comparison.a.n as f64 / 1000.0;
        verdict == Verdict::Regression
    });
    let promised = SequentialPower::new(0.02, -0.05, Layout::Blocks, 0.01, 3..=20).unwrap();
    // A few are found to be equivalent before.
    assert!(found >= 0.98 && promised.min_power >= 0.98, "{found}, {promised:?}");
    assert!(mean_runs <= promised.mean_runs, "{mean_runs}, {promised:?}");
}

/// Looking at the usual tests after each run, and stopping at the first that shows something.
#[test]
fn tests_for_a_fixed_number_of_runs_raise_false_alarms_if_they_are_repeated() {
    let mut runs = Runs::new();
    let false_alarms = share(2000, || {
        let (a, b) = (runs.take(20, 1000.0, 0.02), runs.take(20, 1000.0, 0.02));
        (3..=20).any(|n| p(&a[..n], &b[..n]) <= 0.01)
    });
    assert!(false_alarms > 0.03, "{false_alarms}");
}

/// A cell whose runs were added until its mean was known to 2% has it.
#[test]
fn a_mean_that_runs_were_added_for_is_as_exact_as_promised() {
    let mut runs = Runs::new();
    for noise in [0.01, 0.03, 0.045] {
        let held = share(1000, || {
            let mut values = runs.take(3, 1000.0, noise);
            while runs_for_cell(&values, 0.02, Spread::MEAN).unwrap().0 > values.len() {
                values.extend(runs.take(1, 1000.0, noise));
            }
            (Cell::new(&values).unwrap().geometric_mean / 1000.0).ln().abs() <= 0.02_f64.ln_1p()
        });
        assert!(held >= 0.945, "{noise}: {held}");
    }
}

/// The level that a permutation test guarantees: for normal values as for many equal ones.
#[test]
fn a_series_without_change_rarely_has_a_change_point() {
    let mut runs = Runs::new();
    for ties in [false, true] {
        let falsely = share(1000, || {
            let value = |value: f64| Some(if ties { (value / 20.0).round() } else { value });
            let series: Vec<_> = runs.take(30, 1000.0, 0.02).into_iter().map(value).collect();
            !change_points(&series).unwrap().is_empty()
        });
        // 1.5%, plus three standard errors.
        assert!(falsely <= 0.0265, "ties {ties}: {falsely}");
    }
}

/// A loss of 2.5 times the noise is detected if it covers the last ten points of a hundred.
#[test]
fn a_late_change_is_found() {
    let mut runs = Runs::new();
    let found = share(40, || {
        let series = [runs.take(90, 1000.0, 0.02), runs.take(10, 950.0, 0.02)].concat();
        let found = change_points(&series.into_iter().map(Some).collect::<Vec<_>>()).unwrap();
        found.iter().any(|change| change.within.0 <= 90 && 89 <= change.within.1)
    });
    assert!(found >= 0.95, "{found}");
}

/// A regression that was fixed: as large relative to the noise, for ten points.
#[test]
fn a_transient_is_found() {
    let mut runs = Runs::new();
    let found = share(40, || {
        let mut level = |n, level| runs.take(n, level, 0.02);
        let series = [(45, 1000.0), (10, 950.0), (45, 1000.0)].map(|(n, at)| level(n, at)).concat();
        let found = change_points(&series.into_iter().map(Some).collect::<Vec<_>>()).unwrap();
        [45, 55]
            .iter()
            .all(|at| found.iter().any(|change| change.within.0 <= *at && *at - 1 <= change.within.1))
    });
    assert!(found >= 0.85, "{found}");
}

/// Correlated seconds of a run: an interval that treats them as independent would contain the mean in six of ten cases.
#[test]
fn the_interval_of_a_run_holds_its_mean() {
    let mut runs = Runs::new();
    let holds = |runs: &mut Runs| {
        let mut deviation = 0.0;
        let seconds: Vec<f64> = (0..600)
            .map(|_| {
                deviation = 0.7 * deviation + runs.take(1, 1.0, 0.05)[0].ln();
                1000.0 * (1.0 + deviation)
            })
            .collect();
        let window = WindowMean::new(&seconds).unwrap();
        window.interval.map(|interval| interval.low <= 1000.0 && 1000.0 <= interval.high)
    };
    let held: Vec<Option<bool>> = (0..1000).map(|_| holds(&mut runs)).collect();
    let (with, holding) =
        (held.iter().flatten().count(), held.iter().flatten().filter(|held| **held).count());
    assert!(with > 950, "{with} have one");
    let share = holding as f64 / with as f64;
    assert!((0.92..=0.97).contains(&share), "{share}");
}
