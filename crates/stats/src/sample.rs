//! Figures of a sample without assumptions about its distribution.

/// The ratio of the standard deviation to the median absolute deviation, for normal values.
const NORMAL_MAD: f64 = 1.4826;

/// A sample of at least one finite number, in ascending order.
///
/// No value is dropped as an outlier: validity excludes unusable runs before they get here.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    sorted: Vec<f64>,
}

impl Sample {
    /// A sample of these values, in any order; `None` if there is no value, or one of them is NaN or infinite.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        if sorted.is_empty() || !sorted.iter().all(|value| value.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        Some(Self { sorted })
    }

    /// Number of values, at least 1.
    pub fn n(&self) -> usize {
        self.sorted.len()
    }

    /// The values in ascending order.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// The smallest value.
    pub fn minimum(&self) -> f64 {
        self.sorted[0]
    }

    /// The largest value.
    pub fn maximum(&self) -> f64 {
        self.sorted[self.n() - 1]
    }

    /// The middle value; for an even number of values, the mean of the two in the middle.
    ///
    /// Source: Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50 (1996): their
    /// definitions 2 and 5 to 9 agree at p = 1/2. It is PostgreSQL's `percentile_cont(0.5)`.
    pub fn median(&self) -> f64 {
        let upper = self.n() / 2;
        match self.n() % 2 {
            1 => self.sorted[upper],
            // Halved first: the sum of two finite numbers may be infinite.
            _ => self.sorted[upper - 1] / 2.0 + self.sorted[upper] / 2.0,
        }
    }

    /// The median absolute deviation from the median, times 1.4826: for normal values an estimate of the standard
    /// deviation, which a single outlier does not affect.
    ///
    /// Source: Rousseeuw and Croux, "Alternatives to the Median Absolute Deviation", Journal of the American
    /// Statistical Association 88 (1993).
    pub fn mad(&self) -> f64 {
        let median = self.median();
        Self::new(self.sorted.iter().map(|value| (value - median).abs()))
            .map_or(f64::INFINITY, |distances| NORMAL_MAD * distances.median())
    }

    /// The geometric mean, exp of the mean of the logarithms; `None` if a value is zero or negative.
    ///
    /// Source: Fleming and Wallace, "How not to lie with statistics: the correct way to summarize benchmark results",
    /// Communications of the ACM 29 (1986): the mean whose ratios do not depend on the reference.
    pub fn geometric_mean(&self) -> Option<f64> {
        if self.minimum() <= 0.0 {
            return None;
        }
        let mean_ln = self.sorted.iter().map(|value| value.ln()).sum::<f64>() / self.n() as f64;
        // Rounding of the logarithms must not move the mean outside the sample.
        Some(mean_ln.exp().clamp(self.minimum(), self.maximum()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.iter().copied()).unwrap()
    }

    #[test]
    fn an_empty_sample_or_nan_is_rejected() {
        assert_eq!(Sample::new([]), None);
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Sample::new([1.0, value, 2.0]), None, "{value}");
        }
    }

    #[test]
    fn one_value_is_its_own_summary() {
        let one = sample(&[11173.0]);
        assert_eq!((one.n(), one.minimum(), one.median(), one.maximum()), (1, 11173.0, 11173.0, 11173.0));
        assert_eq!(one.geometric_mean(), Some(11173.0));
    }

    /// The runs of one client over TCP in the 2008 client sweep.
    #[test]
    fn the_order_of_the_values_does_not_matter() {
        let odd = sample(&[3121.953364, 3057.844199, 3092.482163]);
        assert_eq!((odd.minimum(), odd.median(), odd.maximum()), (3057.844199, 3092.482163, 3121.953364));
        assert_eq!(odd, sample(&[3057.844199, 3092.482163, 3121.953364]));
        let even = sample(&[5908.0, 5727.0, 6000.0, 5926.0]);
        assert_eq!(even.median(), 5917.0);
    }

    #[test]
    fn the_median_of_huge_values_is_finite() {
        assert_eq!(sample(&[f64::MAX, f64::MAX]).median(), f64::MAX);
    }

    #[test]
    fn the_geometric_mean_is_of_positive_values_only() {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b;
        assert!(close(sample(&[1.0, 10.0, 100.0]).geometric_mean().unwrap(), 10.0));
        // Linux 2.6.22 at 1, 2 and 3 clients; by CPython's math.log and math.exp.
        assert!(close(sample(&[11052.0, 16352.0, 15415.0]).geometric_mean().unwrap(), 14070.78826588581));
        assert_eq!(sample(&[0.0, 1.0]).geometric_mean(), None);
        assert_eq!(sample(&[-1.0, 1.0]).geometric_mean(), None);
    }

    #[test]
    fn the_geometric_mean_of_equal_values_is_that_value() {
        assert_eq!(sample(&[0.1; 7]).geometric_mean(), Some(0.1));
    }
}
