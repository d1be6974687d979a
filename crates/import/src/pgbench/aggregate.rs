//! Logs of intervals (`--aggregate-interval`): `start transactions sum_latency sum_latency_2 min_latency max_latency`,
//! followed by those of the lag, of skipped, retried and failed transactions, if the major has them.
//!
//! Up to 14 there are 6 fields, 10 with a rate, 11 with a latency limit as well; from 15 always 15 or more, where those
//! that do not apply are 0. Times are in microseconds. From sums and extremes, a mean and a standard deviation can be
//! derived, but no percentiles.

use std::collections::BTreeMap;

use model::message::ScriptInterval;
use model::metrics::{Kind, Metrics, Point, Series};
use model::record::Latency;

use super::{series, timestamp};
use crate::error::PgbenchError;
use crate::import::Draft;

/// The intervals of all threads, by start.
#[derive(Debug, Default)]
pub(super) struct Aggregated {
    /// By second of the Unix epoch.
    intervals: BTreeMap<i64, Sums>,
}

/// A line of the log.
#[derive(Debug)]
pub(super) struct Line {
    start_s: i64,
    sums: Sums,
}

#[derive(Clone, Debug)]
struct Sums {
    count: u64,
    sum_us: f64,
    squares: f64,
    min_us: f64,
    max_us: f64,
    /// None if not logged: majors before 15, and later ones without `--failures-detailed`, do not log them.
    failed: Option<u64>,
}

/// A smaller first number is not a time but a client's number.
const MIN_START_S: i64 = 1_000_000_000;
/// As in transactions' logs.
const MAX_LENGTH_S: i64 = 1_000_000;

impl Line {
    /// Parses the fields of a line; none if it is not of an interval.
    pub(super) fn parse(fields: &[&str]) -> Option<Self> {
        if !matches!(fields.len(), 6 | 10 | 11 | 13 | 15..) {
            return None;
        }
        let start_s = fields[0].parse().ok().filter(|start| (MIN_START_S..1 << 40).contains(start))?;
        let figure = |at: usize| {
            let figure = fields.get(at)?.parse::<f64>().ok()?;
            (figure.is_finite() && figure >= 0.0).then_some(figure)
        };
        let failed = match fields.len() {
            15.. => Some(fields[13..].iter().map(|count| count.parse().ok()).collect::<Option<Vec<u64>>>()?),
            _ => None,
        };
        let sums = Sums {
            count: fields[1].parse().ok()?,
            sum_us: figure(2)?,
            squares: figure(3)?,
            min_us: figure(4)?,
            max_us: figure(5)?,
            failed: failed
                .map(|counts| counts.into_iter().fold(0, u64::saturating_add))
                .filter(|count| *count > 0),
        };
        Some(Self { start_s, sums })
    }
}

impl Sums {
    fn merge(&mut self, other: &Self) {
        // Without transactions, the extremes are 0.
        let extreme = |a: f64, b: f64, which: fn(f64, f64) -> f64| match (self.count, other.count) {
            (0, _) => b,
            (_, 0) => a,
            _ => which(a, b),
        };
        self.min_us = extreme(self.min_us, other.min_us, f64::min);
        self.max_us = extreme(self.max_us, other.max_us, f64::max);
        self.count = self.count.saturating_add(other.count);
        self.sum_us += other.sum_us;
        self.squares += other.squares;
        self.failed = match (self.failed, other.failed) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
    }

    fn latency(&self) -> Option<Latency> {
        let n = self.count as f64;
        let mean_us = self.sum_us / n;
        // Rounding may make it slightly negative.
        let variance = (self.squares / n - mean_us * mean_us).max(0.0);
        (self.count > 0 && mean_us.is_finite() && variance.is_finite()).then(|| Latency {
            mean_us: Some(mean_us),
            stddev_us: Some(variance.sqrt()),
            min_us: Some(self.min_us),
            max_us: Some(self.max_us),
            ..Latency::default()
        })
    }
}

impl Aggregated {
    pub(super) fn add(&mut self, line: Line) {
        self.intervals.entry(line.start_s).and_modify(|sums| sums.merge(&line.sums)).or_insert(line.sums);
    }

    /// Length of an interval in seconds: the shortest time between two; none if there is only one.
    fn width_s(&self) -> Option<i64> {
        let starts: Vec<i64> = self.intervals.keys().copied().collect();
        starts.windows(2).map(|two| two[1] - two[0]).min()
    }

    /// Transactions and length of all intervals except the last, which the end of the run cut short.
    pub(super) fn count_and_span(&self) -> Option<(u64, u64)> {
        self.width_s()?;
        let (first, last) = (self.intervals.keys().next()?, self.intervals.keys().next_back()?);
        let whole = self.intervals.range(..last).map(|(_, sums)| sums.count);
        let count = whole.fold(0, u64::saturating_add);
        Some((count, (last - first).unsigned_abs() * 1_000_000))
    }

    /// Adds series to a draft, and the latency figures that sums provide.
    pub(super) fn add_to(&self, script: &str, draft: &mut Draft) -> Result<(), PgbenchError> {
        let mut intervals = self.intervals.iter();
        let Some((&first_s, first)) = intervals.next() else { return Ok(()) };
        let mut all = first.clone();
        intervals.for_each(|(_, sums)| all.merge(sums));
        draft.summary.latency = all.latency().or(draft.summary.latency.take());
        draft.summary.failed = draft.summary.failed.or(all.failed);
        draft.load_started = timestamp(first_s * 1_000_000);
        draft.started = draft.load_started;
        let Some(width_s) = self.width_s() else {
            draft.notes.push("the log has one interval, of unknown length: there is no series".to_owned());
            return Ok(());
        };
        let last_s = self.intervals.keys().next_back().copied().unwrap_or(first_s);
        if last_s - first_s > MAX_LENGTH_S {
            return Err(PgbenchError::TooLong { what: "intervals", seconds: last_s - first_s });
        }
        let mut gauges =
            [("mean", Vec::new()), ("stddev", Vec::new()), ("min", Vec::new()), ("max", Vec::new())];
        for (start_s, sums) in self.intervals.range(..last_s) {
            let start_us = (start_s - first_s).unsigned_abs() * 1_000_000;
            let width_us = width_s.unsigned_abs() * 1_000_000;
            let mut interval = series::interval(start_us, width_us);
            interval.scripts.push(ScriptInterval {
                script: script.to_owned(),
                transactions: sums.count,
                failed: sums.failed,
                unfinished: None,
                latencies: Vec::new(),
            });
            draft.intervals.push(interval);
            let latency = sums.latency().unwrap_or_default();
            let figures = [latency.mean_us, latency.stddev_us, latency.min_us, latency.max_us];
            for ((_, points), value) in gauges.iter_mut().zip(figures) {
                points.push(Point { at_us: (start_us + width_us) as i64, value });
            }
        }
        let gauge = |(figure, points)| Series {
            metric: format!("pgbench.latency_{figure}_us"),
            label: None,
            kind: Kind::Gauge,
            points,
        };
        draft.metrics = Metrics(gauges.into_iter().map(gauge).collect());
        draft.notes.push(
            "the log has sums of intervals: there are no percentiles; the last interval, which the end of the run cut \
             short, is in the latency and not in the series"
                .to_owned(),
        );
        Ok(())
    }
}
