//! Estimated warm-up at the beginning of a run.

use crate::moments::{Moments, suffixes};

/// Values in a batch.
const BATCH: usize = 5;
/// The fewest batches for an estimate.
const MIN_BATCHES: usize = 10;

/// The number of initial values to omit so that the mean of the rest is most precise: a multiple of 5. `None` for fewer
/// than 50 values, if one is NaN or infinite, and if it would be half of them or more: then the run has not settled.
///
/// Sources: White, "An Effective Truncation Heuristic for Bias Reduction in Simulation Output", Simulation 69 (1997),
/// and White, Cobb and Spratt, "A Comparison of Five Steady-State Truncation Heuristics for Simulation", Winter
/// Simulation Conference (2000), who name it MSER-5: of means of five values each, omit as many as minimizes the sum of
/// squared deviations of the rest, divided by the square of their number.
pub fn warmup_cut(values: &[f64]) -> Option<usize> {
    let batches: Vec<f64> =
        values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if batches.len() < MIN_BATCHES || batches.iter().any(|mean| !mean.is_finite()) {
        return None;
    }
    let error = |rest: &Moments| rest.squares / (rest.n * rest.n) as f64;
    let half = batches.len() / 2;
    let errors: Vec<f64> = suffixes(&batches)[..=half].iter().map(error).collect();
    let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
    let cut = errors.iter().position(|error| *error == least)?;
    (cut < half).then_some(cut * BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wobble(i: usize) -> f64 {
        ((i * 37 % 101) as f64 - 50.0) / 10.0
    }

    #[test]
    fn a_slow_beginning_is_cut() {
        let run: Vec<f64> =
            (0..300).map(|i| if i < 23 { 20.0 * i as f64 } else { 500.0 } + wobble(i)).collect();
        assert_eq!(warmup_cut(&run), Some(25));
    }

    #[test]
    fn a_steady_run_is_not_cut() {
        assert_eq!(warmup_cut(&[7.0; 60]), Some(0));
        assert!(warmup_cut(&(0..300).map(wobble).collect::<Vec<_>>()).unwrap() < 50);
    }

    #[test]
    fn a_run_that_never_settles_has_no_cut() {
        assert_eq!(warmup_cut(&(0..300).map(|i| i as f64).collect::<Vec<_>>()), None);
    }

    #[test]
    fn too_few_values_have_no_result() {
        assert_eq!(warmup_cut(&[1.0; 49]), None);
        assert_eq!(warmup_cut(&[f64::NAN; 100]), None);
    }
}
