//! Detection of two modes in a sample: a mean or a median hides them.

use crate::moments::{Moments, suffixes};

/// The split of a sample into the lower and the upper part that are farthest apart.
///
/// Source: Engelman and Hartigan, "Percentage Points of a Test for Clusters", Journal of the American Statistical
/// Association 64 (1969): the largest ratio of the variance between the parts to that within them, over all splits of
/// the sorted sample. Its square root, used here, is the largest of all two-sample t statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// Number of values in the lower part.
    pub lower: usize,
    /// T = (m₂ − m₁) · √(k(n − k)/n) / s, with m the means of the parts, k the number of values in the lower part and s
    /// the standard deviation within the parts (n − 2 degrees of freedom). Infinite if the values within each part are
    /// equal; 0 if all values are.
    pub t: f64,
    /// m₂ − m₁, the distance of the means. For logarithms, it is the logarithm of the parts' ratio.
    pub distance: f64,
}

impl Split {
    /// The split with the largest T of values in ascending order, the first of equal ones; `None` for fewer than 3
    /// values, which leave no degree of freedom within the parts.
    pub fn from_ascending(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n < 3 {
            return None;
        }
        let upper_parts = suffixes(values);
        let mut lower_part = Moments::default();
        let mut best: Option<Self> = None;
        for (k, upper_part) in (1..n).zip(&upper_parts[1..]) {
            lower_part.add(values[k - 1]);
            let split = Self::between(&lower_part, upper_part);
            debug_assert_eq!(split.lower, k);
            if best.is_none_or(|best| split.t > best.t) {
                best = Some(split);
            }
        }
        best
    }

    fn between(lower: &Moments, upper: &Moments) -> Self {
        let (k, rest) = (lower.n as f64, upper.n as f64);
        let distance = upper.mean - lower.mean;
        let within = ((lower.squares + upper.squares) / (k + rest - 2.0)).sqrt();
        let apart = distance * (k * rest / (k + rest)).sqrt();
        let t = if distance > 0.0 { apart / within } else { 0.0 };
        Self { lower: lower.n, t, distance }
    }
}

/// The value that T reaches or exceeds in 1% of all samples of `n` values from one normal distribution; `None` below 3
/// and above 50.
///
/// By simulation: `cargo run --release -p stats --example critical_split` gives the values for all n, with their
/// errors. Those for 3 to 10, 12, 15, 20, 30 and 50 are from an earlier and smaller simulation, and off by its error:
/// by at most 0.3%, for n = 3 by 0.9% (exact is cot(π/600) = 190.98). They are kept, because verdicts depend on them.
pub fn critical_split(n: usize) -> Option<f64> {
    CRITICAL.get(n.checked_sub(3)?).copied()
}

/// Critical values from n = 3 on.
const CRITICAL: [f64; 48] = [
    192.75, 26.42, 14.81, 11.57, 10.16, 9.49, 9.11, 8.93, 8.86, 8.83, 8.85, 8.89, 8.95, 9.03, 9.12, 9.21,
    9.29, 9.39, 9.49, 9.59, 9.69, 9.79, 9.89, 9.99, 10.09, 10.19, 10.29, 10.40, 10.50, 10.59, 10.69, 10.79,
    10.89, 10.98, 11.07, 11.17, 11.26, 11.35, 11.45, 11.54, 11.63, 11.72, 11.81, 11.90, 11.98, 12.08, 12.16,
    12.24,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_values_have_no_split() {
        assert_eq!(Split::from_ascending(&[]), None);
        assert_eq!(Split::from_ascending(&[1.0, 2.0]), None);
    }

    #[test]
    fn equal_values_are_not_apart() {
        assert_eq!(Split::from_ascending(&[0.1; 5]), Some(Split { lower: 1, t: 0.0, distance: 0.0 }));
    }

    #[test]
    fn two_values_each_several_times_are_infinitely_apart() {
        let split = Split::from_ascending(&[0.1, 0.1, 0.1, 0.3, 0.3]).unwrap();
        assert_eq!((split.lower, split.t), (3, f64::INFINITY));
        assert!((split.distance - 0.2).abs() < 1e-15);
    }

    #[test]
    fn of_equal_splits_the_first_is_taken() {
        assert_eq!(Split::from_ascending(&[0.0, 1.0, 2.0]).unwrap().lower, 1);
    }

    /// By hand: means 1.5 and 10, squares 0.5 and 2, three degrees of freedom.
    #[test]
    fn t_is_the_difference_of_means_over_the_spread_within() {
        let split = Split::from_ascending(&[1.0, 2.0, 9.0, 10.0, 11.0]).unwrap();
        assert_eq!((split.lower, split.distance), (2, 8.5));
        assert!((split.t - 8.5 * 1.2_f64.sqrt() / (2.5_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn critical_values_are_for_3_to_50_runs() {
        assert_eq!([0, 2, 51].map(critical_split), [None; 3]);
        assert_eq!([3, 5, 50].map(critical_split), [Some(192.75), Some(14.81), Some(12.24)]);
    }
}
