//! Comparison of pairs of cells, and verdicts over a matrix of comparisons.

use std::fmt;

use crate::cell::MIN_RUNS;
use crate::{Blocks, Cell, Estimate, Interval, Logs, Spread, holm, permutation_p};

/// A ratio between 1/1.05 and 1.05 is not a relevant change.
pub const MARGIN: f64 = 1.05;
/// As [`MARGIN`], for counted instructions: only the path length changes such a figure by this much.
pub const COUNTED_MARGIN: f64 = 1.01;
/// The [margin](Comparison::margin) of cells whose campaigns are for this effect, as a share.
pub fn margin(effect: f64, is_counted: bool) -> f64 {
    1.0 + if is_counted { effect.min(COUNTED_MARGIN - 1.0) } else { effect }
}

/// Confidence of the interval that must lie within the margin.
const LEVEL: f64 = 0.95;
/// Among several comparisons, an adjusted p at or below this is a change.
const MATRIX_ALPHA: f64 = 0.05;
/// For a single comparison, p at or below this is a change.
const SINGLE_ALPHA: f64 = 0.01;
/// An exact p at or below this, with disjoint ranges, is a change of an unstable cell.
const EXACT_ALPHA: f64 = 0.01;
/// Distance that the interval of an unstable cell must keep from 1, as a share of the noise for each run of the smaller
/// side; at most the whole noise. So at most 1% of cells without a change reach it, normal or with modes, with 4 or more
/// runs a side; with 3 runs about 1%, and 3.1% of cells with two modes, which 3 runs can't show.
const NOISE_SHARE_PER_RUN: f64 = 2.0 / 9.0;

/// The figures of a comparison of two cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The baseline.
    pub a: Cell,
    /// The variant.
    pub b: Cell,
    /// The ratio, b over a, with its confidence; `None` for fewer than 2 runs on a side.
    pub estimate: Option<Estimate>,
    /// The blocks within which the sides are compared; `None` if they are compared as two samples.
    pub blocks: Option<Blocks>,
    /// The largest ratio that is not a relevant change; its inverse is the smallest.
    pub margin: f64,
    /// The logarithms of both sides.
    logs: (Logs, Logs),
    /// Whether runs are independent and their number fixed, as permutations require.
    is_permutable: bool,
}

/// The outcome of comparing two cells. More throughput is better. A verdict on [unstable](Comparison::is_unstable) cells
/// is to be marked as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Fewer than 3 runs on a side.
    Insufficient,
    /// The ratio is within the margin, with 95% confidence.
    Equivalent,
    /// The second cell is slower.
    Regression,
    /// The second cell is faster.
    Improvement,
    /// Neither a change nor equivalence is shown: more runs are needed.
    Inconclusive,
}

impl Verdict {
    /// Whether more runs may still decide: neither a change nor equivalence is shown.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Inconclusive | Self::Insufficient)
    }
}

impl Comparison {
    /// Compares the throughputs `b` with the throughputs `a`; `None` if either is empty, or one of them is zero,
    /// negative, NaN or infinite.
    pub fn new(a: &[f64], b: &[f64]) -> Option<Self> {
        Self::with_spread(a, b, Spread::MEAN)
    }

    /// As [`Comparison::new`], for figures that are noisy and wide at other spreads than throughputs.
    pub fn with_spread(a: &[f64], b: &[f64], spread: Spread) -> Option<Self> {
        let logs = (Logs::new(a.iter().copied())?, Logs::new(b.iter().copied())?);
        let (a, b) = (Cell::new(a)?.with_spread(spread), Cell::new(b)?.with_spread(spread));
        Some(Self {
            estimate: Estimate::welch(&logs.0, &logs.1),
            blocks: None,
            margin: MARGIN,
            a,
            b,
            logs,
            is_permutable: true,
        })
    }

    /// The same comparison with another margin than the default.
    pub fn with_margin(self, margin: f64) -> Self {
        Self { margin, ..self }
    }

    /// The same comparison by the differences within blocks: pairs of a run of each side, `(a, b)`, that were measured
    /// next to each other. It stays one of two samples if there are [too few blocks](Blocks::new) for the runs.
    pub fn in_blocks(self, pairs: &[(f64, f64)]) -> Self {
        let Some(blocks) = Blocks::new(pairs, self.a.n.max(self.b.n)) else { return self };
        Self { estimate: Some(blocks.estimate), blocks: Some(blocks), ..self }
    }

    /// The same comparison if the number of runs depends on their results: see [`Estimate::sequential`]. To be applied
    /// last.
    pub fn sequential(self) -> Self {
        Self { estimate: self.estimate.map(Estimate::sequential), is_permutable: false, ..self }
    }

