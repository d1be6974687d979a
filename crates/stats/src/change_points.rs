//! Change points of a series of measurements, and their effects.

use std::ops::Range;

use crate::e_divisive::{MIN_SIDE, MIN_VALUES, best_split, significant_split};
use crate::moments::{Moments, suffixes};
use crate::transient::significant_transient;
use crate::{Estimate, Logs, Sample, benjamini_hochberg};

/// Seed of the permutations: fixed, so that a series always has the same change points.
const SEED: u64 = 20_160_628;
/// −2 ln(1 − √0.95): a position is within the 95% interval if its likelihood ratio is no larger.
const MAX_LIKELIHOOD_RATIO: f64 = 7.35;

/// A change of a series' level. Its indices are those of the series, including missing points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The last point at the level before.
    pub before: usize,
    /// The first point at the level after. If points are missing in between, the change is anywhere between the two.
    pub after: usize,
    /// The latest point that has the level before, and the earliest that has the level after, with 95% confidence: the
    /// change lies between these. For a change that is large compared with the noise, they are `before` and `after`.
    ///
    /// Source: Hansen, "Sample Splitting and Threshold Estimation", Econometrica 68 (2000): the positions where the sum
    /// of squares about the two levels is not much larger than at the best one.
    pub within: (usize, usize),
    /// The p-value of the hypothesis that the order of the points in the segment split here is random, by permutations:
    /// at most 0.01, at least 0.001, and for more than 200 points at least 0.0017.
    pub p: f64,
    /// Comparison of the segment after, up to the next change point, with the segment before: the ratio of their geometric
    /// means, with a p and an interval that hold for all positions that the change could have together. So they are honest
    /// although the position was chosen because the segments differ most there.
    pub effect: Estimate,
}

/// An effect at or below this p, adjusted over all change points of all series, is reported.
const EFFECT_ALPHA: f64 = 0.05;

/// The change points of a series of positive values in order, such as throughput by version or date; `None` is a
/// missing value. There are none among fewer than 10 values.
///
/// A point is one value, and without a change all points must be exchangeable. Runs of one version are not: the
/// properties of that version alone (its build, its memory layout) affect all of them, and as separate points they
/// would form an event. Give one value per version, by [`medians`].
///
/// Returns `None` if a value is zero, negative, NaN or infinite.
///
/// On logarithms, each segment is split in two where the parts differ most, if at most 1% of the permutations of its
/// points give such a difference. Otherwise the level may have changed and returned: that is two change points, if at
/// most 0.5% of permutations give such a window. After new change points are found, their neighbours are repositioned,
/// and then they themselves. A series without change has a change point in at most 1.5% of cases, whatever its
/// distribution; noise correlated from one point to the next, such as drift of a machine, is not random in this sense:
/// divide by a [control](relative_to). A segment has at least two points, and 10 are needed to split it.
///
/// Source: E-divisive, by Matteson and James, "A Nonparametric Approach for Multiple Change Point Analysis of
/// Multivariate Data", Journal of the American Statistical Association 109 (2014), with p as by Phipson and Smyth,
/// "Permutation P-values Should Never Be Zero", Statistical Applications in Genetics and Molecular Biology 9 (2010);
/// transients as by Olshen, Venkatraman, Lucito and Wigler, "Circular Binary Segmentation for the Analysis of
/// Array-Based DNA Copy Number Data", Biostatistics 5 (2004); repositioning by Bai, "Estimating Multiple Breaks One at
/// a Time", Econometric Theory 13 (1997).
///
/// The effect of a change point must be significant as well: see [`change_points_of_all`].
pub fn change_points(series: &[Option<f64>]) -> Option<Vec<ChangePoint>> {
    change_points_of_all(std::slice::from_ref(&series)).remove(0)
}

