//! The number of runs that a cell should have, from its existing runs.
//!
//! Each function returns a total, not the number of missing runs, and depends only on the runs: called again after an
//! interruption, it returns the same.

use std::ops::RangeInclusive;

use crate::cell::MIN_RUNS;
use crate::{Cell, Logs, Spread, Welch, student};

/// The confidence of the interval that [`runs_needed`] narrows.
const LEVEL: f64 = 0.95;
/// The largest number of runs that is recommended.
pub(crate) const MAX_RUNS: usize = 1_000_000;
/// The number of runs of an unstable cell: enough to show how often it is in which mode.
pub const UNSTABLE_RUNS: RangeInclusive<usize> = 15..=20;
/// Runs a side in the first stage of a comparison, and additional ones in the second.
pub const STAGE: usize = 5;
/// A comparison continues with its second stage if p is below this after the first.
pub const SECOND_STAGE_P: f64 = 0.10;

/// Why a cell should have that many runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// With fewer than [`MIN_RUNS`], a cell has no class.
    TooFew,
    /// Its interval should be no wider than requested.
    Precision,
    /// The cell is [unstable](Cell::is_unstable).
    Unstable,
}

/// Half width of the 95% confidence interval of the geometric mean, upwards and relative to it: 0.02 is 2%. `None` for
/// one value.
pub fn ci_half_width(logs: &Logs) -> Option<f64> {
    logs.half_width(LEVEL).map(f64::exp_m1)
}

/// The number of runs that reduce the [half width](ci_half_width) to `half_width`, such as 0.02, if they spread as
/// these do: the smallest n, from 3, with t(n − 1, 0.975) · s / √n ≤ ln(1 + `half_width`).
///
/// `None` if that is more than a million, for fewer than 2 values, and if `half_width` is not positive.
///
/// Source: Jain, "The Art of Computer Systems Performance Analysis" (1991), chapter 13, with t for the normal quantile
/// and on logarithms. As s is itself an estimate, call it again with the additional runs.
pub fn runs_needed(logs: &Logs, half_width: f64) -> Option<usize> {
    let allowed = half_width.ln_1p();
    let sd = logs.standard_deviation().filter(|_| half_width > 0.0)?;
    // t is never below the normal quantile, and soon only slightly above.
    let by_normal = (NORMAL_QUANTILE * sd / allowed).powi(2);
    if by_normal > MAX_RUNS as f64 {
        return None;
    }
    let narrow_enough = |n: &usize| {
        let t = student::upper_quantile((1.0 - LEVEL) / 2.0, (n - 1) as f64);
        t * sd / (*n as f64).sqrt() <= allowed
    };
    (MIN_RUNS.max(by_normal as usize)..=MAX_RUNS).find(narrow_enough)
}

/// The 97.5% quantile of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;

/// The number of runs that a cell with these throughputs should have, for an interval of `half_width` (0.02 is 2%),
/// with the reason. An unstable cell gets what the interval needs, but at least 15 and at most 20.
///
/// `None` if a throughput is not a positive finite number, there is none, `half_width` is not positive, or a stable
/// cell would need more than a million runs.
pub fn runs_for_cell(throughputs: &[f64], half_width: f64, spread: Spread) -> Option<(usize, Reason)> {
    let cell = Cell::new(throughputs).filter(|_| half_width > 0.0)?.with_spread(spread);
    if cell.n < MIN_RUNS {
        return Some((MIN_RUNS, Reason::TooFew));
    }
    let needed = runs_needed(&Logs::new(throughputs.iter().copied())?, half_width);
    if cell.is_unstable() {
        let (least, most) = UNSTABLE_RUNS.into_inner();
        return Some((needed.unwrap_or(most).clamp(least, most), Reason::Unstable));
    }
    Some((needed?, Reason::Precision))
}

