//! What is reckoned here is what SciPy reckons. `data/reference.py` makes the values.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use serde::Deserialize;
use stats::{Logs, Welch, ci_half_width, permutation_p, runs_for_effect, runs_needed, smallest_effect};

#[derive(Deserialize)]
struct Reference {
    confidence: Vec<Confidence>,
    runs_needed: Vec<RunsNeeded>,
    welch: Vec<Compared>,
    permutation: Vec<Dealt>,
    smallest_effect: Vec<SmallestEffect>,
    runs_for_effect: Vec<RunsForEffect>,
}

#[derive(Deserialize)]
struct Confidence {
    sample: Vec<f64>,
    level: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct RunsNeeded {
    sample: Vec<f64>,
    half_width: f64,
    runs: usize,
}

#[derive(Deserialize)]
struct Compared {
    a: Vec<f64>,
    b: Vec<f64>,
    ratio: f64,
    df: f64,
    p: f64,
    intervals: Vec<RatioInterval>,
}

#[derive(Deserialize)]
struct RatioInterval {
    level: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Dealt {
    a: Vec<f64>,
    b: Vec<f64>,
    p: f64,
}

#[derive(Deserialize)]
struct SmallestEffect {
    log_sd: f64,
    n: usize,
    alpha: f64,
    power: f64,
    effect: f64,
}

#[derive(Deserialize)]
struct RunsForEffect {
    log_sd: f64,
    effect: f64,
    alpha: f64,
    power: f64,
    runs: usize,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("data/reference.json")).unwrap()
}

fn logs(values: &[f64]) -> Logs {
    Logs::of(values.iter().copied()).unwrap()
}

#[track_caller]
fn close(what: &str, ours: f64, theirs: f64, tolerance: f64) {
    assert!((ours - theirs).abs() <= tolerance * theirs.abs(), "{what}: {ours} here, {theirs} by SciPy");
}

#[test]
fn a_mean_is_as_sure_as_scipy_says() {
    for Confidence { sample, level, low, high } in reference().confidence {
        let logs = logs(&sample);
        let interval = logs.confidence_interval(level).unwrap();
        close(&format!("low end at {level} of {sample:?}"), interval.low.ln(), low.ln(), 1e-9);
        close(&format!("high end at {level} of {sample:?}"), interval.high.ln(), high.ln(), 1e-9);
        if level == 0.95 {
            // The interval is symmetric about the mean of the logarithms.
            let half_width = (high / low).sqrt() - 1.0;
            close(&format!("half width of {sample:?}"), ci_half_width(&logs).unwrap(), half_width, 1e-9);
        }
    }
}

#[test]
fn as_many_runs_are_needed_as_scipy_says() {
    for RunsNeeded { sample, half_width, runs } in reference().runs_needed {
        assert_eq!(runs_needed(&logs(&sample), half_width), Some(runs), "{half_width} for {sample:?}");
    }
}

#[test]
fn welch_is_as_scipy_has_it() {
    for Compared { a, b, ratio, df, p, intervals } in reference().welch {
        let welch = Welch::of(&logs(&a), &logs(&b)).unwrap();
        close("ratio", welch.ratio, ratio, 1e-12);
        close("degrees of freedom", welch.degrees_of_freedom, df, 1e-9);
        close("p", welch.p, p, 1e-8);
        for RatioInterval { level, low, high } in intervals {
            let interval = welch.confidence_interval(level).unwrap();
            close(&format!("low end at {level}"), interval.low, low, 1e-9);
            close(&format!("high end at {level}"), interval.high, high, 1e-9);
        }
    }
}

#[test]
fn permutations_are_counted_as_scipy_counts_them() {
    for Dealt { a, b, p } in reference().permutation {
        match permutation_p(&logs(&a), &logs(&b)) {
            Some(ours) => close(&format!("{a:?} and {b:?}"), ours, p, 1e-12),
            None => panic!("no p of {} and {} values", a.len(), b.len()),
        }
    }
}

#[test]
fn the_power_of_a_test_is_what_the_noncentral_t_gives() {
    for SmallestEffect { log_sd, n, alpha, power, effect } in reference().smallest_effect {
        let ours = smallest_effect(log_sd, n, alpha, power).unwrap();
        close(&format!("n {n}, alpha {alpha}, power {power}"), ours, effect, 1e-5);
    }
    for RunsForEffect { log_sd, effect, alpha, power, runs } in reference().runs_for_effect {
        let ours = runs_for_effect(log_sd, effect, alpha, power);
        assert_eq!(ours, Some(runs), "log-SD {log_sd}, effect {effect}, alpha {alpha}, power {power}");
    }
}
