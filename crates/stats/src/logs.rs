//! Logarithms of throughputs: throughputs are compared by ratios.

use crate::moments::Moments;
use crate::student;

/// The natural logarithms of a sample of at least one positive value, in ascending order.
///
/// A relative spread or shift is the same distance at every throughput, and means of logarithms are geometric means.
#[derive(Clone, Debug, PartialEq)]
pub struct Logs {
    ascending: Vec<f64>,
    moments: Moments,
}

impl Logs {
    /// The logarithms of these values, in any order; `None` if there is no value, or one of them is zero, negative, NaN
    /// or infinite.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut ascending = Vec::new();
        for value in values {
            if !(value > 0.0 && value.is_finite()) {
                return None;
            }
            ascending.push(value.ln());
        }
        if ascending.is_empty() {
            return None;
        }
        ascending.sort_by(f64::total_cmp);
        let moments = Moments::new(&ascending);
        Some(Self { ascending, moments })
    }

    /// Number of values, at least 1.
    pub fn n(&self) -> usize {
        self.moments.n
    }

    /// The logarithms in ascending order.
    pub fn ascending(&self) -> &[f64] {
        &self.ascending
    }

    /// The mean, the logarithm of the values' geometric mean.
    pub fn mean(&self) -> f64 {
        self.moments.mean
    }

    /// The variance with n − 1 degrees of freedom; `None` for one value. Exactly 0 if all values are equal.
    pub fn variance(&self) -> Option<f64> {
        self.moments.variance()
    }

    /// The standard deviation with n − 1 degrees of freedom, approximately the relative spread of the values: 0.02 is
    /// 2%; `None` for one value.
    pub fn standard_deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// The confidence interval of the geometric mean at this level, such as 0.95, if the logarithms are normal; `None`
    /// for one value, or if `level` is not between 0 and 1.
    ///
    /// Source: Student, "The Probable Error of a Mean", Biometrika 6 (1908), on logarithms.
    pub fn confidence_interval(&self, level: f64) -> Option<Interval> {
        let half_width = self.half_width(level)?;
        Some(Interval { low: (self.mean() - half_width).exp(), high: (self.mean() + half_width).exp() })
    }

    /// t · s / √n, half the width of the mean's interval.
    pub(crate) fn half_width(&self, level: f64) -> Option<f64> {
        let n = self.n() as f64;
        let standard_error = self.standard_deviation()? / n.sqrt();
        is_probability(level).then(|| student::upper_quantile((1.0 - level) / 2.0, n - 1.0) * standard_error)
    }
}

/// A confidence interval, of a throughput or of a ratio of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Whether a value is between 0 and 1, exclusive.
pub(crate) fn is_probability(value: f64) -> bool {
    value > 0.0 && value < 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_positive_are_rejected() {
        assert_eq!(Logs::new([]), None);
        for value in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Logs::new([1.0, value, 2.0]), None, "{value}");
        }
    }

    #[test]
    fn one_value_has_a_mean_and_no_spread() {
        let one = Logs::new([7.0]).unwrap();
        assert_eq!((one.n(), one.mean(), one.variance()), (1, 7.0_f64.ln(), None));
        assert_eq!(one.confidence_interval(0.95), None);
    }

    #[test]
    fn equal_values_have_no_spread_at_all() {
        let equal = Logs::new([0.1; 7]).unwrap();
        assert_eq!((equal.mean(), equal.standard_deviation()), (0.1_f64.ln(), Some(0.0)));
        let interval = equal.confidence_interval(0.95).unwrap();
        assert_eq!(interval.low, interval.high);
    }

    #[test]
    fn a_level_is_between_0_and_1() {
        let logs = Logs::new([1.0, 2.0]).unwrap();
        for level in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
            assert_eq!(logs.confidence_interval(level), None, "{level}");
        }
    }
}