/// The number of runs that each side of a comparison should have: 5, and 5 more if their p is below 0.10.
///
/// The throughputs are in the order of measurement: only the first 5 of each side decide, so that later runs cannot
/// change the decision. `None` if one of these is not a positive finite number.
///
/// A single comparison in two stages raises a false alarm in less than 1% of cases, and at 2% noise detects a loss of
/// 5% in 96%; 5 runs a side alone detect it in 68%. If nothing has changed it takes 5.5 runs on average. Source of the
/// idea: Stein, "A Two-Sample Test for a Linear Hypothesis Whose Power Is Independent of the Variance", Annals of
/// Mathematical Statistics 16 (1945); the figures are simulated (`tests/simulation.rs`).
pub fn runs_for_comparison(a: &[f64], b: &[f64]) -> Option<usize> {
    if a.len() < STAGE || b.len() < STAGE {
        return Some(STAGE);
    }
    let first = |throughputs: &[f64]| Logs::new(throughputs[..STAGE].iter().copied());
    let welch = Welch::new(&first(a)?, &first(b)?)?;
    Some(if welch.p < SECOND_STAGE_P { 2 * STAGE } else { STAGE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(values: &[f64]) -> Logs {
        Logs::new(values.iter().copied()).unwrap()
    }

    #[test]
    fn at_least_three_runs_are_needed() {
        assert_eq!(runs_needed(&logs(&[100.0; 2]), 0.02), Some(3));
        assert_eq!(runs_needed(&logs(&[100.0, 100.001]), 0.02), Some(3));
    }

    #[test]
    fn an_unreachable_precision_is_not_recommended() {
        let spread = logs(&[100.0, 300.0]);
        assert_eq!(runs_needed(&logs(&[100.0]), 0.02), None);
        for half_width in [0.0, -0.02, f64::NAN] {
            assert_eq!(runs_needed(&spread, half_width), None, "{half_width}");
        }
        assert!(runs_needed(&spread, 2e-3).is_some());
        assert_eq!(runs_needed(&spread, 1e-3), None);
    }

    /// The half width is within the requested one with the runs needed, and not with one less.
    #[test]
    fn the_interval_with_the_runs_needed_is_narrow_enough() {
        let pattern = [100.0, 103.0, 97.0, 101.0, 99.5];
        let needed = runs_needed(&logs(&pattern), 0.02).unwrap();
        assert_eq!(needed, 8);
        assert!(ci_half_width(&logs(&pattern)).unwrap() > 0.02);
    }

    #[test]
    fn a_steady_cell_needs_the_runs_of_its_interval() {
        assert_eq!(runs_for_cell(&[100.0], 0.02, Spread::MEAN), Some((3, Reason::TooFew)));
        assert_eq!(runs_for_cell(&[100.0, 200.0], 0.02, Spread::MEAN), Some((3, Reason::TooFew)));
        assert_eq!(runs_for_cell(&[100.0, 101.0, 102.0], 0.02, Spread::MEAN), Some((4, Reason::Precision)));
        assert_eq!(runs_for_cell(&[100.0, 0.0], 0.02, Spread::MEAN), None);
        assert_eq!(runs_for_cell(&[100.0, 101.0], 0.0, Spread::MEAN), None);
    }

    #[test]
    fn an_unstable_cell_gets_15_to_20_runs() {
        let wide = |spread: f64| {
            runs_for_cell(&[100.0, 100.0 + spread, 100.0 - spread, 100.0 + spread / 2.0], 0.02, Spread::MEAN)
        };
        assert_eq!(wide(40.0), Some((20, Reason::Unstable)));
        // Modes close together: the interval alone would need fewer than 15.
        let modes = [100.0, 100.01, 100.0, 100.01, 106.0, 106.01];
        assert_eq!(runs_needed(&logs(&modes), 0.02), Some(12));
        assert_eq!(runs_for_cell(&modes, 0.02, Spread::MEAN), Some((15, Reason::Unstable)));
        assert_eq!(runs_for_cell(&modes, 1e-9, Spread::MEAN), Some((20, Reason::Unstable)));
    }

    #[test]
    fn a_comparison_begins_with_5_runs_and_goes_on_where_they_differ() {
        let a = [100.0, 101.0, 99.0, 100.5, 99.5];
        let other = a.map(|value| value * 1.03);
        assert_eq!(runs_for_comparison(&a[..4], &a), Some(5));
        assert_eq!(runs_for_comparison(&a, &a), Some(5));
        assert_eq!(runs_for_comparison(&a, &other), Some(10));
        assert_eq!(runs_for_comparison(&[0.0; 5], &a), None);
        // Later runs do not count, whatever their values.
        let later = [&a[..], &[500.0, 500.0]].concat();
        assert_eq!(runs_for_comparison(&a, &later), Some(5));
    }
}
