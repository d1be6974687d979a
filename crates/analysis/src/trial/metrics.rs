//! Metrics of the load, as drawn: counters as rates, gauges as they are.

use std::collections::HashMap;

use model::message::{Interval, ScriptInterval};
use model::metrics::{Kind, Series, Unit, find};
use model::record::TrialRecord;

use super::Metric;
use super::load::end_us;
use super::points::{Envelope, Points, Weighed, groups};

/// Metrics with their shared times.
#[derive(Default)]
pub(super) struct Metrics {
    pub(super) clocks: Vec<Vec<i64>>,
    pub(super) metrics: Vec<Metric>,
    pub(super) left_out: usize,
}

/// A metric with all its readings.
struct Track<'a> {
    metric: &'a str,
    of: Option<&'a str>,
    rate: bool,
    at_us: Vec<i64>,
    values: Vec<Weighed>,
}

/// The metrics of a trial: the driver's own figures per interval, then those of the collectors.
pub(super) fn metrics(record: &TrialRecord, most: Points) -> Metrics {
    let of_driver = driver(&record.intervals);
    let series = record.metrics.0.iter().filter(|series| !series.points.is_empty());
    let tracks: Vec<Track<'_>> = of_driver.into_iter().chain(series.map(Track::new)).collect();
    let most_of_each = most.of_each(tracks.len());
    let mut metrics = Metrics::default();
    let mut clocks: HashMap<Vec<i64>, usize> = HashMap::new();
    for track in tracks {
        if most.may_leave_out() && track.is_all_zero() {
            metrics.left_out += 1;
            continue;
        }
        let together = groups(track.values.len(), most_of_each);
        let clock = *clocks.entry(track.at_us).or_insert_with_key(|at_us| {
            // The middle of the group.
            let at = |group: std::ops::Range<usize>| {
                let readings = at_us.get(group)?;
                Some(i64::midpoint(*readings.first()?, *readings.last()?))
            };
            metrics.clocks.push(together.clone().filter_map(at).collect());
            metrics.clocks.len() - 1
        });
        let Envelope { values, low, high } = Envelope::new(&track.values, together);
        metrics.metrics.push(Metric {
            metric: track.metric.to_owned(),
            of: track.of.map(str::to_owned),
            meaning: find(track.metric).map(|metric| metric.meaning),
            unit: unit(track.metric, track.rate),
            rate: track.rate,
            clock,
            values,
            low,
            high,
        });
    }
    metrics
}

impl<'a> Track<'a> {
    fn new(series: &'a Series) -> Self {
        let values = match series.kind {
            Kind::Counter => rates(series),
            Kind::Gauge => {
                series.points.iter().map(|point| Weighed { value: point.value, weight: 1.0 }).collect()
            }
        };
        Self {
            metric: &series.metric,
            of: series.label.as_deref(),
            rate: series.kind == Kind::Counter,
            at_us: series.points.iter().map(|point| point.at_us).collect(),
            values,
        }
    }

    fn is_all_zero(&self) -> bool {
        self.values.iter().all(|weighed| weighed.value.is_none_or(|value| value == 0.0))
    }
}

/// A counter's growth per second since the previous reading, weighted by that span. `None` for the first reading, for
/// one that failed, and after a reset; after a failed reading the span begins at the last successful one.
fn rates(series: &Series) -> Vec<Weighed> {
    let mut before: Option<(i64, f64)> = None;
    let rate = |point: &model::metrics::Point| {
        let Some(value) = point.value else { return Weighed { value: None, weight: 0.0 } };
        let since = before.replace((point.at_us, value));
        let rate = since.filter(|(at_us, was)| point.at_us > *at_us && value >= *was).map(|(at_us, was)| {
            let seconds = (point.at_us - at_us) as f64 / 1e6;
            (seconds, (value - was) / seconds)
        });
        Weighed { value: rate.map(|(_, rate)| rate), weight: rate.map_or(0.0, |(seconds, _)| seconds) }
    };
    series.points.iter().map(rate).collect()
}

