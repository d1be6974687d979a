//! Whether the first run of a cell is an outlier.

use crate::{MARGIN, Sample};

/// The distance from the others' median, in scaled median absolute deviations, beyond which the first run is apart.
const MAX_DEVIATIONS: f64 = 14.826;
/// The fewest others to compare the first run with.
const MIN_OTHERS: usize = 3;

/// The ratio of the first run to the median of the others, if it is apart from them: by more than the [`MARGIN`], and
/// by more than 14.826 times their [scaled median absolute deviation](Sample::mad). A cell measured with cold caches
/// starts like that. `runs` are throughputs in the order of measurement; `None` for fewer than 4.
///
/// It drops no run: it is a reason to check the cell's warm-up.
///
/// Source: Iglewicz and Hoaglin, "How to Detect and Handle Outliers" (1993), for the score, computed here without the
/// first run; the bound is that of hyperfine's warning.
pub fn first_run_apart(runs: &[f64]) -> Option<f64> {
    let (first, others) = runs.split_first()?;
    if others.len() < MIN_OTHERS {
        return None;
    }
    let others = Sample::new(others.iter().copied())?;
    let ratio = first / others.median();
    let beyond_margin = !(1.0 / MARGIN..=MARGIN).contains(&ratio);
    let is_apart = beyond_margin && (first - others.median()).abs() > MAX_DEVIATIONS * others.mad();
    is_apart.then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_first_run_is_an_outlier_and_a_noisy_one_is_not() {
        let cold = first_run_apart(&[91.0, 100.2, 99.9, 100.0, 100.1]).unwrap();
        assert!((cold / 0.909_545 - 1.0).abs() < 1e-5, "{cold}");
        assert!(first_run_apart(&[109.0, 100.2, 99.9, 100.0, 100.1]).is_some());
        // Within the margin; among others equally far apart; not the first one.
        assert_eq!(first_run_apart(&[96.0, 100.2, 99.9, 100.0, 100.1]), None);
        assert_eq!(first_run_apart(&[91.0, 104.0, 97.0, 100.0, 102.0]), None);
        assert_eq!(first_run_apart(&[100.2, 91.0, 99.9, 100.0, 100.1]), None);
    }

    #[test]
    fn it_takes_three_others() {
        assert_eq!(first_run_apart(&[50.0, 100.0, 100.0]), None);
        assert_eq!(first_run_apart(&[50.0, 100.0, 100.0, 100.0]), Some(0.5));
        assert_eq!(first_run_apart(&[]), None);
    }
}
