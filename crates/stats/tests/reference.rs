//! Results agree with those of SciPy, NumPy, diptest, Apache Otava and R. `data/reference.py` and `data/reference.R`
//! compute the reference values.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use serde::Deserialize;
use stats::{
    Cell, Estimate, Layout, Logs, Sample, Sweep, Trend, change_points, ci_half_width, effective_sample_size,
    holm, percentiles, permutation_p, runs_for_effect, runs_needed, smallest_effect, warmup_cut,
};

/// Results computed by both Python and R.
#[derive(Deserialize)]
struct Reference {
    confidence: Vec<ConfidenceCase>,
    runs_needed: Vec<RunsNeededCase>,
    welch: Vec<EstimateCase>,
    permutation: Vec<PermutationCase>,
    smallest_effect: Vec<SmallestEffect>,
    runs_for_effect: Vec<RunsForEffect>,
    usl: Vec<UslCase>,
    effective_sample_size: Vec<EffectiveSizeCase>,
    percentiles: Vec<Percentiles>,
}

#[derive(Deserialize)]
struct PythonReference {
    change_points: Vec<ChangePointCase>,
    warmup_cut: Vec<WarmupCase>,
    modes: Vec<Modes>,
}

#[derive(Deserialize)]
struct RReference {
    holm: Vec<AdjustCase>,
    trend: Vec<TrendCase>,
    split: Vec<SplitCase>,
    median: Vec<MedianCase>,
    within: Vec<PositionIntervalCase>,
}

#[derive(Deserialize)]
struct ChangePointCase {
    series: Vec<f64>,
    places: Vec<usize>,
}

#[derive(Deserialize)]
struct UslCase {
    clients: Vec<u32>,
    tps: Vec<f64>,
    lambda: f64,
    sigma: f64,
    kappa: f64,
    rms: f64,
}

#[derive(Deserialize)]
struct EffectiveSizeCase {
    values: Vec<f64>,
    n: f64,
}

