//! One trial in all its detail, as plain data: what the pages about a trial, or about two of them side by side, are drawn
//! from.
//!
//! Times are in microseconds after the load's start, or after the trial's where no load ran. Missing is null, never zero.
//! Figures have five significant digits, times all of theirs. `web/src/data/detail.ts` says the same in TypeScript; the
//! type checker compares the two on the page's test data.

pub mod counted;
mod curve;
mod events;
mod heat;
mod load;
mod metrics;
mod points;
mod rerun;
mod statements;
mod waits;

use model::record::TrialRecord;
use serde::Serialize;

pub use points::Points;

use crate::explain::{ExplanationView, explain_trial};

/// Version of this schema: raised when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// One trial in all its detail.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
pub struct Detail {
    /// [`SCHEMA`] of the pgdyno that wrote it.
    pub schema: u32,
    /// The trial's ULID.
    pub id: String,
    /// Its cell in words.
    pub cell: String,
    /// The measured window; null where no load ran.
    pub window: Option<Span>,
    /// Command that measures its cell again. Null where it was imported, and where the campaign can't be narrowed to the cell
    /// by `--set`.
    pub rerun: Option<String>,
    /// What clients got, over time.
    pub load: Load,
    /// Their latencies over time; null where there are none.
    pub heat: Option<Heat>,
    /// Latency from the intended start, of the measured window; null where there is none.
    pub intended: Option<Curve>,
    /// Latency from the start as it was; null in a closed loop, where it is no other.
    pub service: Option<Curve>,
    /// Times at which metrics are given, shared by those that were read together.
    pub clocks: Vec<Vec<i64>>,
    /// Metrics read during the load, the driver's own figures first.
    pub metrics: Vec<Metric>,
    /// How many metrics are not here, for they were nothing but zero or null. Always 0 of a document that is not thinned.
    pub left_out: usize,
    /// What happened, in order of time.
    pub events: Vec<Event>,
    /// What sessions were seen doing; null where they were not looked at.
    pub waits: Option<Waits>,
    /// What statements cost, the most expensive first.
    pub statements: Vec<Statement>,
    /// Where the time goes; null where it can't be said.
    pub explained: Option<ExplanationView>,
    /// Why it can't be said.
    pub unexplained: Option<String>,
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
pub struct Span {
    /// Its start.
    pub start_us: i64,
    /// Its end.
    pub end_us: i64,
}

/// What clients got in each interval, or in several of them together; all lists are equally long. None is of two phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
pub struct Load {
    /// Start.
    pub start_us: Vec<i64>,
    /// Length.
    pub width_us: Vec<i64>,
    /// Transactions per second.
    pub tps: Vec<Option<f64>>,
    /// Transactions per second of the slowest of the intervals that are together; null where each stands alone.
    pub tps_low: Option<Vec<Option<f64>>>,
    /// The same of the fastest.
    pub tps_high: Option<Vec<Option<f64>>>,
    /// Transactions that failed.
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

/// How many transactions took how long, over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
pub struct Heat {
    /// Between two neighbours lies a row: one more than there are rows, eight to a power of ten.
    pub edges_us: Vec<f64>,
    /// Start of each column.
    pub start_us: Vec<i64>,
    /// Its length.
    pub width_us: Vec<i64>,
    /// Transactions by column, then by row.
    pub counts: Vec<Vec<u64>>,
}

/// A distribution by its quantiles, as HdrHistogram's percentile iterator takes them: the closer to 1, the denser.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
pub struct Curve {
    /// Shares of all values, ascending from 0 to 1.
    pub q: Vec<f64>,
    /// For each, the smallest value that this share does not exceed.
    pub us: Vec<f64>,
    /// How many values there are.
    pub count: u64,
}

/// One metric of one subject.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
pub struct Metric {
    /// As in the bundle: `pg.wal.bytes`, `cpu.user_us`.
    pub metric: String,
    /// Of what; null where there is but one.
    pub of: Option<String>,
    /// Its meaning; null if the catalogue does not have it.
    pub meaning: Option<&'static str>,
    /// What it is shown in: `B`, `µs`, `Hz`, `°C` or nothing, of rates by second.
    pub unit: String,
    /// Whether it is a counter's growth per second; else it is a gauge. A rate is given where its span ends, so that the first
    /// is null; it is null too where the counter was reset.
    pub rate: bool,
    /// Its times: a place in [`Detail::clocks`].
    pub clock: usize,
    /// One for each time. Of several readings together their mean, and a rate's is the growth by time of all; null where all
    /// of them are.
    pub values: Vec<Option<f64>>,
    /// The smallest of the readings that are together; null where each stands alone.
    pub low: Option<Vec<Option<f64>>>,
    /// The largest.
    pub high: Option<Vec<Option<f64>>>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
pub struct Event {
    /// When it began; where only its end is known and not its length, its end.
    pub start_us: i64,
    /// When it ended; null of what has no length.
    pub end_us: Option<i64>,
    /// Where it is drawn.
    pub lane: Lane,
    /// Its kind, as `docs/events.md` has it.
    pub kind: String,
    /// In words.
    pub message: String,
    /// What it happened to.
    pub of: Option<String>,
}

/// Events that are drawn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Checkpoints.
    Checkpoint,
    /// Autovacuum.
    Vacuum,
    /// What must not happen.
    Error,
    /// Everything else.
    Other,
}

/// Mean number of sessions in each state of waiting, over time. The 24 most frequent are told one by one, those that wait for
/// work after the others; of each kind of session, the rest is one more.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
pub struct Waits {
    /// Start of each span. Where no look succeeded there is none.
    pub start_us: Vec<i64>,
    /// Its length.
    pub width_us: Vec<i64>,
    /// The most frequent first.
    pub series: Vec<WaitSeries>,
}

/// One kind of session in one state of waiting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
pub struct WaitSeries {
    /// `load`, `beside`, `other`, or a process of the server.
    pub session: String,
    /// `wait_event_type`; `CPU` where it was active and did not wait; the state where it was not active; `rest` of all that are
    /// not told one by one.
    #[serde(rename = "type")]
    pub kind: String,
    /// `wait_event`; null where it did not wait, or was not active.
    pub event: Option<String>,
    /// One for each span.
    pub sessions: Vec<f64>,
}

/// What one statement cost during the load, as `pg_stat_statements` has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
pub struct Statement {
    /// The text, normalised by the server.
    pub query: String,
    /// How often it ran.
    pub calls: u64,
    /// Time it took to execute, in all.
    pub total_us: f64,
    /// Rows it brought or changed.
    pub rows: u64,
    /// Blocks found in shared buffers.
    pub shared_hit_blocks: u64,
    /// Blocks read from outside them.
    pub shared_read_blocks: u64,
    /// Bytes of WAL; null before PostgreSQL 13.
    pub wal_bytes: Option<f64>,
}

/// A trial in all its detail, with at most so many points in a series.
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
