//! Histograms and series from logs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use model::message::{Interval, Phase};
use model::record::Latency;

use crate::error::HistogramError;

/// Significant decimal digits, as in the driver.
const DIGITS: u8 = 3;

/// A histogram in nanoseconds, from latencies in microseconds.
pub(super) fn histogram(latencies_us: &[u32]) -> Result<Histogram<u64>, HistogramError> {
    let mut histogram = Histogram::new(DIGITS)?;
    for us in latencies_us {
        histogram.record(u64::from(*us) * 1_000)?;
    }
    Ok(histogram)
}

/// A histogram as encoded in bundles.
pub(super) fn encoded(histogram: &Histogram<u64>) -> Result<String, HistogramError> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes)?;
    Ok(STANDARD.encode(bytes))
}

/// All figures of a distribution; none if empty.
pub(super) fn figures(latency_ns: &Histogram<u64>) -> Option<Latency> {
    let quantile = |q| Some(latency_ns.value_at_quantile(q) as f64 / 1e3);
    (!latency_ns.is_empty()).then(|| Latency {
        mean_us: Some(latency_ns.mean() / 1e3),
        stddev_us: Some(latency_ns.stdev() / 1e3),
        min_us: Some(latency_ns.min() as f64 / 1e3),
        p50_us: quantile(0.5),
        p90_us: quantile(0.9),
        p95_us: quantile(0.95),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
        max_us: Some(latency_ns.max() as f64 / 1e3),
    })
}

/// An interval without results.
pub(super) fn interval(start_us: u64, width_us: u64) -> Interval {
    Interval {
        start_us,
        width_us,
        phase: Phase::Measure,
        scripts: Vec::new(),
        background: Vec::new(),
        spans: Vec::new(),
        busy: None,
        lag_max_us: None,
        lag_mean_us: None,
        responses: None,
        send_lag_max_us: None,
    }
}
