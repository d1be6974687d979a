//! One trial in detail, as plain data: the input of the pages about a trial, or about two of them side by side.
//!
//! Times are in microseconds after the load's start, or after the trial's if no load ran. Missing is null, never zero.
//! Figures have five significant digits, times all of theirs. The page's types (`web/src/data/generated/detail.ts`) are
//! generated from these.

pub mod counted;
mod curve;
mod events;
mod heat;
mod load;
mod load_hosts;
mod metrics;
mod points;
mod rerun;
mod statements;
mod waits;

use model::record::TrialRecord;
use serde::Serialize;

pub(crate) use curve::curve;
pub use load_hosts::HostOfLoad;
pub use points::Points;

use crate::explain::{ExplanationView, explain_trial};

/// Version of this schema: increases when a field changes its meaning or is removed.
pub const SCHEMA: u32 = 1;

/// One trial in detail.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Detail {
    /// [`SCHEMA`] of the pgdyno that wrote it.
    pub schema: u32,
    /// The trial's ULID.
    pub id: String,
    /// The cell as text.
    pub cell: String,
    /// The measured window; null if no load ran.
    pub window: Option<Span>,
    /// Command that measures its cell again. Null if it was imported, or if `--set` can't narrow the campaign to the
    /// cell.
    pub rerun: Option<String>,
    /// Throughput, failures and latency over time.
    pub load: Load,
    /// The hosts that the load came from; empty if it came from the campaign's host.
    pub load_hosts: Vec<HostOfLoad>,
    /// Latencies over time; null if there are none.
    pub heat: Option<Heat>,
    /// Latency from the intended start, in the measured window; null if there is none.
    pub intended: Option<Curve>,
    /// Latency from the actual start; null in a closed loop, where it equals the former.
    pub service: Option<Curve>,
    /// Times of metrics, shared by those that were read together.
    pub clocks: Vec<Vec<i64>>,
    /// Metrics read during the load, the driver's own figures first.
    pub metrics: Vec<Metric>,
    /// Number of metrics omitted because all values are zero or null. Always 0 for a document that is not thinned.
    pub left_out: usize,
    /// Events, in order of time.
    pub events: Vec<Event>,
    /// Sampled waits of the sessions; null if there were no samples.
    pub waits: Option<Waits>,
    /// Cost of statements, the most expensive first.
    pub statements: Vec<Statement>,
    /// Where the time goes; null if it can't be explained.
    pub explained: Option<ExplanationView>,
    /// The reason why it can't be explained.
    pub unexplained: Option<String>,
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// Start.
    pub start_us: i64,
    /// End.
    pub end_us: i64,
}

/// Throughput, failures and latency per interval, or per group of intervals of one phase. Lists are equally long.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Load {
    /// Start.
    pub start_us: Vec<i64>,
    /// Length.
    pub width_us: Vec<i64>,
    /// Transactions per second.
    pub tps: Vec<Option<f64>>,
    /// Transactions per second of the slowest interval of each group; null without groups.
    pub tps_low: Option<Vec<Option<f64>>>,
    /// The same for the fastest.
    pub tps_high: Option<Vec<Option<f64>>>,
    /// Failed transactions.
    pub failed: Vec<Option<u64>>,
    /// Median latency.
    pub p50_us: Vec<Option<f64>>,
    /// 95th percentile.
    pub p95_us: Vec<Option<f64>>,
    /// 99th percentile.
    pub p99_us: Vec<Option<f64>>,
    /// Largest latency.
    pub max_us: Vec<Option<f64>>,
}

/// Transactions by latency, over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heat {
    /// Edges of the rows: one more than there are rows, eight per power of ten.
    pub edges_us: Vec<f64>,
    /// Start of each column.
    pub start_us: Vec<i64>,
    /// Length of each column.
    pub width_us: Vec<i64>,
    /// Transactions by column, then by row.
    pub counts: Vec<Vec<u64>>,
}

/// A distribution by its quantiles, as in HdrHistogram's percentile iterator: the closer to 1, the denser.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// Shares of all values, ascending from 0 to 1.
    pub q: Vec<f64>,
    /// For each share, the smallest value that it does not exceed.
    pub us: Vec<f64>,
    /// Number of values.
    pub count: u64,
}