/// The change points of several series, such as the cells of one history; `None` for those with a value that is zero,
/// negative, NaN or infinite.
///
/// The more series, the more have a change point by chance. So a change point is reported only if the p of its effect,
/// adjusted by Benjamini and Hochberg over the change points of all series, is at most 0.05; a series without one has a p
/// of 1. At most 5% of the reported change points are expected to be false, and if nothing changed in any series, at most
/// 5% of histories have one. The interval of a reported effect never contains 1. The least significant is omitted first,
/// and its segments are joined before the next one is judged.
pub fn change_points_of_all<S: AsRef<[Option<f64>]>>(series: &[S]) -> Vec<Option<Vec<ChangePoint>>> {
    let mut all: Vec<Option<Segmented>> =
        series.iter().map(|series| Segmented::new(series.as_ref())).collect();
    loop {
        let found: Vec<Vec<ChangePoint>> =
            all.iter().map(|of| of.as_ref().map_or_else(Vec::new, Segmented::change_points)).collect();
        let tested = found.iter().zip(&all).filter(|(_, of)| of.as_ref().is_some_and(Segmented::is_tested));
        let p: Vec<f64> = tested
            .flat_map(|(found, _)| match found.is_empty() {
                true => vec![1.0],
                false => found.iter().map(|change| change.effect.p).collect(),
            })
            .collect();
        let adjusted = benjamini_hochberg(&p);
        let worst = p.iter().zip(adjusted).filter(|(p, adjusted)| *adjusted > EFFECT_ALPHA && **p < 1.0);
        let worst = worst.map(|(p, _)| *p).max_by(f64::total_cmp);
        // An effect with a p of 1 is not significant either, but a series without any has no change point to omit.
        let worst = found.iter().flatten().map(|change| change.effect.p).find(|p| *p >= 1.0).or(worst);
        let Some(worst) = worst else {
            let known = all.iter().map(Option::is_some);
            return found.into_iter().zip(known).map(|(found, known)| known.then_some(found)).collect();
        };
        for (of, found) in all.iter_mut().zip(&found) {
            if let (Some(of), Some(at)) = (of, found.iter().position(|change| change.effect.p == worst)) {
                of.splits.remove(at);
                break;
            }
        }
    }
}

/// A series with its splits.
struct Segmented {
    /// The known points with their indices.
    known: Vec<(usize, f64)>,
    /// Their logarithms.
    values: Vec<f64>,
    splits: Vec<Split>,
}

impl Segmented {
    fn new(series: &[Option<f64>]) -> Option<Self> {
        let known: Vec<(usize, f64)> =
            series.iter().enumerate().filter_map(|(index, value)| Some((index, (*value)?))).collect();
        if known.iter().any(|(_, value)| !(*value > 0.0 && value.is_finite())) {
            return None;
        }
        let values: Vec<f64> = known.iter().map(|(_, value)| value.ln()).collect();
        Some(Self { splits: find_splits(&values), known, values })
    }

    fn is_tested(&self) -> bool {
        self.values.len() >= MIN_VALUES
    }

    /// One for each split.
    fn change_points(&self) -> Vec<ChangePoint> {
        let Self { known, values, splits } = self;
        let ends: Vec<usize> =
            [0].into_iter().chain(splits.iter().map(|split| split.at)).chain([values.len()]).collect();
        let change = |(split, ends): (&Split, &[usize])| {
            let (from, to) = (ends[0], ends[2]);
            let logs = |points: &[(usize, f64)]| Logs::new(points.iter().map(|(_, value)| *value));
            let (earliest, latest) = position_interval(&values[from..to], split.at - from);
            let effect = Estimate::pooled(&logs(&known[from..split.at])?, &logs(&known[split.at..to])?)?;
            Some(ChangePoint {
                before: known[split.at - 1].0,
                after: known[split.at].0,
                within: (known[from + earliest - 1].0, known[from + latest].0),
                p: split.p,
                effect: effect.chosen_among(positions(to - from)),
            })
        };
        splits.iter().zip(ends.windows(3)).filter_map(change).collect()
    }
}

