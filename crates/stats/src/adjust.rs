//! Multiple comparisons.

/// The p-values, adjusted so that the probability of any false alarm among all of them stays that of a single test: at
/// most 1, in the same order as given. They must be numbers from 0 to 1.
///
/// Source: Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6
/// (1979); R's `p.adjust` does the same.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, i) in ascending(p).into_iter().enumerate() {
        largest = largest.max(p[i] * (p.len() - rank) as f64).min(1.0);
        adjusted[i] = largest;
    }
    adjusted
}

/// The p-values, adjusted to the false discovery rate: among those at or below a level, the expected share of false
/// alarms is at most that level. In the same order as given, and never larger than [Holm's](holm).
///
/// Source: Benjamini and Hochberg, "Controlling the False Discovery Rate: A Practical and Powerful Approach to Multiple
/// Testing", Journal of the Royal Statistical Society B 57 (1995); R's `p.adjust` does the same.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut smallest: f64 = 1.0;
    for (rank, i) in ascending(p).into_iter().enumerate().rev() {
        smallest = smallest.min(p[i] * p.len() as f64 / (rank + 1) as f64);
        adjusted[i] = smallest;
    }
    adjusted
}

/// Indices of the values in ascending order of value.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut ascending: Vec<usize> = (0..p.len()).collect();
    ascending.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    ascending
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(ours: Vec<f64>, theirs: &[f64]) {
        assert_eq!(ours.len(), theirs.len());
        assert!(ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < 1e-15), "{ours:?}");
    }

    /// By hand: the largest stays, the second is multiplied by 4/3, and none exceeds a larger one.
    #[test]
    fn benjamini_hochberg_keeps_the_largest_p() {
        close(benjamini_hochberg(&[0.02, 0.01, 0.04, 0.03]), &[0.04; 4]);
        close(benjamini_hochberg(&[0.5, 0.9, 0.01]), &[0.75, 0.9, 0.03]);
        close(benjamini_hochberg(&[]), &[]);
    }

    /// By hand: 4 × 0.01, then 3 × 0.02, and the following ones are no smaller.
    #[test]
    fn holm_multiplies_the_smallest_most_and_keeps_the_order() {
        close(holm(&[0.02, 0.01, 0.04, 0.03]), &[0.06, 0.04, 0.06, 0.06]);
        close(holm(&[0.5, 0.9, 0.01]), &[1.0, 1.0, 0.03]);
        close(holm(&[0.3]), &[0.3]);
        close(holm(&[]), &[]);
    }
}