#[derive(Deserialize)]
struct WarmupCase {
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
struct ConfidenceCase {
    sample: Vec<f64>,
    level: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct RunsNeededCase {
    sample: Vec<f64>,
    half_width: f64,
    runs: usize,
}

#[derive(Deserialize)]
struct EstimateCase {
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
struct PermutationCase {
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

#[derive(Deserialize)]
struct Modes {
    apart: f64,
    sample: Vec<f64>,
    p: f64,
}

#[derive(Deserialize)]
struct AdjustCase {
    p: Vec<f64>,
    adjusted: Vec<f64>,
}

#[derive(Deserialize)]
struct TrendCase {
    values: Vec<f64>,
    p: f64,
    slope: f64,
}

#[derive(Deserialize)]
struct SplitCase {
    sample: Vec<f64>,
    lower: usize,
    t: f64,
    ratio: f64,
}

#[derive(Deserialize)]
struct MedianCase {
    sample: Vec<f64>,
    median: f64,
}

#[derive(Deserialize)]
struct PositionIntervalCase {
    series: Vec<f64>,
    before: usize,
    after: usize,
}

const PYTHON: &str = include_str!("data/reference.json");
const R: &str = include_str!("data/reference-r.json");

/// One table of both.
fn both<T>(table: impl Fn(Reference) -> Vec<T>) -> impl Iterator<Item = T> {
    [PYTHON, R].map(|json| table(serde_json::from_str(json).unwrap())).into_iter().flatten()
}

fn python() -> PythonReference {
    serde_json::from_str(PYTHON).unwrap()
}

fn r() -> RReference {
    serde_json::from_str(R).unwrap()
}

fn logs(values: &[f64]) -> Logs {
    Logs::new(values.iter().copied()).unwrap()
}

#[track_caller]
fn close(what: &str, ours: f64, theirs: f64, tolerance: f64) {
    assert!((ours - theirs).abs() <= tolerance * theirs.abs(), "{what}: {ours} here, {theirs} there");
}

#[test]
fn confidence_intervals_match_scipy_and_r() {
    for ConfidenceCase { sample, level, low, high } in both(|by| by.confidence) {
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
fn numbers_of_runs_match_scipy_and_r() {
    for RunsNeededCase { sample, half_width, runs } in both(|by| by.runs_needed) {
        assert_eq!(runs_needed(&logs(&sample), half_width), Some(runs), "{half_width} for {sample:?}");
    }
}

#[test]
fn welch_matches_scipy_and_r() {
    for EstimateCase { a, b, ratio, df, p, intervals } in both(|by| by.welch) {
        let welch = Estimate::welch(&logs(&a), &logs(&b)).unwrap();
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
fn permutation_tests_match_scipy_and_r() {
    for PermutationCase { a, b, p } in both(|by| by.permutation) {
        match permutation_p(&logs(&a), &logs(&b)) {
            Some(ours) => close(&format!("{a:?} and {b:?}"), ours, p, 1e-12),
            None => panic!("no p of {} and {} values", a.len(), b.len()),
        }
    }
}

#[test]
fn power_matches_the_noncentral_t_distribution() {
    for SmallestEffect { log_sd, n, alpha, power, effect } in both(|by| by.smallest_effect) {
        let ours = smallest_effect(log_sd, n, Layout::Independent, alpha, power).unwrap();
        close(&format!("n {n}, alpha {alpha}, power {power}"), ours, effect, 1e-6);
    }
    for RunsForEffect { log_sd, effect, alpha, power, runs } in both(|by| by.runs_for_effect) {
        let ours = runs_for_effect(log_sd, effect, Layout::Independent, alpha, power);
        assert_eq!(ours, Some(runs), "log-SD {log_sd}, effect {effect}, alpha {alpha}, power {power}");
    }
}

#[test]
fn change_points_match_otava() {
    for ChangePointCase { series, places } in python().change_points {
        let known: Vec<Option<f64>> = series.iter().copied().map(Some).collect();
        let ours: Vec<usize> = change_points(&known).unwrap().iter().map(|change| change.after).collect();
        assert_eq!(ours, places, "{series:?}");
    }
}

#[test]
fn the_scalability_law_matches_scipy_and_r() {
    for UslCase { clients, tps, lambda, sigma, kappa, rms } in both(|by| by.usl) {
        let usl = Sweep::new(clients.into_iter().zip(tps.iter().copied())).unwrap().usl().unwrap();
        close("RMS", usl.rms, rms, 1e-6);
        close("lambda", usl.lambda, lambda, 1e-6);
        assert!((usl.sigma - sigma).abs() < 1e-7, "sigma {} here, {sigma} there, of {tps:?}", usl.sigma);
        assert!((usl.kappa - kappa).abs() < 1e-8, "kappa {} here, {kappa} there, of {tps:?}", usl.kappa);
    }
}

#[test]
fn effective_sample_sizes_match_geyers_sequence() {
    for EffectiveSizeCase { values, n } in both(|by| by.effective_sample_size) {
        close("effective sample size", effective_sample_size(&values).unwrap(), n, 1e-9);
    }
}

#[test]
fn the_warmup_cut_matches_mser_5() {
    for WarmupCase { values, cut } in python().warmup_cut {
        assert_eq!(warmup_cut(&values), Some(cut));
    }
}

#[test]
fn percentiles_match_numpy_and_r() {
    for Percentiles { seconds, shares, values } in both(|by| by.percentiles) {
        let ours: Vec<u64> =
            percentiles(&seconds, &shares).into_iter().map(|found| found.unwrap().value).collect();
        assert_eq!(ours, values);
    }
}

#[test]
fn adjusted_p_match_r() {
    for AdjustCase { p, adjusted } in r().holm {
        let ours = holm(&p);
        assert_eq!(ours.len(), adjusted.len());
        ours.iter().zip(&adjusted).for_each(|(ours, theirs)| close("adjusted p", *ours, *theirs, 1e-12));
    }
}

#[test]
fn trends_match_kendalls_test_in_r() {
    for TrendCase { values, p, slope } in r().trend {
        let trend = Trend::new(&values).unwrap();
        close("p", trend.p, p, 1e-9);
        close("slope", trend.slope, slope, 1e-9);
    }
}

#[test]
fn splits_match_rs_t_test() {
    for SplitCase { sample, lower, t, ratio } in r().split {
        let cell = Cell::new(&sample).unwrap();
        let split = cell.split.unwrap();
        assert_eq!(split.lower, lower, "{sample:?}");
        close("T", split.t, t, 1e-9);
        close("ratio of the modes", cell.mode_ratio().unwrap(), ratio, 1e-12);
    }
}

#[test]
fn medians_match_r() {
    for MedianCase { sample, median } in r().median {
        close("median", Sample::new(sample).unwrap().median(), median, 1e-14);
    }
}

#[test]
fn position_intervals_match_the_likelihood_ratio_in_r() {
    for PositionIntervalCase { series, before, after } in r().within {
        let known: Vec<Option<f64>> = series.iter().copied().map(Some).collect();
        let found: Vec<_> = change_points(&known).unwrap().iter().map(|change| change.within).collect();
        assert_eq!(found, [(before, after)], "{series:?}");
    }
}

/// For 100 samples each: how often our rule detects modes, how often the dip test at the 1% level does, and how often
/// the dip test alone does. `docs/statistics.md` has these figures.
#[test]
fn modes_are_found_that_the_dip_test_misses() {
    let samples = python().modes;
    let found = |n: usize, apart: f64| {
        let verdicts: Vec<(bool, bool)> = samples
            .iter()
            .filter(|modes| modes.sample.len() == n && modes.apart == apart)
            .map(|modes| (Cell::new(&modes.sample).unwrap().has_modes(), modes.p <= 0.01))
            .collect();
        assert_eq!(verdicts.len(), 100);
        let ours = verdicts.iter().filter(|(ours, _)| *ours).count();
        let dip = verdicts.iter().filter(|(_, dip)| *dip).count();
        let dip_alone = verdicts.iter().filter(|(ours, dip)| *dip && !ours).count();
        (ours, dip, dip_alone)
    };
    assert_eq!([10, 20, 50].map(|n| found(n, 0.1)), [(24, 5, 1), (78, 17, 1), (100, 52, 0)]);
    assert_eq!([10, 20, 50].map(|n| found(n, 0.0)), [(0, 0, 0); 3]);
}
