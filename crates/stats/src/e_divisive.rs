//! The split of a series into the two parts that differ most, and its significance.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::shuffle::{p_of_chance, shuffle};

/// p at or below this is a change.
pub(crate) const ALPHA: f64 = 0.01;
/// The fewest values on each side of a split: a single one has no spread.
pub(crate) const MIN_SIDE: usize = 2;
/// The fewest values that are tested: with 9, no split is rare enough among all permutations for p to reach [`ALPHA`].
pub const MIN_VALUES: usize = 10;
/// The largest number of distinct levels.
const MAX_LEVELS: usize = 128;
/// Number of levels that values are rounded to if there are more.
const ROUNDED_LEVELS: usize = 64;
/// Farther than this from the ends, not every split is tried: the step is the distance divided by this.
const DENSE: usize = 16;

/// A significant split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SignificantSplit {
    /// Number of values before it.
    pub(crate) at: usize,
    /// The share of permutations whose best split is at least as good, as estimated.
    pub(crate) p: f64,
}

/// The best split of these values, if p is at most [`ALPHA`]; `None` for fewer than 10 values.
///
/// The statistic is the energy distance of the parts, with the absolute difference as distance, times mn/(m + n) for m
/// and n values: the maximum over all splits is compared with that of random permutations, and p [estimated from
/// these](p_of_chance).
///
/// Two approximations make it fast, and leave the test exact, because they apply to the permutations as well: if more
/// than 128 values are distinct, they are rounded to 64 levels, each the mean of values adjacent in size; and far from
/// both ends not every split is tried. The final position is then the best of all splits.
///
/// Sources: Matteson and James, "A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data",
/// Journal of the American Statistical Association 109 (2014), with α = 1 and all values after a split as its second
/// part, as in MongoDB's variant (Daly, Brown, Ingo, O'Leary and Bradford, "The Use of Change Point Detection to
/// Identify Software Performance Regressions in a Continuous Integration System", ICPE 2020).
pub(crate) fn significant_split(values: &[f64], seed: u64) -> Option<SignificantSplit> {
    if values.len() < MIN_VALUES {
        return None;
    }
    let (scale, mut levels) = Scale::new(values);
    let positions = positions(values.len());
    let observed = scale.best(&levels, &positions).energy;
    // The same split in reverse order has a slightly different sum, due to rounding.
    let as_good = observed - scale.rounding;
    let at = scale.best_position(values, &levels);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let p = p_of_chance(ALPHA, values.len(), || {
        shuffle(&mut levels, &mut random);
        scale.best(&levels, &positions).energy >= as_good
    })?;
    Some(SignificantSplit { at, p })
}

/// The best split of these values, whether or not it is significant; `None` for fewer than 4.
pub(crate) fn best_split(values: &[f64]) -> Option<usize> {
    if values.len() < 2 * MIN_SIDE {
        return None;
    }
    let (scale, levels) = Scale::new(values);
    Some(scale.best_position(values, &levels))
}

fn all_positions(n: usize) -> Vec<usize> {
    (MIN_SIDE..=n - MIN_SIDE).collect()
}

/// Positions of the tested splits of `n` values.
fn positions(n: usize) -> Vec<usize> {
    let mut lower = Vec::new();
    let mut at = MIN_SIDE;
    while at <= n / 2 {
        lower.push(at);
        at += (at / DENSE).max(1);
    }
    let upper = lower.iter().rev().map(|at| n - at).filter(|at| at > lower.last().unwrap_or(&0));
    lower.iter().copied().chain(upper).collect()
}

struct Split {
    at: usize,
    energy: f64,
}

/// The levels of the values, and the sums from which the energy of a split is computed.
///
/// The sum of |x − y| over all pairs, with levels in ascending order, is a sum over the gaps between adjacent levels:
/// with c of n values below it, a gap counts c(n − c) times.
struct Scale {
    /// Number of values.
    n: f64,
    /// The distance from each level to the next.
    gaps: Vec<f64>,
    /// For each level, the sum of the gaps above it.
    above: Vec<f64>,
    /// For each level, the same sum, each gap times the number of values below it.
    pairs_above: Vec<f64>,
    /// The sum of all gaps, each times the number of values below it.
    below: f64,
    /// The sum of distances over all pairs.
    total: f64,
    /// Energies that differ by less are equal.
    rounding: f64,
    /// Whether different values may share a level.
    is_rounded: bool,
}

