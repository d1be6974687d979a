//! Histograms of latencies, and their form in messages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use model::message::Latency;

use crate::error::LoadError;

/// Largest recorded latency, in nanoseconds: one hour. Longer ones count as this.
pub(crate) const MAX_LATENCY_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// An empty histogram of latencies.
pub(crate) fn latencies() -> Result<Histogram<u64>, LoadError> {
    Histogram::new_with_bounds(1, MAX_LATENCY_NS, DIGITS)
        .map_err(|error| LoadError::Internal(format!("cannot make a histogram: {error}")))
}

/// An empty histogram of the latencies of a statement, one of thousands: it is as large as its largest value requires, and
/// has a digit less.
pub(crate) fn statement_latencies() -> Result<Histogram<u64>, LoadError> {
    Histogram::new(DIGITS - 1)
        .map_err(|error| LoadError::Internal(format!("cannot make a histogram: {error}")))
}

/// Adds the counts of another histogram, bucket by bucket.
pub(crate) fn add(sum: &mut Histogram<u64>, more: &Histogram<u64>) -> Result<(), LoadError> {
    sum.add(more).map_err(|error| LoadError::Internal(format!("cannot add histograms: {error}")))
}

/// Writes histograms in the encoding of messages.
pub(crate) struct Encoder {
    serializer: V2DeflateSerializer,
    buffer: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { serializer: V2DeflateSerializer::new(), buffer: Vec::new() }
    }
}

impl Encoder {
    pub(crate) fn encode(&mut self, histogram: &Histogram<u64>) -> Result<String, LoadError> {
        self.buffer.clear();
        self.serializer
            .serialize(histogram, &mut self.buffer)
            .map_err(|error| LoadError::Internal(format!("cannot write a histogram: {error}")))?;
        Ok(STANDARD.encode(&self.buffer))
    }
}

/// Reads a histogram in the encoding of messages.
pub(crate) fn decode(payload: &str) -> Result<Histogram<u64>, LoadError> {
    let invalid = |error: String| LoadError::Internal(format!("cannot read a histogram: {error}"));
    let bytes = STANDARD.decode(payload).map_err(|error| invalid(error.to_string()))?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| invalid(error.to_string()))
}

/// The figures of a histogram; none if it is empty.
pub(crate) fn figures(latency_ns: &Histogram<u64>) -> Option<Latency> {
    if latency_ns.is_empty() {
        return None;
    }
    let quantile = |q| latency_ns.value_at_quantile(q) as f64 / 1e3;
    Some(Latency {
        mean_us: latency_ns.mean() / 1e3,
        stddev_us: latency_ns.stdev() / 1e3,
        min_us: latency_ns.min() as f64 / 1e3,
        p50_us: quantile(0.5),
        p90_us: quantile(0.9),
        p95_us: quantile(0.95),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
        max_us: latency_ns.max() as f64 / 1e3,
    })
}
