//! Metrics read during a load: metrics, waits, events, statements.

use model::metrics::{Point, Series};
use model::record::{Event, Trial, TrialRecord};
use model::waits::{StatementUse, Waits};

use super::Kind::{Integer, Json, Real, Text, Time};
use super::{Field, Value, field, json, wall_clock_time};

/// A reading of a metric.
pub(super) struct ReadingRow<'r> {
    trial: &'r Trial,
    series: &'r Series,
    point: &'r Point,
}

pub(super) fn all_readings(record: &TrialRecord) -> impl Iterator<Item = ReadingRow<'_>> {
    record.metrics.0.iter().flat_map(|series| {
        series.points.iter().map(|point| ReadingRow { trial: &record.trial, series, point })
    })
}

pub(super) fn series<'r>() -> Vec<Field<ReadingRow<'r>>> {
    vec![
        field("trial", Text, "id of the trial", |row| Value::from(row.trial.id.as_str())),
        field("metric", Text, "name of the metric, with its unit at the end (docs/metrics.md)", |row| {
            Value::from(row.series.metric.as_str())
        }),
        field("of", Text, "label, such as a disk or a table; null for a metric without labels", |row| {
            Value::from(row.series.label.as_deref())
        }),
        field("kind", Text, "counter (use its growth) or gauge (use its value)", |row| {
            Value::from(row.series.kind.as_str())
        }),
        field("time", Time, "time of the reading, by the wall clock", |row| {
            wall_clock_time(row.trial, row.point.at_us)
        }),
        field("at_us", Integer, "time of the reading, after the load's start", |row| {
            Value::from(row.point.at_us)
        }),
        field("value", Real, "value read; null if the reading failed", |row| Value::from(row.point.value)),
    ]
}

/// An activity of sessions in a second.
pub(super) struct WaitRow<'r> {
    trial: &'r Trial,
    waits: &'r Waits,
}

pub(super) fn all_waits(record: &TrialRecord) -> impl Iterator<Item = WaitRow<'_>> {
    record.waits.iter().map(|waits| WaitRow { trial: &record.trial, waits })
}

pub(super) fn waits<'r>() -> Vec<Field<WaitRow<'r>>> {
    vec![
        field("trial", Text, "id of the trial", |row| Value::from(row.trial.id.as_str())),
        field("time", Time, "start of the second, by the wall clock", |row| {
            wall_clock_time(row.trial, row.waits.at_us)
        }),
        field("at_us", Integer, "start of the second, after the load's start", |row| {
            Value::from(row.waits.at_us)
        }),
        field("width_us", Integer, "length of the span", |row| Value::from(row.waits.width_us)),
        field(
            "session",
            Text,
            "kind of session: load, beside (background workloads), other, or a server process",
            |row| Value::from(row.waits.session.name()),
        ),
        field("state", Text, "state of pg_stat_activity; null for server processes", |row| {
            Value::from(row.waits.state.as_deref())
        }),
        field(
            "wait_event_type",
            Text,
            "wait_event_type of pg_stat_activity, as named by PostgreSQL 18; null if it did not wait",
            |row| Value::from(row.waits.event_type.as_deref()),
        ),
        field("wait_event", Text, "wait_event of pg_stat_activity; null likewise", |row| {
            Value::from(row.waits.event.as_deref())
        }),
        field("looks", Integer, "number of samples in this span", |row| Value::from(row.waits.samples)),
        field("seen", Integer, "number of such sessions, summed over all samples", |row| {
            Value::from(row.waits.seen)
        }),
        field("sessions", Real, "mean number of sessions: seen divided by looks", |row| {
            Value::from(f64::from(row.waits.seen) / f64::from(row.waits.samples))
        }),
    ]
}

/// An event of a trial.
pub(super) struct EventRow<'r> {
    record: &'r TrialRecord,
    event: &'r Event,
}

pub(super) fn all_events(record: &TrialRecord) -> impl Iterator<Item = EventRow<'_>> {
    record.events.iter().map(move |event| EventRow { record, event })
}

pub(super) fn events<'r>() -> Vec<Field<EventRow<'r>>> {
    vec![
        field("trial", Text, "id of the trial", |row| Value::from(row.record.trial.id.as_str())),
        field("time", Time, "time, by the wall clock", |row| Value::from(row.event.at)),
        field("at_us", Integer, "time after the load's start; null if no load ran", |row| {
            Value::from(row.record.after_start_us(row.event))
        }),
        field("kind", Text, "kind of event (docs/events.md)", |row| Value::from(row.event.kind.as_str())),
        field("of", Text, "object that it concerns, such as a table", |row| {
            Value::from(row.event.object.as_deref())
        }),
        field("message", Text, "what happened", |row| Value::from(row.event.message.as_str())),
        field("figures", Json, "figures by name; names end in their units", |row| json(&row.event.figures)),
    ]
}

/// A statement of a trial.
pub(super) struct StatementRow<'r> {
    trial: &'r Trial,
    statement: &'r StatementUse,
}

pub(super) fn all_statements(record: &TrialRecord) -> impl Iterator<Item = StatementRow<'_>> {
    record.statements.iter().map(|statement| StatementRow { trial: &record.trial, statement })
}

pub(super) fn statements<'r>() -> Vec<Field<StatementRow<'r>>> {
    vec![
        field("trial", Text, "id of the trial", |row| Value::from(row.trial.id.as_str())),
        field("query_id", Integer, "queryid of pg_stat_statements", |row| {
            Value::from(row.statement.query_id)
        }),
        field("query", Text, "text of the statement, normalised by the server", |row| {
            Value::from(row.statement.query.as_str())
        }),
        field("calls", Integer, "number of executions", |row| Value::from(row.statement.calls)),
        field("total_us", Real, "total execution time", |row| Value::from(row.statement.total_us)),
        field("rows", Integer, "rows returned or changed", |row| Value::from(row.statement.rows)),
        field("shared_hit_blocks", Integer, "blocks found in shared buffers", |row| {
            Value::from(row.statement.shared_hit_blocks)
        }),
        field("shared_read_blocks", Integer, "blocks read from outside shared buffers", |row| {
            Value::from(row.statement.shared_read_blocks)
        }),
        field("shared_dirtied_blocks", Integer, "blocks dirtied", |row| {
            Value::from(row.statement.shared_dirtied_blocks)
        }),
        field("wal_bytes", Real, "bytes of WAL written; null before PostgreSQL 13", |row| {
            Value::from(row.statement.wal_bytes)
        }),
    ]
}