    /// The same comparison if all runs of a side share something that those of the other don't: see
    /// [`Estimate::widened`]. The permutation test takes runs for independent, and does not apply.
    pub fn widened(self, variance: f64, degrees_of_freedom: f64) -> Self {
        let estimate = self.estimate.map(|estimate| estimate.widened(variance, degrees_of_freedom));
        Self { estimate, is_permutable: false, ..self }
    }

    /// The ratio, b over a: of geometric means, or that within [blocks](Self::blocks).
    pub fn ratio(&self) -> f64 {
        let of_sides = self.b.geometric_mean / self.a.geometric_mean;
        self.blocks.as_ref().map_or(of_sides, |blocks| blocks.estimate.ratio)
    }

    /// The ratio of the medians, b over a.
    pub fn median_ratio(&self) -> f64 {
        self.b.median / self.a.median
    }

    /// The [exact permutation p](permutation_p), or that of [blocks](Blocks::permutation_p); `None` for more than 40 runs
    /// or 20 blocks, if the number of runs depends on the results, and if runs of a side share their session.
    pub fn permutation_p(&self) -> Option<f64> {
        if !self.is_permutable {
            return None;
        }
        self.blocks.as_ref().map_or_else(|| permutation_p(&self.logs.0, &self.logs.1), Blocks::permutation_p)
    }

    /// Whether every run of one side is faster than every run of the other.
    pub fn ranges_are_disjoint(&self) -> bool {
        self.a.maximum < self.b.minimum || self.b.maximum < self.a.minimum
    }

    /// Whether a side is [unstable](Cell::is_unstable), or in blocks their [ratios](Blocks::is_unstable).
    pub fn is_unstable(&self) -> bool {
        match &self.blocks {
            Some(blocks) => blocks.is_unstable(self.a.spread),
            None => self.a.is_unstable() || self.b.is_unstable(),
        }
    }

    /// The estimate if the runs suffice for a verdict; `None` for fewer than 3 runs on a side.
    fn sufficient(&self) -> Option<Estimate> {
        self.estimate.filter(|_| self.a.n.min(self.b.n) >= MIN_RUNS)
    }

    /// The verdict, with p adjusted over a matrix of comparisons, or `None` if this is the only one.
    fn verdict(&self, adjusted_p: Option<f64>) -> Verdict {
        let Some(estimate) = self.sufficient() else { return Verdict::Insufficient };
        let Some(interval) = estimate.confidence_interval(LEVEL) else { return Verdict::Inconclusive };
        if interval.low >= 1.0 / self.margin && interval.high <= self.margin {
            return Verdict::Equivalent;
        }
        let is_change = match (self.is_unstable(), adjusted_p) {
            (true, p) => self.is_clear(interval, p),
            (false, Some(p)) => p <= MATRIX_ALPHA,
            (false, None) => estimate.p <= SINGLE_ALPHA,
        };
        match is_change {
            true if estimate.ratio < 1.0 => Verdict::Regression,
            true => Verdict::Improvement,
            false => Verdict::Inconclusive,
        }
    }

    /// Whether unstable sides differ despite their spread and modes.
    fn is_clear(&self, interval: Interval, adjusted_p: Option<f64>) -> bool {
        let variance = |cell: &Cell| cell.log_sd.unwrap_or_default().powi(2);
        let of_sides = ((variance(&self.a) + variance(&self.b)) / 2.0).sqrt();
        let noise = self.blocks.as_ref().map_or(of_sides, Blocks::noise);
        let share = (NOISE_SHARE_PER_RUN * self.a.n.min(self.b.n) as f64).min(1.0);
        let distance = self.margin.max((share * noise).exp());
        let is_beyond = |low: f64, high: f64, distance: f64| high < 1.0 / distance || low > distance;
        let is_interval_beyond = is_beyond(interval.low, interval.high, distance);
        let (is_one_sided, ratio) = match &self.blocks {
            Some(blocks) => (blocks.is_one_sided(), blocks.median_ratio()),
            None => (self.ranges_are_disjoint(), self.median_ratio()),
        };
        (is_interval_beyond && adjusted_p.is_none_or(|p| p <= MATRIX_ALPHA))
            || (is_one_sided
                && is_beyond(ratio, ratio, self.margin)
                && self.permutation_p().is_some_and(|p| p <= EXACT_ALPHA))
    }
}

