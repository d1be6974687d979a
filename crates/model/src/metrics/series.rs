//! Raw values that collectors read during a load, with their times. Readers of a bundle compute the rates.

use super::metric::{Kind, Metric};

/// Readings of one metric under one label during a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// `<source>.<name>` with its unit, if any, at the end, such as `cpu.user_us` or `pg.database.blks_hit`.
    pub metric: String,
    /// The object of the readings, such as `cpu0`, `checkpointer` or `pgbench_accounts`; none if the metric has one
    /// series.
    pub label: Option<String>,
    /// Interpretation of its values.
    pub kind: Kind,
    /// Readings in order of time.
    pub points: Vec<Point>,
}

/// One reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Time of the reading, in microseconds after the load's start by the monotonic clock; negative before it.
    pub at_us: i64,
    /// The value; none if the reading failed, came too late, or lacked it.
    pub value: Option<f64>,
}

/// Every series of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(pub Vec<Series>);

static EMPTY: Metrics = Metrics(Vec::new());

/// No readings.
impl Default for &Metrics {
    fn default() -> Self {
        &EMPTY
    }
}

impl Metrics {
    /// The series of a metric under a label.
    pub fn get(&self, metric: &str, label: Option<&str>) -> Option<&Series> {
        self.0.iter().find(|series| series.metric == metric && series.label.as_deref() == label)
    }

    /// Every series of a metric, one for each label.
    pub fn all<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = &'a Series> {
        self.0.iter().filter(move |series| series.metric == metric)
    }

    /// Growth of a counter within a span of time; none if it is unknown.
    pub fn growth(&self, metric: &str, label: Option<&str>, from_us: i64, to_us: i64) -> Option<f64> {
        self.get(metric, label)?.growth(from_us, to_us)
    }

    /// Mean of a gauge over a span of time; none if it is unknown.
    pub fn mean(&self, metric: &str, label: Option<&str>, from_us: i64, to_us: i64) -> Option<f64> {
        self.get(metric, label)?.mean(from_us, to_us)
    }
}

/// Maximum distance of a time from the first or last reading that still stands for it.
const MAX_EXTRAPOLATION_US: i64 = 50_000;

impl Series {
    /// A series of a metric in the catalogue.
    pub fn new(metric: &Metric, label: Option<String>, points: Vec<Point>) -> Self {
        Self { metric: metric.name.to_owned(), label, kind: metric.kind, points }
    }

    /// Growth of a counter between two times. Growth between readings is assumed to be uniform, so that the result
    /// covers the requested span regardless of the times of readings. None for a gauge, for a counter that was reset in
    /// the span, and if no reading is at, beyond or close to either end.
    pub fn growth(&self, from_us: i64, to_us: i64) -> Option<f64> {
        if self.kind != Kind::Counter {
            return None;
        }
        let values = self.points.iter().filter_map(|point| Some((point.at_us, point.value?)));
        let mut before = f64::NEG_INFINITY;
        for (at_us, value) in values {
            if at_us > from_us && value < before {
                return None;
            }
            before = value;
            if at_us >= to_us {
                break;
            }
        }
        Some(self.value_at(to_us)? - self.value_at(from_us)?)
    }

    /// Mean of a gauge's readings between two times, inclusive; none for a counter, and without readings.
    pub fn mean(&self, from_us: i64, to_us: i64) -> Option<f64> {
        if self.kind != Kind::Gauge {
            return None;
        }
        let (mut sum, mut count) = (0.0, 0.0);
        for value in self.values_between(from_us, to_us) {
            sum += value;
            count += 1.0;
        }
        (count > 0.0).then(|| sum / count)
    }

    /// The largest reading between two times, inclusive.
    pub fn max(&self, from_us: i64, to_us: i64) -> Option<f64> {
        self.values_between(from_us, to_us).reduce(f64::max)
    }

    /// The smallest reading between two times, inclusive.
    pub fn min(&self, from_us: i64, to_us: i64) -> Option<f64> {
        self.values_between(from_us, to_us).reduce(f64::min)
    }

    fn values_between(&self, from_us: i64, to_us: i64) -> impl Iterator<Item = f64> {
        let span = from_us.saturating_sub(MAX_EXTRAPOLATION_US)..=to_us.saturating_add(MAX_EXTRAPOLATION_US);
        self.points.iter().filter(move |point| span.contains(&point.at_us)).filter_map(|point| point.value)
    }

    /// Its value at a time, interpolated linearly between the readings before and after it.
    fn value_at(&self, at_us: i64) -> Option<f64> {
        let mut known = self.points.iter().filter_map(|point| Some((point.at_us, point.value?)));
        let mut before: Option<(i64, f64)> = None;
        let after = known.find(|&(time, value)| {
            if time < at_us {
                before = Some((time, value));
            }
            time >= at_us
        });
        match (before, after) {
            (_, Some((time, value))) if time == at_us => Some(value),
            (Some((t0, v0)), Some((t1, v1))) => Some(v0 + (v1 - v0) * (at_us - t0) as f64 / (t1 - t0) as f64),
            (Some((time, value)), None) if at_us - time <= MAX_EXTRAPOLATION_US => Some(value),
            (None, Some((time, value))) if time - at_us <= MAX_EXTRAPOLATION_US => Some(value),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(kind: Kind, points: &[(i64, Option<f64>)]) -> Series {
        let points = points.iter().map(|&(at_us, value)| Point { at_us, value }).collect();
        Series { metric: "cpu.user_us".to_owned(), label: None, kind, points }
    }

    #[test]
    fn growth_is_computed_for_the_requested_span() {
        let read = [(-1_000_000, Some(0.0)), (1_000_000, Some(20.0)), (3_000_000, Some(60.0))];
        let counter = series(Kind::Counter, &read);
        assert_eq!(counter.growth(0, 2_000_000), Some(30.0));
        assert_eq!(
            counter.growth(0, 3_040_000),
            Some(50.0),
            "a reading a little before the end stands for it"
        );
        assert_eq!(counter.growth(0, 4_000_000), None, "one long before does not");
        assert_eq!(series(Kind::Gauge, &read).growth(0, 1_000_000), None);
    }

    #[test]
    fn failed_readings_are_skipped_and_growth_over_a_reset_is_unknown() {
        let failed = series(Kind::Counter, &[(0, Some(1.0)), (1_000_000, None), (2_000_000, Some(5.0))]);
        assert_eq!(failed.growth(0, 2_000_000), Some(4.0));
        let reset = series(Kind::Counter, &[(0, Some(9.0)), (1_000_000, Some(2.0)), (2_000_000, Some(12.0))]);
        assert_eq!(reset.growth(0, 2_000_000), None);
        assert_eq!(reset.growth(1_000_000, 2_000_000), Some(10.0));
    }

    #[test]
    fn a_gauge_has_a_mean_and_extremes_of_its_readings() {
        let gauge = series(Kind::Gauge, &[(0, Some(1.0)), (1_000_000, None), (2_000_000, Some(4.0))]);
        assert_eq!(gauge.mean(0, 2_000_000), Some(2.5));
        assert_eq!((gauge.min(0, 2_000_000), gauge.max(0, 2_000_000)), (Some(1.0), Some(4.0)));
        assert_eq!(gauge.mean(500_000, 900_000), None);
    }
}