/// Number of positions at which so many values can be split.
fn positions(values: usize) -> usize {
    (values + 1).saturating_sub(2 * MIN_SIDE)
}

/// The median of each point's runs; `None` for a point without runs, and no result if a run is NaN or infinite.
///
/// The median, because a single outlier among three runs must not form an event.
pub fn medians<R: AsRef<[f64]>>(points: &[R]) -> Option<Vec<Option<f64>>> {
    let median = |runs: &[f64]| match runs {
        [] => Some(None),
        runs => Some(Some(Sample::new(runs.iter().copied())?.median())),
    };
    points.iter().map(|runs| median(runs.as_ref())).collect()
}

/// The ratio of each value to the control at the same point, if both exist: effects common to both, such as a machine
/// that slows down, cancel out.
pub fn relative_to(control: &[Option<f64>], series: &[Option<f64>]) -> Vec<Option<f64>> {
    let control = control.iter().copied().chain(std::iter::repeat(None));
    series.iter().zip(control).map(|(value, control)| Some((*value)? / control?)).collect()
}

/// A split of values, after `at` of them.
#[derive(Clone, Copy, Debug)]
struct Split {
    at: usize,
    p: f64,
}

/// The splits of these values, in order.
fn find_splits(values: &[f64]) -> Vec<Split> {
    let mut splits: Vec<Split> = Vec::new();
    // Segments without a significant split.
    let mut unsplit: Vec<(usize, usize)> = Vec::new();
    loop {
        let starts = [0].into_iter().chain(splits.iter().map(|split| split.at));
        let segments = starts.zip(splits.iter().map(|split| split.at).chain([values.len()]));
        let Some((from, to)) = segments.into_iter().find(|segment| !unsplit.contains(segment)) else {
            return splits;
        };
        let segment = &values[from..to];
        let seed = SEED ^ (from as u64) << 32 ^ to as u64;
        let found = match significant_split(segment, seed) {
            Some(found) => vec![Split { at: from + found.at, p: found.p }],
            None => significant_transient(segment, seed).map_or_else(Vec::new, |found| {
                [found.from, found.to].map(|at| Split { at: from + at, p: found.p }).to_vec()
            }),
        };
        if found.is_empty() {
            unsplit.push((from, to));
            continue;
        }
        let index = splits.partition_point(|split| split.at <= from);
        let new = index..index + found.len();
        splits.splice(index..index, found);
        reposition(values, &mut splits, new);
    }
}

/// Moves the neighbours of new splits, and then the new splits, to the best positions between their own neighbours.
fn reposition(values: &[f64], splits: &mut [Split], new: Range<usize>) {
    let last = splits.len() - 1;
    for i in [new.start.saturating_sub(1), last.min(new.end)].into_iter().chain(new) {
        let from = i.checked_sub(1).map_or(0, |i| splits[i].at);
        let to = splits.get(i + 1).map_or(values.len(), |split| split.at);
        if let Some(at) = best_split(&values[from..to]) {
            splits[i].at = from + at;
        }
    }
}

