//! The number of runs that a cell should have, from its existing runs.
//!
//! Each function returns a total, not the number of missing runs, and depends only on the runs: called again after an
//! interruption, it returns the same.

use std::ops::RangeInclusive;

use crate::cell::MIN_RUNS;
use crate::{Cell, Logs, Spread, student};

/// The confidence of the interval that [`runs_needed`] narrows.
const LEVEL: f64 = 0.95;
/// The largest number of runs that is recommended.
pub(crate) const MAX_RUNS: usize = 1_000_000;
/// The confidence of the interval that runs are added for: with it, the mean is within the requested width with a
/// probability of 95%, although the interval is looked at after each run and one that is too narrow by chance ends this.
const REPEATED_LEVEL: f64 = 0.98;
/// The number of runs of an unstable cell: enough to show how often it is in which mode.
pub const UNSTABLE_RUNS: RangeInclusive<usize> = 15..=20;
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

/// As [`ci_half_width`], by the wider interval that [`runs_for_cell`] narrows.
pub fn known_within(logs: &Logs) -> Option<f64> {
    logs.half_width(REPEATED_LEVEL).map(f64::exp_m1)
}

/// The number of runs that reduce the [half width](ci_half_width) to `half_width`, such as 0.02, if they spread as
/// these do: the smallest n, from 3, with t(n − 1, 0.975) · s / √n ≤ ln(1 + `half_width`).
///
/// `None` if that is more than a million, for fewer than 2 values, and if `half_width` is not positive.
///
/// Source: Jain, "The Art of Computer Systems Performance Analysis" (1991), chapter 13, with t for the normal quantile
/// and on logarithms. As s is itself an estimate, call it again with the additional runs.
pub fn runs_needed(logs: &Logs, half_width: f64) -> Option<usize> {
    runs_at(LEVEL, logs, half_width)
}

/// As [`runs_needed`], for an interval of another confidence.
fn runs_at(level: f64, logs: &Logs, half_width: f64) -> Option<usize> {
    let allowed = half_width.ln_1p();
    let sd = logs.standard_deviation().filter(|_| half_width > 0.0)?;
    // t is never below the normal quantile, and soon only slightly above.
    let by_normal = (student::normal_quantile((1.0 - level) / 2.0) * sd / allowed).powi(2);
    if by_normal > MAX_RUNS as f64 {
        return None;
    }
    let narrow_enough = |n: &usize| {
        let t = student::upper_quantile((1.0 - level) / 2.0, (n - 1) as f64);
        t * sd / (*n as f64).sqrt() <= allowed
    };
    (MIN_RUNS.max(by_normal as usize)..=MAX_RUNS).find(narrow_enough)
}

/// The number of runs that a cell with these throughputs should have for its mean to be known to `half_width` (0.02 is
/// 2%), with the reason. An unstable cell gets what that needs, but at least 15 and at most 20.
///
/// To be called again after each run until the cell has them: its mean is then within `half_width` of the geometric mean
/// of the runs with a probability of at least 95%. A rule that stops at the first narrow interval needs more than that
/// interval's confidence, because an interval that is too narrow by chance ends it: with 95%, 92% of cells hold their
/// mean at a noise of 4%, with 98% at least 96% at any (`bench/verdicts`). Source: Anscombe, "Large-Sample Theory of
/// Sequential Estimation", Mathematical Proceedings of the Cambridge Philosophical Society 48 (1952); Chow and Robbins,
/// "On the Asymptotic Theory of Fixed-Width Sequential Confidence Intervals for the Mean", The Annals of Mathematical
/// Statistics 36 (1965).
///
/// `None` if a throughput is not a positive finite number, there is none, `half_width` is not positive, or a stable
/// cell would need more than a million runs.
pub fn runs_for_cell(throughputs: &[f64], half_width: f64, spread: Spread) -> Option<(usize, Reason)> {
    let cell = Cell::new(throughputs).filter(|_| half_width > 0.0)?.with_spread(spread);
    if cell.n < MIN_RUNS {
        return Some((MIN_RUNS, Reason::TooFew));
    }
    let needed = runs_at(REPEATED_LEVEL, &Logs::new(throughputs.iter().copied())?, half_width);
    if cell.is_unstable() {
        let (least, most) = UNSTABLE_RUNS.into_inner();
        return Some((needed.unwrap_or(most).clamp(least, most), Reason::Unstable));
    }
    Some((needed?, Reason::Precision))
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
        assert_eq!(runs_for_cell(&[100.0, 101.0, 102.0], 0.02, Spread::MEAN), Some((5, Reason::Precision)));
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
        let modes = [100.0, 100.01, 100.0, 100.01, 105.2, 105.21];
        assert_eq!(runs_needed(&logs(&modes), 0.02), Some(10));
        assert_eq!(runs_for_cell(&modes, 0.02, Spread::MEAN), Some((15, Reason::Unstable)));
        assert_eq!(runs_for_cell(&modes, 1e-9, Spread::MEAN), Some((20, Reason::Unstable)));
    }
}