/// The verdicts on a matrix of comparisons, in its order. The first rule that applies decides:
///
/// 1. fewer than 3 runs on a side: insufficient;
/// 2. the 95% interval is within the margin (5% unless [set otherwise](Comparison::with_margin)): equivalent (Schuirmann,
///    "A Comparison of the Two One-Sided Tests Procedure and the Power Approach for Assessing the Equivalence of Average
///    Bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15 (1987), stricter than his 90%);
/// 3. a side is unstable: a change if the whole 95% interval is beyond the margin and beyond the noise (with fewer than 5
///    runs a side, a share of it) and, in a matrix, p is as in rule 4; or if the ranges are disjoint, the exact permutation
///    p is at most 0.01 and the ratio of medians is beyond the margin (in blocks: if their ratios are unstable; all have
///    one direction, and their median is beyond the margin);
/// 4. p, [adjusted](holm) over all comparisons with at least 3 runs a side, is at most 0.05: a change. If there is only
///    one such comparison, its p must be at most 0.01;
/// 5. inconclusive.
pub fn verdicts(matrix: &[Comparison]) -> Vec<Verdict> {
    let p: Vec<f64> = matrix.iter().filter_map(|comparison| Some(comparison.sufficient()?.p)).collect();
    let is_single = p.len() == 1;
    let mut adjusted = holm(&p).into_iter();
    matrix
        .iter()
        .map(|comparison| {
            let p = comparison.sufficient().and_then(|_| adjusted.next());
            comparison.verdict(p.filter(|_| !is_single))
        })
        .collect()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Insufficient => "INSUFFICIENT",
            Self::Equivalent => "EQUIVALENT",
            Self::Regression => "REGRESSION",
            Self::Improvement => "IMPROVEMENT",
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
    fn unstable_sides_change_by_more_than_their_noise() {
        let unstable = [80.0, 100.0, 90.0, 95.0, 85.0];
        assert!(Comparison::new(&unstable, &STEADY).unwrap().is_unstable());
        assert_eq!(verdict(&unstable, &times(1.3)), Verdict::Improvement);
        assert_eq!(verdict(&times(1.3), &unstable), Verdict::Regression);
        assert_eq!(verdict(&unstable, &STEADY), Verdict::Inconclusive);
        // Three runs are enough for a halved throughput.
        assert_eq!(verdict(&[1000.0, 1070.0, 1140.0], &[500.0, 535.0, 570.0]), Verdict::Regression);
        // The interval excludes the margin, not the noise.
        let wide = [100.0, 160.0, 80.0, 130.0, 110.0];
        let comparison = Comparison::new(&wide, &wide.map(|value| value * 0.58)).unwrap();
        let interval = comparison.estimate.unwrap().confidence_interval(0.95).unwrap();
        assert!(interval.high < 1.0 / MARGIN, "{interval:?}");
        assert_eq!(verdicts(&[comparison]), [Verdict::Inconclusive]);
    }

    #[test]
    fn a_mode_of_both_sides_is_no_change() {
        // The second side has one run in the mode of the first.
        let (low, high) = ([100.0, 100.4, 99.8, 100.1, 99.7], [130.0, 130.2, 99.9, 129.5, 130.4]);
        let comparison = Comparison::new(&low, &high).unwrap();
        assert!(comparison.b.has_modes());
        assert_eq!(verdicts(&[comparison]), [Verdict::Inconclusive]);
        let both = [100.0, 100.5, 110.0, 110.4, 99.7, 109.8];
        let comparison = Comparison::new(&both, &both.map(|value| value * 1.5)).unwrap();
        assert!(comparison.a.has_modes());
        assert_eq!(verdicts(&[comparison]), [Verdict::Improvement]);
    }

    /// The interval contains values within the margin, but no run of one side is as fast as any of the other.
    #[test]
    fn disjoint_ranges_are_a_change_if_that_is_improbable() {
        let (wide, other) = ([90.0, 96.0, 84.0, 99.0, 87.0], [101.0, 101.5, 100.5, 101.2, 100.8]);
        let comparison = Comparison::new(&wide, &other).unwrap();
        let interval = comparison.estimate.unwrap().confidence_interval(0.95).unwrap();
        assert!(comparison.is_unstable() && interval.low < MARGIN, "{interval:?}");
        assert_eq!(verdicts(&[comparison]), [Verdict::Improvement]);
    }

    #[test]
    fn many_runs_of_an_unstable_side_show_equivalence() {
        let wide: Vec<f64> =
            (0..40).map(|i| 100.0 * (0.1 * (f64::from((i * 17) % 41) / 20.0 - 1.0)).exp()).collect();
        let other: Vec<f64> = wide.iter().rev().map(|value| value * 1.004).collect();
        assert!(Comparison::new(&wide, &other).unwrap().is_unstable());
        assert_eq!(verdict(&wide, &other), Verdict::Equivalent);
    }

    /// The p of these is 0.02: enough among several comparisons with Holm's correction, not alone.
    #[test]
    fn a_single_comparison_needs_a_smaller_p() {
        let noisy = [100.0, 103.0, 97.0, 101.5, 98.5];
        let doubtful = Comparison::new(&noisy, &noisy.map(|value| value * 0.9605)).unwrap();
        let p = doubtful.estimate.unwrap().p;
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
