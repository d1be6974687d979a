//! The intervals of a mean and of a difference of two means.

use crate::estimate::satterthwaite;
use crate::moments::Moments;
use crate::student;

/// Half the width of the confidence interval of the difference of two means, by Welch's test of the values themselves,
/// which may be zero or negative. `None` with fewer than two values on a side.
///
/// Sources: as of [`Estimate::welch`](crate::Estimate::welch).
pub fn mean_difference_half_width(a: &[f64], b: &[f64], level: f64) -> Option<f64> {
    let squared_error = |values: &[f64]| {
        let count = values.len() as f64;
        Some((Moments::new(values).variance()? / count, count - 1.0))
    };
    let (variance, degrees_of_freedom) = satterthwaite([squared_error(a)?, squared_error(b)?]);
    Some(student::upper_quantile((1.0 - level) / 2.0, degrees_of_freedom) * variance.sqrt())
}

/// Half the width of the confidence interval of a mean, by Student's t. `None` with fewer than two values.
pub fn mean_half_width(values: &[f64], level: f64) -> Option<f64> {
    let count = values.len() as f64;
    let error = (Moments::new(values).variance()? / count).sqrt();
    Some(student::upper_quantile((1.0 - level) / 2.0, count - 1.0) * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy 1.x: `ttest_ind([10, 12, 11], [15, 14, 19, 16], equal_var=False).confidence_interval()` is −8.27719 to −1.72281.
    #[test]
    fn the_interval_of_a_difference_of_means_is_that_of_scipy() {
        let half = mean_difference_half_width(&[10.0, 12.0, 11.0], &[15.0, 14.0, 19.0, 16.0], 0.95).unwrap();
        assert!((half - 3.27719).abs() < 1e-5, "{half}");
        assert_eq!(mean_difference_half_width(&[0.0; 3], &[0.0; 2], 0.95), Some(0.0));
        assert_eq!(mean_difference_half_width(&[1.0], &[1.0, 2.0], 0.95), None);
    }

    /// SciPy 1.x: `ttest_1samp([15, 14, 19, 16], 0).confidence_interval()` is 12.56260 to 19.43740.
    #[test]
    fn the_interval_of_a_mean_is_that_of_scipy() {
        let half = mean_half_width(&[15.0, 14.0, 19.0, 16.0], 0.95).unwrap();
        assert!((half - 3.43740).abs() < 1e-4, "{half}");
        assert_eq!(mean_half_width(&[1.0], 0.95), None);
    }
}