/// The driver's figures, of itself and of background workloads, per interval; the names are those of `series.parquet`.
fn driver(intervals: &[Interval]) -> Vec<Track<'_>> {
    let track = |metric, of, rate, values: Vec<Weighed>| {
        let at_us = intervals.iter().map(end_us).collect();
        Track { metric, of, rate, at_us, values }
    };
    let gauge = |metric, of: fn(&Interval) -> Option<f64>| {
        let weighed = |interval| Weighed { value: of(interval), weight: interval.width_us as f64 };
        track(metric, None, false, intervals.iter().map(weighed).collect())
    };
    let mut tracks = vec![
        gauge("driver.busy_share", |interval| interval.busy),
        gauge("driver.lag_max_us", |interval| interval.lag_max_us),
        gauge("driver.lag_mean_us", |interval| interval.lag_mean_us),
        gauge("driver.send_lag_max_us", |interval| interval.send_lag_max_us),
    ];
    tracks.retain(|track| track.values.iter().any(|weighed| weighed.value.is_some()));
    let mut names: Vec<&str> = Vec::new();
    for script in intervals.iter().flat_map(|interval| &interval.background) {
        if !names.contains(&script.script.as_str()) {
            names.push(&script.script);
        }
    }
    for name in names {
        let rate = |metric, count: fn(&ScriptInterval) -> Option<u64>| {
            let weighed = |interval: &Interval| {
                let seconds = interval.width_us as f64 / 1e6;
                let count = interval.background.iter().find(|script| script.script == name).and_then(count);
                let value = count.filter(|_| seconds > 0.0).map(|count| count as f64 / seconds);
                Weighed { value, weight: seconds }
            };
            track(metric, Some(name), true, intervals.iter().map(weighed).collect())
        };
        tracks.push(rate("beside.transactions", |script| Some(script.transactions)));
        tracks.push(rate("beside.failed", |script| script.failed));
    }
    tracks
}

/// The unit of a metric, per second for a rate.
fn unit(metric: &str, rate: bool) -> String {
    let unit = Unit::from_name(metric).symbol();
    if rate { format!("{unit}/s") } else { unit.to_owned() }
}

#[cfg(test)]
mod tests {
    use model::metrics::Point;

    use super::*;

    fn series(kind: Kind, points: &[(i64, Option<f64>)]) -> Series {
        let points = points.iter().map(|&(at_us, value)| Point { at_us, value }).collect();
        Series { metric: "pg.wal.bytes".to_owned(), label: None, kind, points }
    }

    fn values(track: &Track<'_>) -> Vec<Option<f64>> {
        track.values.iter().map(|weighed| weighed.value).collect()
    }

    #[test]
    fn a_rate_is_growth_by_time() {
        let counter = series(
            Kind::Counter,
            &[(-500_000, Some(100.0)), (500_000, Some(300.0)), (1_000_000, None), (2_500_000, Some(500.0))],
        );
        assert_eq!(
            values(&Track::new(&counter)),
            [None, Some(200.0), None, Some(100.0)],
            "a failed reading is a gap, and the next one has the growth of the whole span"
        );
    }

    #[test]
    fn a_counter_that_was_reset_has_a_gap_there() {
        let counter =
            series(Kind::Counter, &[(0, Some(900.0)), (1_000_000, Some(40.0)), (2_000_000, Some(50.0))]);
        assert_eq!(values(&Track::new(&counter)), [None, None, Some(10.0)]);
    }

    #[test]
    fn the_rate_of_a_long_span_is_the_growth_of_all_of_it() {
        // Two readings close together: large growth, but little of the time.
        let counter = series(
            Kind::Counter,
            &[(0, Some(0.0)), (100_000, Some(100.0)), (1_000_000, Some(190.0)), (2_000_000, Some(290.0))],
        );
        let track = Track::new(&counter);
        let thinned = Envelope::new(&track.values, groups(4, 1));
        assert_eq!(thinned.values, [Some(145.0)]);
        assert_eq!((thinned.low, thinned.high), (Some(vec![Some(100.0)]), Some(vec![Some(1000.0)])));
    }

    #[test]
    fn the_unit_is_the_end_of_the_name() {
        for (metric, rate, expected) in [
            ("pg.wal.bytes", true, "B/s"),
            ("cpu.user_us", true, "µs/s"),
            ("memory.free_bytes", false, "B"),
            ("temperature.celsius", false, "°C"),
            ("cpu.frequency_hz", false, "Hz"),
            ("sched.running", false, ""),
            ("pg.database.commits", true, "/s"),
        ] {
            assert_eq!(unit(metric, rate), expected, "{metric}");
        }
    }
}
