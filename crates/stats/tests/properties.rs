//! Properties that hold for any sample.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use proptest::collection::vec;
use proptest::prelude::*;
use stats::{
    Cell, Comparison, Estimate, Layout, Logs, MARGIN, MODE_RATIO, Sweep, Verdict, WindowMean, change_points,
    holm, percentiles, permutation_p, runs_for_effect, smallest_effect, stalls, verdicts, warmup_cut,
};

/// Throughputs of 2 to 8 runs, some of them equal.
fn throughputs() -> impl Strategy<Value = Vec<f64>> {
    vec((90_u32..=110).prop_map(f64::from), 2..=8)
}

fn logs(values: &[f64]) -> Logs {
    Logs::new(values.iter().copied()).unwrap()
}

/// By enumerating all assignments.
fn permutation_p_by_trial(a: &[f64], b: &[f64]) -> f64 {
    let values: Vec<f64> = a.iter().chain(b).map(|value| value.ln()).collect();
    let distance = |deal: u32| {
        let (mut sums, mut numbers) = ([0.0, 0.0], [0.0, 0.0]);
        for (i, value) in values.iter().enumerate() {
            let side = usize::from(deal >> i & 1 == 0);
            sums[side] += value;
            numbers[side] += 1.0;
        }
        (sums[0] / numbers[0] - sums[1] / numbers[1]).abs()
    };
    let observed = distance((1 << a.len()) - 1);
    let deals: Vec<u32> =
        (0..1 << values.len()).filter(|deal: &u32| deal.count_ones() as usize == a.len()).collect();
    deals.iter().filter(|&&deal| distance(deal) >= observed - 1e-10).count() as f64 / deals.len() as f64
}

