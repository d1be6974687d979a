//! What was read beside a load: metrics, waits, events, statements.

use model::metrics::{Point, Series};
use model::record::{Event, Trial, TrialRecord};
use model::waits::{StatementUse, Waits};

use super::Kind::{Json, Real, Text, Time, Whole};
use super::{Field, Value, field, json, moment};

/// A reading of a metric.
pub(super) struct Reading<'r> {
    trial: &'r Trial,
    series: &'r Series,
    point: &'r Point,
}

pub(super) fn all_readings(record: &TrialRecord) -> impl Iterator<Item = Reading<'_>> {
    record
        .metrics
        .0
        .iter()
        .flat_map(|series| series.points.iter().map(|point| Reading { trial: &record.trial, series, point }))
}

pub(super) fn series<'r>() -> Vec<Field<Reading<'r>>> {
    vec![
        field("trial", Text, "id of the trial", |row| Value::from(row.trial.id.as_str())),
        field("metric", Text, "name of the metric, with its unit at the end (docs/metrics.md)", |row| {
            Value::from(row.series.metric.as_str())
        }),
        field("of", Text, "of what, such as a disk or a table; null where there is but one", |row| {
            Value::from(row.series.label.as_deref())
        }),
        field("kind", Text, "counter (what matters is its growth) or gauge (stands for itself)", |row| {
            Value::from(row.series.kind.as_str())
        }),
        field("time", Time, "when it was read, by the wall clock", |row| moment(row.trial, row.point.at_us)),
        field("at_us", Whole, "when it was read, after the load's start", |row| Value::from(row.point.at_us)),
        field("value", Real, "what was read; null where that failed", |row| Value::from(row.point.value)),
    ]
}

/// What was seen in a second.
pub(super) struct Seen<'r> {
    trial: &'r Trial,
    waits: &'r Waits,
}

pub(super) fn all_waits(record: &TrialRecord) -> impl Iterator<Item = Seen<'_>> {
    record.waits.iter().map(|waits| Seen { trial: &record.trial, waits })
}

pub(super) fn waits<'r>() -> Vec<Field<Seen<'r>>> {
    vec![
        field("trial", Text, "id of the trial", |row| Value::from(row.trial.id.as_str())),
        field("time", Time, "start of the second, by the wall clock", |row| {
            moment(row.trial, row.waits.at_us)
        }),
        field("at_us", Whole, "start of the second, after the load's start", |row| {
            Value::from(row.waits.at_us)
        }),
        field("width_us", Whole, "how long the span is", |row| Value::from(row.waits.width_us)),
        field("session", Text, "who: load, beside, other, or a process of the server", |row| {
            Value::from(row.waits.session.name())
        }),
        field("state", Text, "state of pg_stat_activity; null of the server's processes", |row| {
            Value::from(row.waits.state.as_deref())
        }),
        field(
            "wait_event_type",
            Text,
            "wait_event_type of pg_stat_activity; null where it did not wait",
            |row| Value::from(row.waits.event_type.as_deref()),
        ),
        field("wait_event", Text, "wait_event of pg_stat_activity; null likewise", |row| {
            Value::from(row.waits.event.as_deref())
        }),
        field("looks", Whole, "how often it was looked in this span", |row| Value::from(row.waits.looks)),
        field("seen", Whole, "how many sessions were seen so, over all looks", |row| {
            Value::from(row.waits.seen)
        }),
        field("sessions", Real, "mean number of sessions: seen over looks", |row| {
            Value::from(f64::from(row.waits.seen) / f64::from(row.waits.looks))
        }),
    ]
}

/// An event of a trial.
pub(super) struct Happened<'r> {
    record: &'r TrialRecord,
    event: &'r Event,
}

pub(super) fn all_events(record: &TrialRecord) -> impl Iterator<Item = Happened<'_>> {
    record.events.iter().map(move |event| Happened { record, event })
}

pub(super) fn events<'r>() -> Vec<Field<Happened<'r>>> {
    vec![
        field("trial", Text, "id of the trial", |row| Value::from(row.record.trial.id.as_str())),
        field("time", Time, "when, by the wall clock", |row| Value::from(row.event.at)),
        field("at_us", Whole, "when, after the load's start; null where no load ran", |row| {
            Value::from(row.record.after_start_us(row.event))
        }),
        field("kind", Text, "what kind of thing (docs/events.md)", |row| {
            Value::from(row.event.kind.as_str())
        }),
        field("of", Text, "what it happened to", |row| Value::from(row.event.of.as_deref())),
        field("message", Text, "what happened", |row| Value::from(row.event.message.as_str())),
        field("figures", Json, "its figures by name, with their units at the names' ends", |row| {
            json(&row.event.figures)
        }),
    ]
}

/// A statement of a trial.
pub(super) struct Used<'r> {
    trial: &'r Trial,
    statement: &'r StatementUse,
}

pub(super) fn all_statements(record: &TrialRecord) -> impl Iterator<Item = Used<'_>> {
    record.statements.iter().map(|statement| Used { trial: &record.trial, statement })
}

pub(super) fn statements<'r>() -> Vec<Field<Used<'r>>> {
    vec![
        field("trial", Text, "id of the trial", |row| Value::from(row.trial.id.as_str())),
        field("query_id", Whole, "queryid of pg_stat_statements", |row| Value::from(row.statement.query_id)),
        field("query", Text, "its text, normalised by the server", |row| {
            Value::from(row.statement.query.as_str())
        }),
        field("calls", Whole, "how often it ran", |row| Value::from(row.statement.calls)),
        field("total_us", Real, "time it took to execute, in all", |row| Value::from(row.statement.total_us)),
        field("rows", Whole, "rows it brought or changed", |row| Value::from(row.statement.rows)),
        field("shared_hit_blocks", Whole, "blocks found in shared buffers", |row| {
            Value::from(row.statement.shared_hit_blocks)
        }),
        field("shared_read_blocks", Whole, "blocks read from outside them", |row| {
            Value::from(row.statement.shared_read_blocks)
        }),
        field("shared_dirtied_blocks", Whole, "blocks it made dirty", |row| {
            Value::from(row.statement.shared_dirtied_blocks)
        }),
        field("wal_bytes", Real, "WAL it wrote; null before PostgreSQL 13", |row| {
            Value::from(row.statement.wal_bytes)
        }),
    ]
}
