//! Values of a family, before they are in a format.

use std::borrow::Cow;
use std::collections::BTreeMap;

use store::PhaseTotals;

use super::family::Family;

/// Receives values of families.
pub(super) type Add<'f, 'a> = &'f mut dyn FnMut(&Family, Stream<'a>);

/// Labels in addition to those of the run or trial.
pub(super) type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// Values under the same labels, in order of time.
pub(super) struct Stream<'a> {
    pub(super) labels: Labels<'a>,
    pub(super) points: Vec<Point>,
}

/// A value at a time.
pub(super) struct Point {
    /// Microseconds after the Unix epoch; none for now.
    pub(super) at_us: Option<i64>,
    pub(super) value: Value,
}

/// A value in pgdyno's unit.
pub(super) enum Value {
    Number(f64),
    Histogram(Histogram),
}

/// Values counted by bucket: those of [`store::LATENCY_BOUNDS_US`], and one for all above.
pub(super) struct Histogram {
    pub(super) counts: Vec<u64>,
    pub(super) sum: f64,
}

/// Values by family and labels.
#[derive(Default)]
pub(super) struct Metrics<'a>(BTreeMap<String, (Family, BTreeMap<Labels<'a>, Vec<Point>>)>);

impl<'a> Metrics<'a> {
    /// Adds values, which are later than those with the same labels.
    pub(super) fn add(&mut self, family: &Family, stream: Stream<'a>) {
        let of_family = self.0.entry(family.dotted_name());
        let (_, streams) = of_family.or_insert_with(|| (family.clone(), BTreeMap::new()));
        streams.entry(stream.labels).or_default().extend(stream.points);
    }

    /// The families that have values.
    pub(super) fn into_families(self) -> impl Iterator<Item = (Family, Vec<Stream<'a>>)> {
        let streams = |streams: BTreeMap<Labels<'a>, Vec<Point>>| {
            streams.into_iter().map(|(labels, points)| Stream { labels, points }).collect()
        };
        self.0.into_values().map(move |(family, of_family)| (family, streams(of_family)))
    }
}

impl<'a> Stream<'a> {
    /// One value for now.
    pub(super) fn now(labels: Labels<'a>, value: f64) -> Self {
        Self { labels, points: vec![Point { at_us: None, value: Value::Number(value) }] }
    }
}

impl Histogram {
    /// The latencies of a phase; none if they have other buckets, which only a live file of another release can have.
    pub(super) fn new(totals: &PhaseTotals) -> Option<Self> {
        let is_known = totals.latency_counts.len() == store::LATENCY_BOUNDS_US.len() + 1;
        is_known.then(|| Self { counts: totals.latency_counts.clone(), sum: totals.latency_sum_us })
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}
