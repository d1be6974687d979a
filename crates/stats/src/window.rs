//! Mean of one run's window from its seconds, and its confidence.

use crate::moments::Moments;
use crate::{Interval, Trend, student};

/// The fewest seconds for an interval.
const MIN_SECONDS: usize = 30;
/// Number of seconds averaged before the test for a trend: neighbouring seconds are correlated.
const SPAN: usize = 30;
/// The largest p of a trend, if it also moves the values by more than [`DRIFT`].
const TREND_P: f64 = 0.01;
/// The largest tolerated drift over the window, as a share of the mean.
const DRIFT: f64 = 0.05;
/// The confidence of the interval.
const LEVEL: f64 = 0.95;
/// Values this far apart are assumed to be uncorrelated.
const MAX_LAGS: usize = 1000;

/// Mean of a window with one value per second. It describes this run alone: between runs, see [`Cell`](crate::Cell).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowMean {
    /// Number of seconds.
    pub n: usize,
    /// The mean.
    pub mean: f64,
    /// Number of independent values that would give the mean the same precision. `None` for fewer than 30 seconds, or
    /// if the correlation of neighbours lasts too long for the window to show.
    pub effective_n: Option<f64>,
    /// The trend of means over 30 seconds; `None` for fewer than ten of these.
    pub trend: Option<Trend>,
    /// The 95% confidence interval of the mean; `None` if the window is not stationary or there is no `effective_n` of
    /// at least 2.
    pub interval: Option<Interval>,
}

impl WindowMean {
    /// The mean of these values, one per second in order; `None` if there are none, or one is NaN or infinite.
    ///
    /// Sources: [`effective_sample_size`]; Student's t with one degree of freedom less than that.
    pub fn new(seconds: &[f64]) -> Option<Self> {
        if seconds.is_empty() || seconds.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let moments = Moments::new(seconds);
        let spans: Vec<f64> = seconds.chunks_exact(SPAN).map(|span| Moments::new(span).mean).collect();
        let mut window = Self {
            n: moments.n,
            mean: moments.mean,
            effective_n: if moments.n < MIN_SECONDS { None } else { effective_sample_size(seconds) },
            trend: Trend::new(&spans),
            interval: None,
        };
        let usable = window.effective_n.filter(|n| *n >= 2.0 && window.is_stationary() != Some(false));
        window.interval = usable.zip(moments.variance()).map(|(n, variance)| {
            let half_width = student::upper_quantile((1.0 - LEVEL) / 2.0, n - 1.0) * (variance / n).sqrt();
            Interval { low: moments.mean - half_width, high: moments.mean + half_width }
        });
        Some(window)
    }

    /// The drift of the values over the window by their [trend](Self::trend), as a share of the mean: −0.05 is a loss
    /// of 5%. `None` without trend or if the mean is not positive.
    pub fn drift(&self) -> Option<f64> {
        let steps = (self.n / SPAN) as f64 - 1.0;
        self.trend.filter(|_| self.mean > 0.0).map(|trend| trend.slope * steps / self.mean)
    }

    /// Whether the window is stationary: no trend with p at most 0.01 that moves the values by more than 5% over the
    /// window. `None` for less than five minutes.
    pub fn is_stationary(&self) -> Option<bool> {
        let (trend, drift) = (self.trend?, self.drift()?);
        Some(trend.p > TREND_P || drift.abs() <= DRIFT)
    }
}

