//! What is reckoned here is what SciPy, NumPy and Apache Otava reckon. `data/reference.py` makes the values.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use serde::Deserialize;
use stats::{
    Logs, Sweep, Welch, change_points, ci_half_width, effective_sample_size, percentiles, permutation_p,
    runs_for_effect, runs_needed, smallest_effect, warmup_cut,
};

#[derive(Deserialize)]
struct Reference {
    confidence: Vec<Confidence>,
    runs_needed: Vec<RunsNeeded>,
    welch: Vec<Compared>,
    permutation: Vec<Dealt>,
    smallest_effect: Vec<SmallestEffect>,
    runs_for_effect: Vec<RunsForEffect>,
    change_points: Vec<Changed>,
    usl: Vec<Fitted>,
    effective_sample_size: Vec<Effective>,
    warmup_cut: Vec<Cut>,
    percentiles: Vec<Percentiles>,
}

#[derive(Deserialize)]
struct Changed {
    series: Vec<f64>,
    places: Vec<usize>,
}

#[derive(Deserialize)]
struct Fitted {
    clients: Vec<u32>,
    tps: Vec<f64>,
    lambda: f64,
    sigma: f64,
    kappa: f64,
    rms: f64,
}

#[derive(Deserialize)]
struct Effective {
    values: Vec<f64>,
    n: f64,
}

#[derive(Deserialize)]
struct Cut {
    values: Vec<f64>,
    cut: usize,
}

#[derive(Deserialize)]
struct Percentiles {
    seconds: Vec<Vec<(u64, u64)>>,
    shares: Vec<f64>,
    values: Vec<u64>,
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

#[test]
fn change_points_are_where_otava_has_them() {
    for Changed { series, places } in reference().change_points {
        let known: Vec<Option<f64>> = series.iter().copied().map(Some).collect();
        let ours: Vec<usize> = change_points(&known).unwrap().iter().map(|change| change.after).collect();
        assert_eq!(ours, places, "{series:?}");
    }
}

#[test]
fn the_scalability_law_is_fitted_as_scipy_fits_it() {
    for Fitted { clients, tps, lambda, sigma, kappa, rms } in reference().usl {
        let usl = Sweep::of(clients.into_iter().zip(tps.iter().copied())).unwrap().usl().unwrap();
        close("RMS", usl.rms, rms, 1e-6);
        close("lambda", usl.lambda, lambda, 1e-4);
        assert!((usl.sigma - sigma).abs() < 1e-5, "sigma {} here, {sigma} by SciPy, of {tps:?}", usl.sigma);
        assert!((usl.kappa - kappa).abs() < 1e-6, "kappa {} here, {kappa} by SciPy, of {tps:?}", usl.kappa);
    }
}

#[test]
fn seconds_count_as_geyers_sequence_has_it() {
    for Effective { values, n } in reference().effective_sample_size {
        close("effective sample size", effective_sample_size(&values).unwrap(), n, 1e-9);
    }
}

#[test]
fn the_warmup_is_cut_where_mser_5_cuts_it() {
    for Cut { values, cut } in reference().warmup_cut {
        assert_eq!(warmup_cut(&values), Some(cut));
    }
}

#[test]
fn percentiles_are_numpys() {
    for Percentiles { seconds, shares, values } in reference().percentiles {
        let ours: Vec<u64> =
            percentiles(&seconds, &shares).into_iter().map(|found| found.unwrap().value).collect();
        assert_eq!(ours, values);
    }
}
