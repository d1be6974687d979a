//! Comparison of two cells within blocks: pairs of runs that were measured next to each other.

use crate::moments::Moments;
use crate::{Cell, Estimate, Logs, Sample, Spread};

/// With fewer pairs, the degrees of freedom that pairing costs weigh more than what the blocks usually have in common:
/// Student's t at a level of 0.01 is 4.0 with 6 pairs, and 4.6 with 5, where Welch's is 3.2 and 3.4.
pub(crate) const MIN_PAIRS: usize = 6;
/// The most pairs of which all signs are tried.
const MAX_PAIRS: usize = 20;

/// The differences between two cells within blocks.
///
/// Source: Fisher, "The Design of Experiments" (1935), chapters III and IV: randomised blocks, in which what changes from
/// block to block affects both sides alike and cancels out.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    /// Differences of logarithms, b − a.
    differences: Vec<f64>,
    /// The ratio by these.
    pub estimate: Estimate,
    /// The spread of what both runs of a block have in common: the square root of the sides' covariance, the standard
    /// deviation of a logarithm as in [`Cell::log_sd`](crate::Cell::log_sd). 0 if the covariance is negative.
    pub spread: f64,
}

impl Blocks {
    /// The differences of these pairs `(a, b)`, where the larger side has `runs` runs. `None` for fewer than 6 pairs, for
    /// pairs that lack more than a quarter of the runs, and if a value is not positive and finite.
    pub fn new(pairs: &[(f64, f64)], runs: usize) -> Option<Self> {
        if pairs.len() < MIN_PAIRS || 4 * pairs.len() < 3 * runs {
            return None;
        }
        let (a, b) =
            (Logs::new(pairs.iter().map(|pair| pair.0))?, Logs::new(pairs.iter().map(|pair| pair.1))?);
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| b.ln() - a.ln()).collect();
        let variance = Moments::new(&differences).variance()?;
        let covariance = (a.variance()? + b.variance()? - variance) / 2.0;
        Some(Self {
            estimate: Estimate::of_pairs(&differences)?,
            spread: covariance.max(0.0).sqrt(),
            differences,
        })
    }

    /// Number of pairs.
    pub fn n(&self) -> usize {
        self.differences.len()
    }

    /// The noise of a run that the blocks leave: the standard deviation of differences over √2.
    pub fn noise(&self) -> f64 {
        (Moments::new(&self.differences).variance().unwrap_or_default() / 2.0).sqrt()
    }

    /// Whether no single figure represents the ratios within blocks: their noise is wide, or they have modes. What affects
    /// both sides of a block alike does not count. `spread` is the cells'.
    pub fn is_unstable(&self, spread: Spread) -> bool {
        let ratios: Vec<f64> = self.differences.iter().map(|of| of.exp()).collect();
        self.noise() > spread.wide
            || Cell::new(&ratios).is_some_and(|cell| cell.with_spread(spread).has_modes())
    }

    /// The median ratio within a block.
    pub fn median_ratio(&self) -> f64 {
        Sample::new(self.differences.iter().copied()).map_or(1.0, |sample| sample.median().exp())
    }

    /// Whether one side is faster in every block.
    pub fn is_one_sided(&self) -> bool {
        self.differences.iter().all(|of| *of > 0.0) || self.differences.iter().all(|of| *of < 0.0)
    }

    /// The exact two-sided p-value of the hypothesis that chance decided which run of a pair is which side's: the share
    /// of all assignments whose mean difference is as far from 0. `None` for more than 20 pairs.
    ///
    /// Source: Fisher, "The Design of Experiments" (1935), section 21.
    pub fn permutation_p(&self) -> Option<f64> {
        let n = self.n();
        if n > MAX_PAIRS {
            return None;
        }
        let observed = self.differences.iter().sum::<f64>().abs();
        // The same values in another order have a slightly different sum, due to rounding.
        let bound = observed - self.differences.iter().map(|of| of.abs()).sum::<f64>() * 1e-12;
        // In Gray's order, one sign changes at a time. The last sign is fixed: its other value mirrors all sums.
        let mut differences = self.differences.clone();
        let mut sum: f64 = differences.iter().sum();
        let mut as_far = u64::from(sum.abs() >= bound);
        for step in 1_u64..1 << (n - 1) {
            let changed = &mut differences[step.trailing_zeros() as usize];
            sum -= 2.0 * *changed;
            *changed = -*changed;
            as_far += u64::from(sum.abs() >= bound);
        }
        Some(as_far as f64 / (1_u64 << (n - 1)) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(differences: &[f64]) -> Blocks {
        let pairs: Vec<(f64, f64)> = differences.iter().map(|of| (100.0, 100.0 * of.exp())).collect();
        Blocks::new(&pairs, pairs.len()).unwrap()
    }

    #[test]
    fn few_blocks_or_blocks_of_few_runs_are_no_pairs() {
        let pairs = [(100.0, 101.0); 8];
        assert_eq!(Blocks::new(&pairs[..5], 5), None);
        assert!(Blocks::new(&pairs[..6], 8).is_some());
        assert_eq!(Blocks::new(&pairs[..6], 9), None);
        assert_eq!(Blocks::new(&[(1.0, 0.0); 6], 6), None);
    }

    #[test]
    fn the_spread_is_that_of_what_both_sides_share() {
        let common = [0.0, 0.1, -0.1, 0.2, -0.2, 0.05, -0.05, 0.0_f64];
        let own = [0.01, -0.01, -0.01, 0.01, 0.01, -0.01, 0.01, -0.01];
        let pairs: [(f64, f64); 8] = std::array::from_fn(|i| (common[i].exp(), (common[i] + own[i]).exp()));
        let blocks = Blocks::new(&pairs, 8).unwrap();
        assert!((blocks.spread - 0.122).abs() < 0.005, "{blocks:?}");
        assert!(!blocks.is_unstable(Spread::MEAN) && Cell::new(&pairs.map(|of| of.0)).unwrap().is_unstable());
        assert!((blocks.noise() - 0.0107 / 2.0_f64.sqrt()).abs() < 1e-3, "{blocks:?}");
    }

    /// Only all signs as they are, or all reversed, give as large a sum.
    #[test]
    fn one_sided_differences_have_the_smallest_p() {
        let one_sided = blocks(&[0.1, 0.2, 0.05, 0.3, 0.12, 0.11, 0.4, 0.2]);
        assert!(one_sided.is_one_sided());
        assert_eq!(one_sided.permutation_p(), Some(2.0 / 256.0));
        assert!((one_sided.median_ratio() - 0.16_f64.exp()).abs() < 1e-12);
        // The smallest difference has the other sign: that assignment, the one without it, and their mirror images.
        let mixed = blocks(&[0.1, 0.2, -0.05, 0.3, 0.12, 0.11, 0.4, 0.2]);
        assert!(!mixed.is_one_sided());
        assert_eq!(mixed.permutation_p(), Some(4.0 / 256.0));
        assert_eq!(blocks(&[0.0; 6]).permutation_p(), Some(1.0));
    }
}
