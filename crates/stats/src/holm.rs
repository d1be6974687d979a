//! Many comparisons at once.

/// The p-values, adjusted so that the chance of any false alarm among them all stays what it is for one: at most 1, and
/// in the same order as given. They are numbers from 0 to 1.
///
/// Source: Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6
/// (1979); R's `p.adjust` does the same.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut ascending: Vec<usize> = (0..p.len()).collect();
    ascending.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, &i) in ascending.iter().enumerate() {
        largest = largest.max(p[i] * (p.len() - rank) as f64).min(1.0);
        adjusted[i] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 4 × 0.01, then 3 × 0.02, and no less for what follows.
    #[test]
    fn the_smallest_is_multiplied_most_and_none_is_overtaken() {
        let close = |ours: Vec<f64>, theirs: &[f64]| {
            assert_eq!(ours.len(), theirs.len());
            assert!(ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < 1e-15), "{ours:?}");
        };
        close(holm(&[0.02, 0.01, 0.04, 0.03]), &[0.06, 0.04, 0.06, 0.06]);
        close(holm(&[0.5, 0.9, 0.01]), &[1.0, 1.0, 0.03]);
        close(holm(&[0.3]), &[0.3]);
        close(holm(&[]), &[]);
    }
}