/// A metric with one label.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// Name as in the bundle: `pg.wal.bytes`, `cpu.user_us`.
    pub metric: String,
    /// Label; null if there is only one series.
    pub of: Option<String>,
    /// Its meaning; null if the catalogue does not contain it.
    pub meaning: Option<&'static str>,
    /// Display unit: `B`, `µs`, `Hz`, `°C` or nothing, and per second for rates.
    pub unit: String,
    /// Whether it is a counter's growth per second; else it is a gauge. A rate is at the end of its span, so that the
    /// first one is null; so is one after a reset of the counter.
    pub rate: bool,
    /// Index of its times in [`Detail::clocks`].
    pub clock: usize,
    /// One per time. For a group of readings their mean, which for a rate is weighted by time; null if all of them are.
    pub values: Vec<Option<f64>>,
    /// The smallest reading of each group; null without groups.
    pub low: Option<Vec<Option<f64>>>,
    /// The largest reading of each group.
    pub high: Option<Vec<Option<f64>>>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Start; if only the end is known and not the length, the end.
    pub start_us: i64,
    /// End; null for an event without length.
    pub end_us: Option<i64>,
    /// The lane in which it is drawn.
    pub lane: Lane,
    /// Its kind, as in `docs/events.md`.
    pub kind: String,
    /// Description.
    pub message: String,
    /// Object or session of the event.
    pub of: Option<String>,
}

/// Group of events that are drawn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Checkpoints.
    Checkpoint,
    /// Autovacuum.
    Vacuum,
    /// Errors.
    Error,
    /// Everything else.
    Other,
}

/// Mean number of sessions in each state, over time. The 24 most frequent states are listed individually, those that
/// wait for work last; the others are combined per kind of session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waits {
    /// Start of each span. There is none for times without samples.
    pub start_us: Vec<i64>,
    /// Length of each span.
    pub width_us: Vec<i64>,
    /// The most frequent first.
    pub series: Vec<WaitSeries>,
}

/// One kind of session in one state.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitSeries {
    /// `load`, `beside`, `other`, or a process of the server.
    pub session: String,
    /// `wait_event_type`; `CPU` if active and not waiting; the session's state if not active; `rest` for all states
    /// that are not listed individually.
    #[serde(rename = "type")]
    pub kind: String,
    /// `wait_event`; null if not waiting, or not active.
    pub event: Option<String>,
    /// Mean number of sessions per span.
    pub sessions: Vec<f64>,
}

/// Cost of a statement during the load, from `pg_stat_statements`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Statement {
    /// The text, normalised by the server.
    pub query: String,
    /// Number of executions.
    pub calls: u64,
    /// Total execution time.
    pub total_us: f64,
    /// Rows returned or changed.
    pub rows: u64,
    /// Blocks found in shared buffers.
    pub shared_hit_blocks: u64,
    /// Blocks read from outside them.
    pub shared_read_blocks: u64,
    /// Bytes of WAL; null before PostgreSQL 13.
    pub wal_bytes: Option<f64>,
}

/// A trial in detail, with at most this many points per series.
pub fn detail(record: &TrialRecord, most: Points) -> Detail {
    let latencies = load::read(record, most);
    let metrics = metrics::metrics(record, most);
    let (explained, unexplained) = match explain_trial(record) {
        Ok(explanation) => (Some(ExplanationView::new(&explanation)), None),
        Err(why) => (None, Some(why.to_string())),
    };
    Detail {
        schema: SCHEMA,
        id: record.trial.id.clone(),
        cell: record.trial.cell.to_string(),
        window: load::window(&record.intervals),
        rerun: rerun::rerun(&record.trial),
        load: latencies.load,
        load_hosts: load_hosts::load_hosts(&record.trial.load_hosts),
        heat: latencies.heat,
        intended: latencies.intended,
        service: latencies.service,
        clocks: metrics.clocks,
        metrics: metrics.metrics,
        left_out: metrics.left_out,
        events: events::events(record),
        waits: waits::waits(&record.waits, most),
        statements: statements::statements(&record.statements),
        explained,
        unexplained,
    }
}