/// Effective number of independent values: n over the sum of all autocorrelations, at most n.
///
/// Autocorrelations are summed in adjacent pairs while these are positive, each limited to the one before it. `None`
/// for fewer than 10 values, if one is NaN or infinite, and if the sum continues beyond a quarter of the values or a
/// thousand. For equal values it is n.
///
/// Values that alternate have a sum below 1, and would count more than n; the few pairs summed may even make it
/// negative. That gain is too uncertain to rely on: they count as n.
///
/// Source: Geyer, "Practical Markov Chain Monte Carlo", Statistical Science 7 (1992), the initial monotone sequence. It
/// has no bound of its own; Stan bounds the same sum by 1 / log₁₀(n) (Reference Manual, "Effective Sample Size"), where
/// the bound here is 1.
pub fn effective_sample_size(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < 10 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let moments = Moments::new(values);
    if moments.squares == 0.0 {
        return Some(n as f64);
    }
    let correlation = |lag: usize| {
        let products =
            values.iter().zip(&values[lag..]).map(|(a, b)| (a - moments.mean) * (b - moments.mean));
        products.sum::<f64>() / moments.squares
    };
    let (mut sum, mut smallest) = (-1.0_f64, f64::INFINITY);
    let lags = MAX_LAGS.min(n / 4);
    for lag in (0..lags).step_by(2) {
        let pair = correlation(lag) + correlation(lag + 1);
        if pair <= 0.0 {
            return Some(n as f64 / sum.max(1.0));
        }
        smallest = pair.min(smallest);
        sum += 2.0 * smallest;
    }
    // If values alternate exactly, all pairs are positive, and so small that the remaining ones, none of which exceeds
    // the last, do not bring the sum to 1.
    (sum + (n - lags) as f64 * smallest <= 1.0).then_some(n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds that differ pseudorandomly by up to 5%.
    fn seconds(n: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..n).map(|i| level(i) * (1.0 + ((i * i * 37 % 101) as f64 - 50.0) / 1000.0)).collect()
    }

    #[test]
    fn a_steady_run_has_an_interval() {
        let window = WindowMean::new(&seconds(600, |_| 1000.0)).unwrap();
        let interval = window.interval.unwrap();
        assert_eq!(window.is_stationary(), Some(true));
        assert!(interval.low > 990.0 && interval.low < window.mean && interval.high < 1010.0, "{window:?}");
    }

    #[test]
    fn a_run_that_drifts_has_none() {
        let window = WindowMean::new(&seconds(600, |i| 1000.0 - i as f64 / 4.0)).unwrap();
        assert_eq!((window.is_stationary(), window.interval), (Some(false), None));
        assert!((window.drift().unwrap() + 0.15).abs() < 0.02, "{window:?}");
    }

    #[test]
    fn a_short_run_has_no_result() {
        assert_eq!(WindowMean::new(&[]), None);
        assert_eq!(WindowMean::new(&[1.0, f64::NAN]), None);
        let short = WindowMean::new(&seconds(29, |_| 1000.0)).unwrap();
        assert_eq!((short.effective_n, short.is_stationary(), short.interval), (None, None, None));
        let longer = WindowMean::new(&seconds(60, |_| 1000.0)).unwrap();
        assert!(longer.is_stationary().is_none() && longer.interval.is_some());
    }

    #[test]
    fn equal_seconds_have_an_exact_interval() {
        let window = WindowMean::new(&[5.0; 40]).unwrap();
        assert_eq!(
            (window.effective_n, window.interval),
            (Some(40.0), Some(Interval { low: 5.0, high: 5.0 }))
        );
    }

    /// Each value four times carries no more information than each once.
    #[test]
    fn correlated_seconds_have_a_smaller_effective_size() {
        let once = seconds(400, |_| 1000.0);
        let alike: Vec<f64> = once[..100].iter().flat_map(|value| [*value; 4]).collect();
        let (n, fewer) = (effective_sample_size(&once).unwrap(), effective_sample_size(&alike).unwrap());
        assert!(n > 250.0 && (60.0..140.0).contains(&fewer), "{n} {fewer}");
    }

    /// Half of the run at another level: the correlation lasts too long for an estimate.
    #[test]
    fn a_correlation_as_long_as_the_run_leaves_no_interval() {
        let halves = seconds(200, |i| if i < 100 { 1000.0 } else { 2000.0 });
        assert_eq!(effective_sample_size(&halves), None);
    }

    /// Their lag-1 correlation is below −0.5, and the first pair alone makes the sum negative.
    #[test]
    fn alternating_seconds_count_fully() {
        let in_turn = seconds(300, |i| if i % 2 == 0 { 900.0 } else { 1100.0 });
        assert_eq!(effective_sample_size(&in_turn), Some(300.0));
        let interval = WindowMean::new(&in_turn).unwrap().interval.unwrap();
        assert!(interval.low > 980.0 && interval.high < 1020.0, "{interval:?}");
    }

    /// As at a rate of 100.5 transactions per second.
    #[test]
    fn alternating_values_have_an_interval() {
        for n in [30, 31, 300, 5001] {
            let in_turn: Vec<f64> = (0..n).map(|i| 100.0 + f64::from(i % 2)).collect();
            assert_eq!(effective_sample_size(&in_turn), Some(f64::from(n)), "{n}");
        }
    }
}