impl Scale {
    /// The scale of these values, and the level of each.
    fn new(values: &[f64]) -> (Self, Vec<u8>) {
        let n = values.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
        // Equal values share a level, whichever comes first.
        let groups: Vec<&[usize]> = order.chunk_by(|&i, &j| values[i] == values[j]).collect();
        let width = if groups.len() <= MAX_LEVELS { 0 } else { n.div_ceil(ROUNDED_LEVELS) };
        let mut levels = vec![0_u8; n];
        let (mut centres, mut sizes): (Vec<f64>, Vec<usize>) = (Vec::new(), Vec::new());
        for group in groups {
            if sizes.last().is_none_or(|&size| size >= width) {
                centres.push(0.0);
                sizes.push(0);
            }
            let level = sizes.len() - 1;
            sizes[level] += group.len();
            // Running mean; exact for equal values.
            centres[level] += (values[group[0]] - centres[level]) * group.len() as f64 / sizes[level] as f64;
            group.iter().for_each(|&i| levels[i] = level as u8);
        }
        (Self { is_rounded: width > 0, ..Self::between(&centres, &sizes) }, levels)
    }

    fn between(centres: &[f64], sizes: &[usize]) -> Self {
        let n = sizes.iter().sum::<usize>() as f64;
        let mut gaps: Vec<f64> = centres.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Zeros: for the gap above the last level, and as padding to a multiple of eight.
        gaps.resize(sizes.len().next_multiple_of(8), 0.0);
        let (mut above, mut pairs_above) = (gaps.clone(), gaps.clone());
        let (mut sum, mut below, mut total) = (0.0, 0.0, 0.0);
        let mut count = n;
        for level in (0..sizes.len()).rev() {
            sum += gaps[level];
            below += gaps[level] * count;
            total += gaps[level] * count * (n - count);
            (above[level], pairs_above[level]) = (sum, below);
            count -= sizes[level] as f64;
        }
        let rounding = total / n * 1e-10;
        Self { n, gaps, above, pairs_above, below, total, rounding, is_rounded: false }
    }

    /// The best of all splits of these values with these levels.
    fn best_position(&self, values: &[f64], levels: &[u8]) -> usize {
        let at = self.best(levels, &all_positions(values.len())).at;
        if self.is_rounded { best_position_near(values, at, values.len() / ROUNDED_LEVELS) } else { at }
    }

    /// The best of the splits at these positions, in ascending order; the first of equal ones.
    fn best(&self, levels: &[u8], positions: &[usize]) -> Split {
        let mut best = Split { at: positions[0], energy: f64::NEG_INFINITY };
        let mut counts = [0_u32; MAX_LEVELS];
        let (mut done, mut below, mut pairs) = (0, 0.0, 0.0);
        for &at in positions {
            for level in levels[done..at].iter().map(|&level| usize::from(level)) {
                counts[level] += 1;
                below += self.above[level];
                pairs += self.pairs_above[level];
            }
            done = at;
            let energy = self.energy(at as f64, &counts, below, pairs);
            if energy > best.energy + self.rounding {
                best = Split { at, energy };
            }
        }
        best
    }

    /// The energy of a split after `m` values, with `counts` of them at each level. With c of these below a gap and C
    /// of all, `below` is the sum of c and `pairs` that of c · C over all gaps, each times the gap's length.
    fn energy(&self, m: f64, counts: &[u32; MAX_LEVELS], below: f64, pairs: f64) -> f64 {
        let k = self.n - m;
        let squares = self.sum_of_squares(counts);
        let all_squares = self.n * self.below - self.total;
        let left = m * below - squares;
        let right = k * (self.below - below) - (all_squares - 2.0 * pairs + squares);
        energy(m, k, [self.total, left, right])
    }

    /// The sum over all gaps of the squared number of values below, times the gap's length.
    fn sum_of_squares(&self, counts: &[u32; MAX_LEVELS]) -> f64 {
        let mut below = [0_i32; MAX_LEVELS];
        let mut sum = 0;
        for (below, &count) in below.iter_mut().zip(counts).take(self.gaps.len()) {
            sum += count as i32;
            *below = sum;
        }
        // Eight independent sums, because each addition depends on the previous one.
        let mut sums = [0.0; 8];
        for (gaps, below) in self.gaps.chunks_exact(8).zip(below.chunks_exact(8)) {
            for i in 0..8 {
                let below = f64::from(below[i]);
                sums[i] += gaps[i] * (below * below);
            }
        }
        sums.iter().sum()
    }
}

