//! Comparison of pairs of cells, and verdicts over a matrix of comparisons.

use std::fmt;

use crate::cell::MIN_RUNS;
use crate::{Cell, Logs, Welch, holm, permutation_p};

/// A ratio between 1/1.05 and 1.05 is not a relevant change.
pub const MARGIN: f64 = 1.05;
/// As [`MARGIN`], for counted instructions: only the path length changes such a figure by this much.
pub const COUNTED_MARGIN: f64 = 1.01;
/// Confidence of the interval that must lie within the margin.
const LEVEL: f64 = 0.95;
/// Among several comparisons, an adjusted p at or below this is a change.
const MATRIX_ALPHA: f64 = 0.05;
/// For a single comparison, p at or below this is a change.
const SINGLE_ALPHA: f64 = 0.01;
/// For an unstable cell, a change requires an exact p at or below this.
const UNSTABLE_ALPHA: f64 = 0.01;

/// The figures of a comparison of two cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The baseline.
    pub a: Cell,
    /// The variant.
    pub b: Cell,
    /// The ratio of geometric means, b over a, with its confidence; `None` for fewer than 2 runs on a side.
    pub welch: Option<Welch>,
    /// The largest ratio that is not a relevant change; its inverse is the smallest.
    pub margin: f64,
    /// The [exact permutation p](permutation_p); `None` unless a side is unstable, and for more than 40 runs together.
    pub permutation_p: Option<f64>,
}

/// The outcome of comparing two cells. More throughput is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Fewer than 3 runs on a side.
    Insufficient,
    /// A side is unstable, and the difference is not clear despite that.
    Unstable,
    /// The ratio is within the margin, with 95% confidence.
    Equivalent,
    /// The second cell is slower.
    Regression,
    /// The second cell is faster.
    Improvement,
    /// A side is unstable, but all runs of the second cell are slower than any of the first, by more than the margin.
    UnstableRegression,
    /// A side is unstable, but all runs of the second cell are faster than any of the first, by more than the margin.
    UnstableImprovement,
    /// Neither a change nor equivalence is shown: more runs are needed.
    Inconclusive,
}

impl Comparison {
    /// Compares the throughputs `b` with the throughputs `a`; `None` if either is empty, or one of them is zero,
    /// negative, NaN or infinite.
    pub fn new(a: &[f64], b: &[f64]) -> Option<Self> {
        let logs = (Logs::new(a.iter().copied())?, Logs::new(b.iter().copied())?);
        let (a, b) = (Cell::new(a)?, Cell::new(b)?);
        let unstable = a.is_unstable() || b.is_unstable();
        Some(Self {
            welch: Welch::new(&logs.0, &logs.1),
            margin: MARGIN,
            permutation_p: unstable.then(|| permutation_p(&logs.0, &logs.1)).flatten(),
            a,
            b,
        })
    }

    /// The same comparison with another margin than the default.
    pub fn with_margin(self, margin: f64) -> Self {
        Self { margin, ..self }
    }

    /// The ratio of the medians, b over a.
    pub fn median_ratio(&self) -> f64 {
        self.b.median / self.a.median
    }

    /// Whether every run of one side is faster than every run of the other.
    pub fn ranges_are_disjoint(&self) -> bool {
        self.a.maximum < self.b.minimum || self.b.maximum < self.a.minimum
    }

    /// Welch's comparison if the runs suffice for a verdict; `None` for fewer than 3 runs on a side.
    fn sufficient(&self) -> Option<Welch> {
        self.welch.filter(|_| self.a.n.min(self.b.n) >= MIN_RUNS)
    }

    fn verdict(&self, is_change: bool) -> Verdict {
        let Some(welch) = self.sufficient() else { return Verdict::Insufficient };
        if self.a.is_unstable() || self.b.is_unstable() {
            return self.unstable_verdict();
        }
        let interval = welch.confidence_interval(LEVEL);
        if interval.is_some_and(|interval| interval.low >= 1.0 / self.margin && interval.high <= self.margin)
        {
            return Verdict::Equivalent;
        }
        match is_change {
            true if welch.ratio < 1.0 => Verdict::Regression,
            true => Verdict::Improvement,
            false => Verdict::Inconclusive,
        }
    }

    fn unstable_verdict(&self) -> Verdict {
        let clear = self.ranges_are_disjoint() && self.permutation_p.is_some_and(|p| p <= UNSTABLE_ALPHA);
        match self.median_ratio() {
            ratio if clear && ratio < 1.0 / self.margin => Verdict::UnstableRegression,
            ratio if clear && ratio > self.margin => Verdict::UnstableImprovement,
            _ => Verdict::Unstable,
        }
    }
}