/// The first and the last possible position of a split that was found at `at`.
fn position_interval(values: &[f64], at: usize) -> (usize, usize) {
    let mut left = Moments::default();
    let squares: Vec<f64> = values
        .iter()
        .zip(&suffixes(values)[1..])
        .map(|(&value, right)| {
            left.add(value);
            left.squares + right.squares
        })
        .collect();
    // squares[i] belongs to the split after i + 1 values.
    let least = squares.iter().copied().fold(f64::INFINITY, f64::min);
    let bound = least + MAX_LIKELIHOOD_RATIO * least / (values.len() as f64 - 2.0);
    let is_possible = |square: &f64| *square <= bound;
    let first = squares.iter().position(is_possible).map_or(at, |i| i + 1);
    let last = squares.iter().rposition(is_possible).map_or(at, |i| i + 1);
    (first.min(at), last.max(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that vary by up to 1% about these levels, all different.
    fn series(levels: impl IntoIterator<Item = f64>) -> Vec<Option<f64>> {
        let wobble = |i: usize| 1.0 + ((i * 37 % 101) as f64 - 50.0) / 5000.0;
        levels.into_iter().enumerate().map(|(i, level)| Some(level * wobble(i))).collect()
    }

    fn levels(parts: &[(usize, f64)]) -> Vec<Option<f64>> {
        series(parts.iter().flat_map(|&(n, level)| vec![level; n]))
    }

    fn positions(series: &[Option<f64>]) -> Vec<(usize, usize)> {
        change_points(series).unwrap().iter().map(|change| (change.before, change.after)).collect()
    }

    #[test]
    fn values_without_a_logarithm_have_no_change_points() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(change_points(&[Some(1.0), Some(value)]), None, "{value}");
        }
    }

    #[test]
    fn few_points_and_missing_ones_have_no_change() {
        assert_eq!(change_points(&[]), Some(vec![]));
        assert_eq!(change_points(&[None; 20]), Some(vec![]));
        assert_eq!(positions(&levels(&[(4, 100.0), (5, 10.0)])), []);
        assert_eq!(positions(&levels(&[(5, 100.0), (5, 10.0)])), [(4, 5)]);
    }

    #[test]
    fn each_change_has_its_position_and_effect() {
        let found = change_points(&levels(&[(20, 100.0), (15, 90.0), (30, 120.0)])).unwrap();
        let is = |change: &ChangePoint, before: usize, ratio: f64| {
            assert_eq!((change.before, change.after), (before, before + 1));
            assert_eq!(change.within, (before, before + 1));
            let interval = change.effect.confidence_interval(0.95).unwrap();
            assert!(interval.low < ratio && ratio < interval.high, "{change:?}");
            assert!(change.p <= 0.01);
        };
        assert_eq!(found.len(), 2);
        is(&found[0], 19, 0.9);
        is(&found[1], 34, 120.0 / 90.0);
    }

    #[test]
    fn the_last_points_alone_can_show_a_change() {
        assert_eq!(positions(&levels(&[(60, 100.0), (2, 90.0)])), [(59, 60)]);
    }

    #[test]
    fn a_change_at_a_gap_lies_anywhere_in_it() {
        let mut with_gap = levels(&[(20, 100.0), (20, 90.0)]);
        with_gap[18..23].fill(None);
        let change = change_points(&with_gap).unwrap()[0];
        assert_eq!((change.before, change.after, change.within), (17, 23, (17, 23)));
    }

    /// The position of a change no larger than the noise may be a few points off; its interval shows that.
    #[test]
    fn a_small_change_has_an_uncertain_position() {
        let change = change_points(&levels(&[(60, 100.0), (60, 99.2)])).unwrap()[0];
        assert!(change.within.0 + 1 < change.within.1, "{change:?}");
        assert!((change.within.0..=change.within.1).contains(&59), "{change:?}");
    }

    #[test]
    fn a_control_cancels_common_changes() {
        let machine = |i: usize| if i < 25 { 1.0 } else { 0.8 };
        let control: Vec<_> = (0..40).map(|i| Some(500.0 * machine(i))).collect();
        let server = series((0..40).map(|i| 100.0 * machine(i)));
        assert_eq!(positions(&server), [(24, 25)]);
        assert_eq!(positions(&relative_to(&control, &server)), []);
        assert_eq!(
            relative_to(&[Some(2.0), None], &[Some(3.0), Some(1.0), Some(1.0)]),
            [Some(1.5), None, None]
        );
    }

    #[test]
    fn a_point_is_the_median_of_its_runs() {
        let runs = [vec![3.0, 1.0, 2.0], vec![], vec![5.0]];
        assert_eq!(medians(&runs), Some(vec![Some(2.0), None, Some(5.0)]));
        assert_eq!(medians(&[vec![1.0], vec![f64::NAN]]), None);
    }
}
