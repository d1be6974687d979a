//! The load's totals: the same for a running campaign, now, and for a stored trial, at the end of each interval.

use store::Totals;

use super::family::{FAILED, LATENCY, TRANSACTIONS};
use super::point::{Add, Histogram, Point, Stream, Value};

/// Passes on totals as of a time.
pub(super) fn load_values(totals: &Totals, at_us: Option<i64>, add: Add<'_, '_>) {
    for totals in &totals.0 {
        let stream = |value| Stream {
            labels: vec![("phase", totals.phase.as_str().into())],
            points: vec![Point { at_us, value }],
        };
        add(&TRANSACTIONS, stream(Value::Number(totals.transactions as f64)));
        if let Some(failed) = totals.failed {
            add(&FAILED, stream(Value::Number(failed as f64)));
        }
        if let Some(histogram) = Histogram::new(totals) {
            add(&LATENCY, stream(Value::Histogram(histogram)));
        }
    }
}
