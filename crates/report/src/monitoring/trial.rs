//! A stored trial: its load at the end of each interval, the readings of collectors at their times.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use model::factor::Factor;
use model::message::Interval;
use model::record::TrialRecord;
use store::{Totals, hlog};

use super::family::{Family, RUN, SESSIONS, TRIAL};
use super::load::load_values;
use super::point::{Metrics, Point, Stream, Value};
use crate::export_tables::{self, Table};

/// The metrics of a trial; none if no load ran.
pub(super) fn metrics(record: &TrialRecord) -> Metrics<'_> {
    let mut metrics = Metrics::default();
    if let Some(start) = record.trial.load_started {
        let clock = Clock { start_us: start.as_microsecond() };
        add_info(record, &clock, &mut metrics);
        add_totals(record, &clock, &mut metrics);
        add_intervals(record, &clock, &mut metrics);
        add_sessions(record, &clock, &mut metrics);
        add_series(record, &clock, &mut metrics);
    }
    metrics
}

/// The levels of a trial's factors that are known.
pub(super) fn levels(record: &TrialRecord) -> impl Iterator<Item = (&'static str, String)> {
    let cell = &record.trial.cell;
    Factor::ALL.into_iter().filter_map(|factor| Some((factor.name(), factor.known_level(cell)?)))
}

/// The wall clock of a load.
struct Clock {
    start_us: i64,
}

impl Clock {
    /// Microseconds after the Unix epoch of a time after the load's start.
    fn at(&self, after_start_us: i64) -> i64 {
        self.start_us.saturating_add(after_start_us)
    }

    fn end(&self, interval: &Interval) -> i64 {
        let end_us = interval.start_us.saturating_add(interval.width_us);
        self.at(i64::try_from(end_us).unwrap_or(i64::MAX))
    }
}

fn add_info<'r>(record: &'r TrialRecord, clock: &Clock, metrics: &mut Metrics<'r>) {
    let trial = &record.trial;
    let run = vec![
        ("campaign", trial.run.campaign.as_str().into()),
        ("version", trial.run.pgdyno_version.as_str().into()),
    ];
    let mut labels: Vec<(&str, Cow<'_, str>)> = vec![
        ("cell", trial.cell.to_string().into()),
        ("position", trial.position.to_string().into()),
        ("repeat", trial.repeat.to_string().into()),
        ("attempt", trial.attempt.to_string().into()),
        ("validity", trial.validity.status.as_str().into()),
    ];
    labels.extend(levels(record).map(|(name, level)| (name, level.into())));
    let times = || record.intervals.iter().map(|interval| clock.end(interval));
    let points = || times().map(|at_us| Point { at_us: Some(at_us), value: Value::Number(1.0) }).collect();
    metrics.add(&RUN, Stream { labels: run, points: points() });
    metrics.add(&TRIAL, Stream { labels, points: points() });
}

fn add_totals(record: &TrialRecord, clock: &Clock, metrics: &mut Metrics<'_>) {
    let mut totals = Totals::default();
    for interval in &record.intervals {
        let before = totals.clone();
        totals.add(interval, &hlog::latencies_by_phase(interval).unwrap_or_default());
        // A phase that is over does not change.
        let changed = totals.0.iter().filter(|of| of.phase == interval.phase || !before.0.contains(of));
        let changed = Totals(changed.cloned().collect());
        load_values(&changed, Some(clock.end(interval)), &mut |family, stream| metrics.add(family, stream));
    }
}

/// The figures of the intervals table, as far as they are no counts: [`add_totals`] has these.
fn add_intervals(record: &TrialRecord, clock: &Clock, metrics: &mut Metrics<'_>) {
    let columns = Table::Intervals.columns();
    let figures: Vec<(usize, Family)> = (0..)
        .zip(&columns)
        .filter(|(_, column)| column.kind == export_tables::Kind::Real)
        .map(|(at, column)| (at, Family::of_interval(column)))
        .collect();
    let mut ends = record.intervals.iter().map(|interval| clock.end(interval));
    let Ok(()) = Table::Intervals.rows_of_trial::<Infallible>(record, &mut |row| {
        let at_us = ends.next();
        for (at, family) in &figures {
            if let Some(export_tables::Value::Real(value)) = row.get(*at) {
                let points = vec![Point { at_us, value: Value::Number(*value) }];
                metrics.add(family, Stream { labels: Vec::new(), points });
            }
        }
        Ok(())
    });
}

/// Sessions by what they did. A state in which there were none in a sampled second is 0 there: a metric without a value
/// would seem to keep the last one.
fn add_sessions<'r>(record: &'r TrialRecord, clock: &Clock, metrics: &mut Metrics<'r>) {
    let mut states: BTreeMap<[&str; 3], BTreeMap<i64, f64>> = BTreeMap::new();
    let mut seconds = BTreeSet::new();
    for waits in &record.waits {
        let (kind, event) = waits.activity();
        let names = [waits.session.name(), kind, event.unwrap_or_default()];
        let end_us = waits.at_us.saturating_add_unsigned(waits.width_us);
        seconds.insert(end_us);
        let sessions = f64::from(waits.seen) / f64::from(waits.samples.max(1));
        *states.entry(names).or_default().entry(end_us).or_default() += sessions;
    }
    for (names, counts) in states {
        let labels = SESSIONS.labels.iter().copied().zip(names.map(Cow::Borrowed)).collect();
        let point = |end_us: &i64| {
            let sessions = counts.get(end_us).copied().unwrap_or(0.0);
            Point { at_us: Some(clock.at(*end_us)), value: Value::Number(sessions) }
        };
        metrics.add(&SESSIONS, Stream { labels, points: seconds.iter().map(point).collect() });
    }
}

fn add_series<'r>(record: &'r TrialRecord, clock: &Clock, metrics: &mut Metrics<'r>) {
    for series in &record.metrics.0 {
        let labels = series.label.iter().map(|label| ("of", label.as_str().into())).collect();
        let known = series.points.iter().filter_map(|point| Some((point.at_us, point.value?)));
        let points =
            known.map(|(at_us, value)| Point { at_us: Some(clock.at(at_us)), value: Value::Number(value) });
        metrics.add(&Family::of_series(series), Stream { labels, points: points.collect() });
    }
}