proptest! {
    #[test]
    fn a_cell_has_the_same_class_in_any_order_and_unit(runs in throughputs(), unit in 1e-3_f64..1e6, by in 0_usize..8) {
        let cell = Cell::new(&runs).unwrap();
        // On the threshold, rounding decides.
        prop_assume!(cell.mode_ratio().is_none_or(|ratio| (ratio - MODE_RATIO).abs() > 1e-9));
        let mut turned = runs.clone();
        turned.rotate_left(by % runs.len());
        prop_assert_eq!(&Cell::new(&turned).unwrap(), &cell);
        let scaled = Cell::new(&runs.iter().map(|run| run * unit).collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(scaled.class(), cell.class());
        prop_assert!((scaled.log_sd.unwrap() - cell.log_sd.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn comparing_the_other_way_round_turns_the_ratio_over(a in throughputs(), b in throughputs()) {
        let (there, back) = (Estimate::welch(&logs(&a), &logs(&b)).unwrap(), Estimate::welch(&logs(&b), &logs(&a)).unwrap());
        prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12);
        prop_assert_eq!(there.p, back.p);
        prop_assert!((0.0..=1.0).contains(&there.p));
        let mirror = |verdict| match verdict {
            Verdict::Regression => Verdict::Improvement,
            Verdict::Improvement => Verdict::Regression,
            same => same,
        };
        // On the margin, rounding decides.
        let ratio = Comparison::new(&a, &b).unwrap().median_ratio();
        prop_assume!((ratio - MARGIN).abs() > 1e-9 && (ratio - 1.0 / MARGIN).abs() > 1e-9);
        let verdict = |a: &[f64], b: &[f64]| verdicts(&[Comparison::new(a, b).unwrap()])[0];
        prop_assert_eq!(verdict(&a, &b), mirror(verdict(&b, &a)));
    }

    /// The interval contains 1 exactly if p does not exclude 1.
    #[test]
    fn interval_and_p_agree(a in throughputs(), b in throughputs()) {
        let welch = Estimate::welch(&logs(&a), &logs(&b)).unwrap();
        prop_assume!(welch.standard_error > 0.0 && (welch.p - 0.05).abs() > 1e-6);
        let interval = welch.confidence_interval(0.95).unwrap();
        prop_assert_eq!(interval.low <= 1.0 && 1.0 <= interval.high, welch.p > 0.05);
    }

    #[test]
    fn permutations_are_counted_as_by_trial(a in vec(1_u32..20, 1..=6), b in vec(1_u32..20, 1..=7)) {
        let [a, b] = [a, b].map(|side| side.into_iter().map(f64::from).collect::<Vec<_>>());
        let p = permutation_p(&logs(&a), &logs(&b)).unwrap();
        prop_assert!((p - permutation_p_by_trial(&a, &b)).abs() < 1e-12);
    }

    #[test]
    fn adjusting_keeps_the_order_and_lowers_nothing(p in vec(0.0_f64..=1.0, 0..20)) {
        let adjusted = holm(&p);
        for (i, j) in (0..p.len()).flat_map(|i| (0..p.len()).map(move |j| (i, j))) {
            prop_assert!(p[i] > p[j] || adjusted[i] <= adjusted[j]);
        }
        prop_assert!(p.iter().zip(&adjusted).all(|(p, adjusted)| p <= adjusted && *adjusted <= 1.0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// The runs for an effect detect that effect, and one run less does not.
    #[test]
    fn runs_and_effect_fit(
        log_sd in 0.005_f64..0.1,
        effect in 0.01_f64..0.2,
        alpha in 0.01_f64..0.1,
        power in 0.5_f64..0.99,
    ) {
        let n = runs_for_effect(log_sd, effect, Layout::Independent, alpha, power).unwrap();
        prop_assert!(smallest_effect(log_sd, n, Layout::Independent, alpha, power).unwrap() <= effect * (1.0 + 1e-9));
        prop_assert!(n == 3 || smallest_effect(log_sd, n - 1, Layout::Independent, alpha, power).unwrap() >= effect * (1.0 - 1e-9));
    }
}

/// A series with or without a change, with many equal values.
fn series() -> impl Strategy<Value = Vec<f64>> {
    let part = |from: u32| vec((from..from + 6).prop_map(f64::from), 0..25);
    (part(95), part(95_u32), part(105)).prop_map(|(a, b, c)| [a, b, c].concat())
}

fn known(values: &[f64]) -> Vec<Option<f64>> {
    values.iter().copied().map(Some).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn change_points_are_the_same_in_any_unit(values in series(), unit in 1e-3_f64..1e6) {
        let found = change_points(&known(&values)).unwrap();
        let scaled: Vec<f64> = values.iter().map(|value| value * unit).collect();
        let again = change_points(&known(&scaled)).unwrap();
        prop_assert_eq!(found.len(), again.len());
        for (one, other) in found.iter().zip(&again) {
            prop_assert_eq!((one.before, one.after, one.within, one.p), (other.before, other.after, other.within, other.p));
            prop_assert!((one.effect.ratio / other.effect.ratio - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn points_that_are_missing_only_shift_the_places(values in series(), gap in 0_usize..75) {
        let mut with_gap = known(&values);
        with_gap.insert(gap.min(values.len()), None);
        let ratios = |series: &[Option<f64>]| -> Vec<f64> {
            change_points(series).unwrap().iter().map(|change| change.effect.ratio).collect()
        };
        prop_assert_eq!(ratios(&known(&values)), ratios(&with_gap));
    }

    #[test]
    fn equal_values_never_change(value in 1e-6_f64..1e9, n in 0_usize..200) {
        prop_assert_eq!(change_points(&vec![Some(value); n]), Some(vec![]));
        let verdict = verdicts(&[Comparison::new(&vec![value; n + 1], &vec![value; n + 1]).unwrap()])[0];
        prop_assert!(matches!(verdict, Verdict::Equivalent | Verdict::Insufficient));
    }

    /// A position is always consistent: between two existing points, and within its interval.
    #[test]
    fn a_change_point_is_within_its_interval(values in series()) {
        for change in change_points(&known(&values)).unwrap() {
            prop_assert!(change.within.0 <= change.before && change.before < change.after && change.after <= change.within.1);
            prop_assert!(change.p > 0.0 && change.p <= 0.01);
        }
    }
}

/// Seconds of a run, some of them without transactions.
fn seconds() -> impl Strategy<Value = Vec<f64>> {
    vec(prop_oneof![9 => (90_u32..110).prop_map(f64::from), 1 => Just(0.0)], 50..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A power of two, because other factors cause rounding.
    #[test]
    fn a_run_says_the_same_in_any_unit(seconds in seconds(), power in -10_i32..20) {
        let unit = 2.0_f64.powi(power);
        let scaled: Vec<f64> = seconds.iter().map(|second| second * unit).collect();
        let (window, other) = (WindowMean::new(&seconds).unwrap(), WindowMean::new(&scaled).unwrap());
        prop_assert_eq!((window.effective_n, window.is_stationary()), (other.effective_n, other.is_stationary()));
        prop_assert_eq!(window.interval.map(|interval| interval.low * unit), other.interval.map(|interval| interval.low));
        prop_assert_eq!(warmup_cut(&seconds), warmup_cut(&scaled));
        let places = |seconds: &[f64]| -> Vec<_> {
            stalls(seconds).unwrap().iter().map(|stall| (stall.from, stall.seconds)).collect()
        };
        prop_assert_eq!(places(&seconds), places(&scaled));
    }

    /// Blocks of ten seconds are drawn; within a block, the order of seconds does not matter.
    #[test]
    fn percentiles_are_in_order_and_in_their_intervals(counts in vec(vec(1_u64..50, 0..8), 60..130)) {
        let seconds: Vec<Vec<(u64, u64)>> = counts
            .iter()
            .map(|second| second.iter().enumerate().map(|(i, count)| (10 * i as u64 + count % 7, *count)).collect())
            .collect();
        let found = percentiles(&seconds, &[0.1, 0.5, 0.9]);
        prop_assert!(found.is_sorted_by_key(|percentile| percentile.map(|percentile| percentile.value)));
        let turned: Vec<_> = seconds.chunks(10).flat_map(|block| block.iter().rev().cloned()).collect();
        prop_assert_eq!(&percentiles(&turned, &[0.1, 0.5, 0.9]), &found);
        for percentile in found.into_iter().flatten() {
            prop_assert!(percentile.interval.is_none_or(|(low, high)| low <= percentile.value && percentile.value <= high));
        }
    }

    #[test]
    fn a_sweep_says_the_same_in_any_order_and_unit(
        tps in vec(100.0_f64..10_000.0, 4..10),
        power in -10_i32..20,
        by in 0_usize..10,
    ) {
        let unit = 2.0_f64.powi(power);
        let points: Vec<(u32, f64)> = tps.iter().enumerate().map(|(i, tps)| (1 << i, *tps)).collect();
        let sweep = Sweep::new(points.iter().copied()).unwrap();
        let mut turned = points.clone();
        turned.rotate_left(by % points.len());
        prop_assert_eq!(&Sweep::new(turned).unwrap(), &sweep);
        let scaled = Sweep::new(points.iter().map(|(clients, tps)| (*clients, tps * unit))).unwrap();
        prop_assert_eq!((scaled.knee(), scaled.steepest_step()), (sweep.knee(), sweep.steepest_step()));
        let (one, other) = (sweep.usl().unwrap(), scaled.usl().unwrap());
        prop_assert!((one.rms - other.rms).abs() <= 1e-6 * one.rms, "{:?} {:?}", one, other);
    }
}
