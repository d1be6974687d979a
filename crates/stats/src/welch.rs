//! Comparison of two cells: the ratio of their throughputs, and its confidence.

use crate::logs::is_probability;
use crate::{Interval, Logs, student};

/// Welch's comparison of two samples by their logarithms.
///
/// Sources: Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are
/// Involved", Biometrika 34 (1947), with the degrees of freedom of Satterthwaite, "An Approximate Distribution of
/// Estimates of Variance Components", Biometrics Bulletin 2 (1946). It assumes that the logarithms of each side are
/// normal, not that both spread alike.
///
/// If all values of one side are equal, only the other side's spread counts. If that holds for both sides, there is no
/// spread to estimate noise from, and the figures are the limits as it goes to zero: the interval is the ratio itself,
/// and p is 1 for equal sides and 0 for others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// The geometric mean of the second sample over that of the first.
    pub ratio: f64,
    /// The standard error of the ratio's logarithm.
    pub standard_error: f64,
    /// The Welch–Satterthwaite degrees of freedom. Without any spread, the smallest possible number.
    pub degrees_of_freedom: f64,
    /// The two-sided p-value of the hypothesis that the ratio is 1.
    pub p: f64,
}

impl Welch {
    /// Compares `b` with `a`; `None` if either has fewer than 2 values.
    pub fn new(a: &Logs, b: &Logs) -> Option<Self> {
        let difference = b.mean() - a.mean();
        let (n_a, n_b) = (a.n() as f64, b.n() as f64);
        let (of_a, of_b) = (a.variance()? / n_a, b.variance()? / n_b);
        let standard_error = (of_a + of_b).sqrt();
        let degrees_of_freedom = match of_a + of_b {
            0.0 => n_a.min(n_b) - 1.0,
            sum => sum * sum / (of_a * of_a / (n_a - 1.0) + of_b * of_b / (n_b - 1.0)),
        };
        let p = match difference.abs() {
            0.0 => 1.0,
            distance => 2.0 * student::upper_tail(distance / standard_error, degrees_of_freedom),
        };
        Some(Self { ratio: difference.exp(), standard_error, degrees_of_freedom, p })
    }

    /// The confidence interval of the ratio at this level, such as 0.95; `None` if `level` is not between 0 and 1.
    pub fn confidence_interval(&self, level: f64) -> Option<Interval> {
        let tail = is_probability(level).then_some((1.0 - level) / 2.0)?;
        let factor = (student::upper_quantile(tail, self.degrees_of_freedom) * self.standard_error).exp();
        Some(Interval { low: self.ratio / factor, high: self.ratio * factor })
    }
}

/// Half the width of the confidence interval of the difference of two means, by Welch's test of the values themselves,
/// which may be zero or negative. `None` with fewer than two values on a side.
///
/// Sources: as of [`Welch`].
pub fn mean_difference_half_width(a: &[f64], b: &[f64], level: f64) -> Option<f64> {
    let squared_error = |values: &[f64]| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (values.len() >= 2).then_some((variance / count, count - 1.0))
    };
    let ((of_a, freedom_a), (of_b, freedom_b)) = (squared_error(a)?, squared_error(b)?);
    let sum = of_a + of_b;
    if sum == 0.0 {
        return Some(0.0);
    }
    let freedom = sum * sum / (of_a * of_a / freedom_a + of_b * of_b / freedom_b);
    Some(student::upper_quantile((1.0 - level) / 2.0, freedom) * sum.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welch(a: &[f64], b: &[f64]) -> Option<Welch> {
        Welch::new(&Logs::new(a.iter().copied()).unwrap(), &Logs::new(b.iter().copied()).unwrap())
    }

    #[test]
    fn a_side_of_one_value_cannot_be_compared() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(welch(&[1.0, 2.0], &[1.0]), None);
    }

    #[test]
    fn without_spread_equal_sides_are_equal_and_others_are_not() {
        let equal = welch(&[0.1; 3], &[0.1; 5]).unwrap();
        assert_eq!((equal.ratio, equal.p, equal.standard_error), (1.0, 1.0, 0.0));
        assert_eq!(equal.confidence_interval(0.95), Some(Interval { low: 1.0, high: 1.0 }));
        let other = welch(&[100.0; 3], &[101.0; 5]).unwrap();
        assert_eq!((other.p, other.degrees_of_freedom), (0.0, 2.0));
        assert_eq!(other.confidence_interval(0.95), Some(Interval { low: other.ratio, high: other.ratio }));
    }

    #[test]
    fn with_spread_on_one_side_that_side_counts() {
        let one = welch(&[100.0; 3], &[100.0, 101.0, 102.0, 103.0]).unwrap();
        assert_eq!(one.degrees_of_freedom, 3.0);
    }

    /// p = 0 would claim too much; the tail of t is computed down to about 1e-300.
    #[test]
    fn a_tiny_p_is_not_rounded_to_0() {
        let spread: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i) * 0.01).collect();
        let p = welch(&spread, &spread.iter().map(|value| value * 2.0).collect::<Vec<_>>()).unwrap().p;
        assert!(p > 0.0 && p < 1e-60, "{p}");
    }

    #[test]
    fn a_level_is_between_0_and_1() {
        let welch = welch(&[1.0, 2.0], &[1.0, 3.0]).unwrap();
        for level in [0.0, 1.0, 95.0, f64::NAN] {
            assert_eq!(welch.confidence_interval(level), None, "{level}");
        }
    }

    /// SciPy 1.x: `ttest_ind([10, 12, 11], [15, 14, 19, 16], equal_var=False).confidence_interval()` is −8.27719 to −1.72281.
    #[test]
    fn the_interval_of_a_difference_of_means_is_that_of_scipy() {
        let half = mean_difference_half_width(&[10.0, 12.0, 11.0], &[15.0, 14.0, 19.0, 16.0], 0.95).unwrap();
        assert!((half - 3.27719).abs() < 1e-5, "{half}");
        assert_eq!(mean_difference_half_width(&[0.0; 3], &[0.0; 2], 0.95), Some(0.0));
        assert_eq!(mean_difference_half_width(&[1.0], &[1.0, 2.0], 0.95), None);
    }
}
