//! Distribution-free tests of two samples.

use std::cmp::Ordering;

use crate::Logs;

/// The most values, of both samples together, that are tested.
const MAX_VALUES: usize = 40;

/// The exact two-sided p-value of the hypothesis that the assignment of values to samples is random: the share of all
/// assignments whose means of logarithms are at least as far apart as those observed.
///
/// `None` for more than 40 values together, for which an exact result would take too long. Up to then it takes at most
/// a fraction of a second.
///
/// Sources: Pitman, "Significance Tests Which May be Applied to Samples from any Populations", Supplement to the
/// Journal of the Royal Statistical Society 4 (1937); counted as by Horowitz and Sahni, "Computing Partitions with
/// Applications to the Knapsack Problem", Journal of the ACM 21 (1974): all sums of each half of the values, then pairs
/// of them.
pub fn permutation_p(a: &Logs, b: &Logs) -> Option<f64> {
    let centre = (a.mean() * a.n() as f64 + b.mean() * b.n() as f64) / (a.n() + b.n()) as f64;
    let values = a.ascending().iter().chain(b.ascending()).map(|value| value - centre);
    share_as_extreme(values.collect(), a.n())
}

/// The exact two-sided p-value of Mann and Whitney's test: as [`permutation_p`], of ranks instead of logarithms, so
/// that the distances of values do not matter. Equal values share the mean of their ranks.
///
/// `None` for more than 40 values together.
///
/// Sources: Mann and Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger than the
/// Other", The Annals of Mathematical Statistics 18 (1947); without ties it is SciPy's `mannwhitneyu(…,
/// method="exact")`.
pub fn mann_whitney_p(a: &Logs, b: &Logs) -> Option<f64> {
    let all = || a.ascending().iter().chain(b.ascending());
    let centre = (a.n() + b.n() + 1) as f64 / 2.0;
    let rank = |value: &f64| {
        let below = all().filter(|other| *other < value).count();
        let equal = all().filter(|other| *other == value).count();
        below as f64 + (equal + 1) as f64 / 2.0
    };
    share_as_extreme(all().map(|value| rank(value) - centre).collect(), a.n())
}

/// The share of pairs of a value of each sample in which the second sample's value is smaller; ties count half: 0.5 if
/// neither tends to be smaller.
///
/// Source: Vargha and Delaney, "A Critique and Improvement of the CL Common Language Effect Size Statistics of McGraw
/// and Wong", Journal of Educational and Behavioral Statistics 25 (2000).
pub fn share_smaller(a: &Logs, b: &Logs) -> f64 {
    let pairs = a.ascending().iter().flat_map(|a| b.ascending().iter().map(move |b| b.total_cmp(a)));
    let smaller: f64 = pairs
        .map(|order| match order {
            Ordering::Less => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Greater => 0.0,
        })
        .sum();
    smaller / (a.n() * b.n()) as f64
}

/// The share of all subsets with `first` of these values whose sum is at least as far from 0 as that of the first ones.
/// The sum of all values must be 0. `None` for more than 40 values.
fn share_as_extreme(values: Vec<f64>, first: usize) -> Option<f64> {
    let n = values.len();
    if n > MAX_VALUES {
        return None;
    }
    // For centred values, the distance of the means is proportional to the first sample's sum.
    let observed = values[..first].iter().sum::<f64>().abs();
    // The same values in another order have a slightly different sum, due to rounding.
    let rounding = values.iter().map(|value| value.abs()).sum::<f64>() * 1e-12;
    if observed <= rounding {
        return Some(1.0);
    }
    let (one_half, other_half) = values.split_at(n / 2);
    let (sums, other_sums) = (subset_sums(one_half), subset_sums(other_half));
    let (mut as_far, mut all) = (0, 0);
    for (size, sums) in sums.iter().enumerate() {
        let Some(others) = first.checked_sub(size).and_then(|rest| other_sums.get(rest)) else { continue };
        as_far += pairs_outside(sums, others, observed - rounding);
        all += sums.len() as u64 * others.len() as u64;
    }
    Some(as_far as f64 / all as f64)
}

/// The sums of all subsets, by subset size, in ascending order.
fn subset_sums(values: &[f64]) -> Vec<Vec<f64>> {
    let mut by_size = vec![Vec::new(); values.len() + 1];
    by_size[0].push(0.0);
    for value in values {
        for size in (1..by_size.len()).rev() {
            let (smaller, larger) = by_size.split_at_mut(size);
            larger[0].extend(smaller[size - 1].iter().map(|sum| sum + value));
        }
    }
    by_size.iter_mut().for_each(|sums| sums.sort_unstable_by(f64::total_cmp));
    by_size
}

/// The number of pairs, one of each ascending list, whose sum is at least `bound` or at most −`bound`.
fn pairs_outside(numbers: &[f64], others: &[f64], bound: f64) -> u64 {
    let (mut below_upper, mut to_lower) = (others.len(), others.len());
    let mut pairs = 0;
    // As the number grows, fewer of the others stay below a bound.
    for number in numbers {
        while below_upper > 0 && number + others[below_upper - 1] >= bound {
            below_upper -= 1;
        }
        while to_lower > 0 && number + others[to_lower - 1] > -bound {
            to_lower -= 1;
        }
        pairs += (others.len() - below_upper + to_lower) as u64;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(a: &[f64], b: &[f64]) -> Option<f64> {
        permutation_p(&Logs::new(a.iter().copied()).unwrap(), &Logs::new(b.iter().copied()).unwrap())
    }

    #[test]
    fn equal_samples_have_a_p_of_1() {
        assert_eq!(p(&[3.0; 4], &[3.0; 4]), Some(1.0));
        assert_eq!(p(&[1.0, 2.0, 4.0], &[4.0, 1.0, 2.0]), Some(1.0));
        assert_eq!(p(&[1.0], &[2.0]), Some(1.0));
    }

    /// If the sides do not overlap, only their own assignment and its mirror image are equally far apart.
    #[test]
    fn hundreds_of_millions_of_permutations_are_counted_exactly() {
        let runs = |from: f64| (0..16).map(|i| from + f64::from(i)).collect::<Vec<_>>();
        assert_eq!(p(&runs(100.0), &runs(200.0)), Some(2.0 / 601_080_390.0));
    }

    #[test]
    fn more_than_40_values_are_too_many() {
        assert_eq!(p(&[100.0; 20], &[200.0; 21]), None);
    }
}
