//! Percentiles of one run, with confidence intervals.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::logs::is_probability;
use crate::shuffle::below;

/// Seed of the draws.
const SEED: u64 = 19_890_901;
/// Seconds in a block.
const BLOCK: usize = 10;
/// The largest number of blocks: for more than an hour, blocks are longer.
const MAX_BLOCKS: usize = 360;
/// The fewest blocks to draw from.
const MIN_BLOCKS: usize = 6;
/// Number of draws.
const DRAWS: usize = 1000;
/// The fewest values beyond a percentile for an interval.
const MIN_BEYOND: u64 = 10;

/// A percentile of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentile {
    /// The smallest value that at least this share of all values does not exceed.
    pub value: u64,
    /// Ends of the 95% confidence interval; `None` for less than a minute, or if fewer than 10 values are beyond the
    /// percentile. It describes this run alone.
    pub interval: Option<(u64, u64)>,
}

/// The percentiles (0.99 is the 99th) of values counted per second: pairs of a value and its count, in ascending order
/// of value. A percentile is `None` if there are no values or it is not between 0 and 1.
///
/// Source: Carlstein, "The Use of Subseries Values for Estimating the Variance of a General Statistic from a Stationary
/// Sequence", Annals of Statistics 14 (1986): because successive seconds are not independent, whole blocks of ten are
/// drawn, here a thousand times with a fixed seed; the interval is Efron's, the 2.5% and 97.5% quantiles of the draws.
/// The last block may be shorter; for more than an hour, there are 360 longer ones.
pub fn percentiles<S: AsRef<[(u64, u64)]>>(seconds: &[S], shares: &[f64]) -> Vec<Option<Percentile>> {
    let blocks = Blocks::new(seconds);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    // The same draws for all percentiles, so that the intervals are ordered as the percentiles are.
    let draws: Vec<Vec<u32>> = match blocks.n {
        n if n < MIN_BLOCKS => Vec::new(),
        n => (0..DRAWS).map(|_| draw(n, &mut random)).collect(),
    };
    shares.iter().map(|&share| blocks.percentile(share, &draws)).collect()
}

/// The number of times that each of `n` blocks is drawn.
fn draw(n: usize, random: &mut Xoshiro256PlusPlus) -> Vec<u32> {
    let mut weights = vec![0; n];
    (0..n).for_each(|_| weights[below(n, random)] += 1);
    weights
}

struct Blocks {
    n: usize,
    /// All distinct values, in ascending order.
    values: Vec<u64>,
    /// For each value, the number of values of each block that do not exceed it.
    cumulative: Vec<u64>,
}

impl Blocks {
    fn new<S: AsRef<[(u64, u64)]>>(seconds: &[S]) -> Self {
        let blocks: Vec<&[S]> = seconds.chunks(BLOCK.max(seconds.len().div_ceil(MAX_BLOCKS))).collect();
        let counted = |block: &[S]| -> Vec<(u64, u64)> {
            block.iter().flat_map(|second| second.as_ref()).filter(|(_, count)| *count > 0).copied().collect()
        };
        let mut values: Vec<u64> = Vec::new();
        for block in &blocks {
            values.extend(counted(block).iter().map(|(value, _)| *value));
            values.sort_unstable();
            values.dedup();
        }
        let n = blocks.len();
        let mut cumulative = vec![0; n * values.len()];
        for (number, block) in blocks.iter().enumerate() {
            for (value, count) in counted(block) {
                let place = values.partition_point(|other| *other < value);
                cumulative[place * n + number] += count;
            }
        }
        for i in n..cumulative.len() {
            cumulative[i] += cumulative[i - n];
        }
        Self { n, values, cumulative }
    }

    /// The number of values in these draws of blocks that do not exceed the one at `place`.
    fn up_to(&self, place: usize, weights: &[u32]) -> u64 {
        let counts = &self.cumulative[place * self.n..][..self.n];
        counts.iter().zip(weights).map(|(count, weight)| count * u64::from(*weight)).sum()
    }

    /// The percentile of these draws of blocks, and the number of values beyond it.
    fn value(&self, share: f64, weights: &[u32]) -> Option<(u64, u64)> {
        let all = self.up_to(self.values.len().checked_sub(1)?, weights);
        let rank = ((share * all as f64).ceil() as u64).clamp(1, all.max(1));
        let (mut low, mut high) = (0, self.values.len() - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.up_to(middle, weights) >= rank { high = middle } else { low = middle + 1 }
        }
        Some((self.values[low], all - rank.min(all)))
    }

    fn percentile(&self, share: f64, draws: &[Vec<u32>]) -> Option<Percentile> {
        let (value, beyond) = self.value(share, &vec![1; self.n]).filter(|_| is_probability(share))?;
        let mut drawn: Vec<u64> =
            draws.iter().filter_map(|weights| Some(self.value(share, weights)?.0)).collect();
        drawn.sort_unstable();
        let is_known = drawn.len() == DRAWS && beyond >= MIN_BEYOND;
        let interval = is_known.then(|| (drawn[DRAWS / 40 - 1], drawn[DRAWS - DRAWS / 40]));
        Some(Percentile { value, interval })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 values per second, 1 to 100, plus the addition by `slow`.
    fn seconds(n: usize, slow: impl Fn(usize) -> u64) -> Vec<Vec<(u64, u64)>> {
        (0..n).map(|second| (1..=100).map(|value| (value + slow(second), 1)).collect()).collect()
    }

    #[test]
    fn equal_seconds_have_an_exact_interval() {
        let found = percentiles(&seconds(60, |_| 0), &[0.5, 0.99]);
        let exact = |value| Some(Percentile { value, interval: Some((value, value)) });
        assert_eq!(found, [exact(50), exact(99)]);
    }

    /// One slow block of twelve forms the tail: a draw may contain it several times, or not at all.
    #[test]
    fn a_single_disturbance_widens_the_interval_of_the_tail_only() {
        let found =
            percentiles(&seconds(120, |second| if second < 10 { 1000 } else { 0 }), &[0.5, 0.95, 0.99]);
        let [median, p95, p99] = [0, 1, 2].map(|i: usize| found[i].unwrap());
        let (low, high) = median.interval.unwrap();
        assert!(low >= 45 && high <= 75, "{median:?}");
        let (low, high) = p99.interval.unwrap();
        assert!(low <= 100 && high > 1050, "{p99:?}");
        assert!(p95.value <= p99.value && p95.interval.unwrap().1 <= p99.interval.unwrap().1);
    }

    #[test]
    fn too_few_seconds_or_transactions_have_no_interval() {
        let interval =
            |seconds: &[Vec<(u64, u64)>], share: f64| percentiles(seconds, &[share])[0].unwrap().interval;
        assert_eq!(interval(&seconds(50, |_| 0), 0.5), None, "less than a minute");
        assert_eq!(interval(&seconds(60, |_| 0), 0.9999), None, "nothing beyond");
        assert_eq!(percentiles(&seconds(60, |_| 0), &[0.0, 1.0, f64::NAN]), [None; 3]);
        assert_eq!(percentiles(&vec![Vec::new(); 100], &[0.5]), [None]);
        assert_eq!(percentiles::<Vec<(u64, u64)>>(&[], &[0.5]), [None]);
    }

    #[test]
    fn seconds_without_a_transaction_are_ignored() {
        let mut with_empty = seconds(120, |_| 0);
        with_empty[10..40].fill(Vec::new());
        assert_eq!(percentiles(&with_empty, &[0.5])[0].unwrap().value, 50);
    }
}