/// The best split within `distance` of `at`, by the exact values.
fn best_position_near(values: &[f64], at: usize, distance: usize) -> usize {
    let (from, to) =
        (at.saturating_sub(distance).max(MIN_SIDE), (at + distance).min(values.len() - MIN_SIDE));
    let distances =
        |value: f64, others: &[f64]| others.iter().map(|other| (value - other).abs()).sum::<f64>();
    let total = sum_of_distances(values);
    let (mut left, mut right) = (sum_of_distances(&values[..from]), sum_of_distances(&values[from..]));
    let mut best = Split { at, energy: f64::NEG_INFINITY };
    for at in from..=to {
        let energy = energy(at as f64, (values.len() - at) as f64, [total, left, right]);
        if energy > best.energy {
            best = Split { at, energy };
        }
        left += distances(values[at], &values[..at]);
        right -= distances(values[at], &values[at + 1..]);
    }
    best.at
}

/// The sum of distances over all pairs.
fn sum_of_distances(values: &[f64]) -> f64 {
    let mut ascending = values.to_vec();
    ascending.sort_unstable_by(f64::total_cmp);
    // The pairs across a gap are the values below it times the values above it.
    let gap = |(i, pair): (usize, &[f64])| (pair[1] - pair[0]) * ((i + 1) * (values.len() - i - 1)) as f64;
    ascending.windows(2).enumerate().map(gap).sum()
}

/// The energy of a split into `m` and `k` values, from the sums of distances over all pairs, those on the left and
/// those on the right.
fn energy(m: f64, k: f64, [total, left, right]: [f64; 3]) -> f64 {
    let between = total - left - right;
    2.0 * m * k / (m + k) * (between / (m * k) - left / (m * (m - 1.0)) - right / (k * (k - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition, pair by pair.
    fn defined_energy(values: &[f64], at: usize) -> f64 {
        let (left, right) = values.split_at(at);
        let mean = |a: &[f64], b: &[f64], pairs: usize| {
            a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs())).sum::<f64>() / pairs as f64
        };
        let (m, k) = (left.len(), right.len());
        let distance =
            2.0 * mean(left, right, m * k) - mean(left, left, m * (m - 1)) - mean(right, right, k * (k - 1));
        (m * k) as f64 / (m + k) as f64 * distance
    }

    #[test]
    fn the_best_split_is_that_of_the_definition() {
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0, 9.0, 7.0];
        let (scale, levels) = Scale::new(&values);
        for at in all_positions(values.len()) {
            let ours = scale.best(&levels, &[at]).energy;
            assert!(
                (ours - defined_energy(&values, at)).abs() < 1e-12,
                "{at}: {ours}, {}",
                defined_energy(&values, at)
            );
        }
        let by_definition = all_positions(values.len())
            .into_iter()
            .max_by(|&i, &j| defined_energy(&values, i).total_cmp(&defined_energy(&values, j)));
        assert_eq!(best_split(&values), by_definition);
    }

    #[test]
    fn every_split_is_tried_near_the_ends_and_fewer_far_from_them() {
        assert_eq!(positions(10), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(positions(11), [2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(positions(64), all_positions(64));
        let many = positions(10_000);
        assert!(many.len() < 500 && many.is_sorted(), "{}", many.len());
        assert_eq!((&many[..3], &many[many.len() - 3..]), (&[2, 3, 4][..], &[9996, 9997, 9998][..]));
    }

    #[test]
    fn equal_values_have_no_split() {
        assert_eq!(significant_split(&[0.1; 50], 1), None);
    }

    /// More than 128 different values are rounded, which changes the energy very little.
    #[test]
    fn many_values_are_rounded_little() {
        let values: Vec<f64> = (0..1000_u64)
            .map(|i| (i * i * 7919 % 1000) as f64 / 1000.0 + if i < 400 { 0.0 } else { 1.2 })
            .collect();
        let (scale, levels) = Scale::new(&values);
        assert!(usize::from(*levels.iter().max().unwrap()) < MAX_LEVELS);
        for at in [2, 10, 400, 998] {
            let (ours, exact) = (scale.best(&levels, &[at]).energy, defined_energy(&values, at));
            assert!((ours - exact).abs() < 0.05 + 0.01 * exact.abs(), "{at}: {ours}, {exact}");
        }
        assert_eq!(significant_split(&values, 1), Some(SignificantSplit { at: 400, p: 1.0 / 300.0 }));
    }
}
