//! Trend of values measured at equal distances in time.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::Sample;
use crate::moments::Moments;

/// A monotonic trend: significance and slope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The two-sided p-value of the hypothesis that there is none.
    pub p: f64,
    /// The median change from one value to the next.
    pub slope: f64,
}

/// The fewest values for the normal approximation of the test.
const MIN_VALUES: usize = 10;
/// The most values whose pairs are compared: there are 8 million of these. More values are averaged in groups of neighbours.
const MAX_VALUES: usize = 4000;

impl Trend {
    /// The test of Mann and Kendall on values in order of time, by the normal approximation with corrections for ties
    /// and continuity, and the slope of Theil and Sen. It assumes values independent of each other except for the
    /// trend: pass means over spans longer than their autocorrelation. More than 4,000 are averaged to at most as many.
    /// `None` for fewer than 10 values, and if one is NaN or infinite.
    ///
    /// Sources: Mann, "Nonparametric Tests Against Trend", Econometrica 13 (1945); Kendall, "Rank Correlation Methods",
    /// 4th edition (1975), chapter 4; Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau", Journal of
    /// the American Statistical Association 63 (1968).
    pub fn new(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n < MIN_VALUES || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        if n > MAX_VALUES {
            let group = n.div_ceil(MAX_VALUES);
            let means: Vec<f64> = values.chunks_exact(group).map(|group| Moments::new(group).mean).collect();
            let trend = Self::new(&means)?;
            return Some(Self { slope: trend.slope / group as f64, ..trend });
        }
        let mut score = 0_i64;
        let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
        for (i, earlier) in values.iter().enumerate() {
            for (j, later) in values.iter().enumerate().skip(i + 1) {
                score += i64::from(later > earlier) - i64::from(later < earlier);
                slopes.push((later - earlier) / (j - i) as f64);
            }
        }
        let sure = (score.abs() - 1).max(0) as f64 / variance(values).sqrt();
        // For equal values, the variance is 0, and there is no trend.
        let p = if sure.is_finite() { 2.0 * Normal::standard().sf(sure) } else { 1.0 };
        Some(Self { p: p.min(1.0), slope: Sample::new(slopes)?.median() })
    }
}

/// The variance of Kendall's score without a trend.
fn variance(values: &[f64]) -> f64 {
    let part = |n: usize| (n * (n - 1) * (2 * n + 5)) as f64 / 18.0;
    let mut ascending = values.to_vec();
    ascending.sort_unstable_by(f64::total_cmp);
    ascending.chunk_by(|a, b| a == b).fold(part(values.len()), |variance, ties| variance - part(ties.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// p and slope of pyMannKendall 1.4.3, `original_test`.
    #[test]
    fn the_trend_matches_another_program() {
        let close = |values: &[f64], p: f64, slope: f64| {
            let trend = Trend::new(values).unwrap();
            assert!((trend.p - p).abs() < 1e-9 && (trend.slope - slope).abs() < 1e-9, "{trend:?}");
        };
        let falling = [10120.5, 10098.2, 10034.9, 10071.3, 9984.7, 9961.0, 9990.4, 9902.8, 9867.1, 9880.6];
        close(&falling, 0.0012821837418053317, -27.966666666666544);
        let with_ties = [3.0, 5.0, 5.0, 4.0, 6.0, 5.0, 7.0, 6.0, 6.0, 8.0, 7.0, 9.0];
        close(&with_ties, 0.0012908054145985837, 0.4);
        let level =
            [100.0, 103.0, 99.0, 101.0, 104.0, 98.0, 102.0, 100.0, 97.0, 105.0, 101.0, 99.0, 103.0, 100.0];
        close(&level, 1.0, 0.0);
    }

    /// A year of 30-second spans: all pairs would need 4 TB.
    #[test]
    fn long_series_have_a_trend_of_the_same_unit() {
        let rising: Vec<f64> =
            (0..1_051_200).map(|i| 100.0 + f64::from(i) / 4.0 + f64::from(i % 7)).collect();
        let trend = Trend::new(&rising).unwrap();
        assert!((trend.slope - 0.25).abs() < 1e-3 && trend.p < 1e-9, "{trend:?}");
        let level: Vec<f64> = (0..1_051_200).map(|i| f64::from(i * 37 % 101)).collect();
        let trend = Trend::new(&level).unwrap();
        assert!(trend.slope.abs() < 1e-3 && trend.p > 0.01, "{trend:?}");
    }

    #[test]
    fn few_values_have_no_result_and_equal_ones_no_trend() {
        assert_eq!(Trend::new(&[1.0; 9]), None);
        assert_eq!(Trend::new(&[f64::NAN; 12]), None);
        assert_eq!(Trend::new(&[7.0; 12]), Some(Trend { p: 1.0, slope: 0.0 }));
    }
}