/// The verdicts on a matrix of comparisons, in its order. The first rule that applies decides:
///
/// 1. fewer than 3 runs on a side: insufficient;
/// 2. a side is unstable: a change only if the ranges are disjoint, the exact permutation p is at most 0.01 and the
///    ratio of medians is beyond the margin (5% unless [set otherwise](Comparison::with_margin)), else unstable;
/// 3. the 95% interval is within the margin: equivalent (Schuirmann, "A Comparison of the Two One-Sided Tests Procedure
///    and the Power Approach for Assessing the Equivalence of Average Bioavailability", Journal of Pharmacokinetics and
///    Biopharmaceutics 15 (1987), stricter than his 90%);
/// 4. p, [adjusted](holm) over all comparisons with at least 3 runs a side, is at most 0.05: a change. If there is only
///    one such comparison, its p must be at most 0.01;
/// 5. inconclusive.
pub fn verdicts(matrix: &[Comparison]) -> Vec<Verdict> {
    let p: Vec<f64> = matrix.iter().filter_map(|comparison| Some(comparison.sufficient()?.p)).collect();
    let alpha = if p.len() == 1 { SINGLE_ALPHA } else { MATRIX_ALPHA };
    let mut adjusted = holm(&p).into_iter();
    matrix
        .iter()
        .map(|comparison| {
            let p = comparison.sufficient().and_then(|_| adjusted.next());
            comparison.verdict(p.is_some_and(|p| p <= alpha))
        })
        .collect()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Insufficient => "INSUFFICIENT",
            Self::Unstable => "UNSTABLE",
            Self::Equivalent => "EQUIVALENT",
            Self::Regression => "REGRESSION",
            Self::Improvement => "IMPROVEMENT",
            Self::UnstableRegression => "REGRESSION*",
            Self::UnstableImprovement => "IMPROVEMENT*",
            Self::Inconclusive => "INCONCLUSIVE",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEADY: [f64; 5] = [100.0, 100.5, 99.5, 100.2, 99.8];

    fn verdict(a: &[f64], b: &[f64]) -> Verdict {
        verdicts(&[Comparison::new(a, b).unwrap()])[0]
    }

    fn times(factor: f64) -> [f64; 5] {
        STEADY.map(|value| value * factor)
    }

    #[test]
    fn a_side_that_has_no_logarithms_cannot_be_compared() {
        assert_eq!(Comparison::new(&STEADY, &[0.0, 1.0, 2.0]), None);
        assert_eq!(Comparison::new(&[], &STEADY), None);
    }

    #[test]
    fn fewer_than_three_runs_are_insufficient() {
        assert_eq!(verdict(&STEADY, &[50.0, 50.1]), Verdict::Insufficient);
        assert_eq!(verdict(&[50.0], &STEADY), Verdict::Insufficient);
    }

    #[test]
    fn a_clear_change_has_a_direction() {
        assert_eq!(verdict(&STEADY, &times(0.9)), Verdict::Regression);
        assert_eq!(verdict(&STEADY, &times(1.1)), Verdict::Improvement);
        assert_eq!(verdict(&STEADY, &STEADY), Verdict::Equivalent);
        // Certain, but too small to matter.
        assert_eq!(verdict(&STEADY, &times(0.97)), Verdict::Equivalent);
    }

    #[test]
    fn a_change_of_two_percent_exceeds_a_margin_of_one_percent() {
        let (a, b) = ([100.0, 100.1, 99.9], [98.0, 98.1, 97.9]);
        let comparison = Comparison::new(&a, &b).unwrap();
        assert_eq!(verdicts(std::slice::from_ref(&comparison)), [Verdict::Equivalent]);
        let counted = comparison.with_margin(COUNTED_MARGIN);
        assert_eq!(verdicts(&[counted]), [Verdict::Regression]);
        let same = Comparison::new(&a, &[100.0, 99.8, 100.2]).unwrap().with_margin(COUNTED_MARGIN);
        assert_eq!(verdicts(&[same]), [Verdict::Equivalent]);
    }

    #[test]
    fn an_unstable_side_needs_disjoint_ranges_and_more_than_the_margin() {
        let unstable = [80.0, 100.0, 90.0, 95.0, 85.0];
        assert_eq!(verdict(&unstable, &times(1.2)), Verdict::UnstableImprovement);
        assert_eq!(verdict(&times(1.2), &unstable), Verdict::UnstableRegression);
        assert_eq!(verdict(&unstable, &STEADY), Verdict::Unstable);
        // Disjoint, but the medians are within the margin.
        assert_eq!(verdict(&[80.0, 99.0, 98.9, 98.8, 98.7], &STEADY), Verdict::Unstable);
        // Disjoint, but with 3 runs a side p is at least 2/20.
        assert_eq!(verdict(&unstable[..3], &times(2.0)[..3]), Verdict::Unstable);
    }

    /// The p of these is 0.02: enough among several comparisons with Holm's correction, not alone.
    #[test]
    fn a_single_comparison_needs_a_smaller_p() {
        let noisy = [100.0, 103.0, 97.0, 101.5, 98.5];
        let doubtful = Comparison::new(&noisy, &noisy.map(|value| value * 0.9605)).unwrap();
        let p = doubtful.welch.unwrap().p;
        assert!(p > 0.01 && p < 0.05, "{p}");
        let clear = Comparison::new(&STEADY, &times(0.8)).unwrap();
        let insufficient = Comparison::new(&[1.0], &[2.0]).unwrap();
        assert_eq!(verdicts(std::slice::from_ref(&doubtful)), [Verdict::Inconclusive]);
        // Insufficient comparisons do not count as tested.
        assert_eq!(
            verdicts(&[insufficient, doubtful.clone()]),
            [Verdict::Insufficient, Verdict::Inconclusive]
        );
        // Holm: the smaller p is doubled, the larger one is not.
        assert_eq!(verdicts(&[doubtful.clone(), clear]), [Verdict::Regression; 2]);
        assert_eq!(verdicts(&[doubtful.clone(), doubtful.clone(), doubtful]), [Verdict::Inconclusive; 3]);
        assert_eq!(verdicts(&[]), []);
    }
}
