//! The load second by second, and each of its scripts.

use model::message::{Interval, Phase, ScriptInterval};
use model::record::{Trial, TrialRecord};
use store::hlog;

use super::Kind::{Integer, Real, Text, Time};
use super::{Field, Value, field, wall_clock_time};
use analysis::trial::counted::{Counted, Quantiles};

/// Latencies of an interval, in microseconds.
#[derive(Default)]
struct Latencies {
    mean: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
}

impl Latencies {
    /// Figures of values in nanoseconds, each with its count.
    fn new(values_ns: Option<Vec<(u64, u64)>>) -> Self {
        let mut counted = Counted::default();
        counted.add(&values_ns.unwrap_or_default());
        let sorted = counted.sorted();
        let mut quantiles = Quantiles::new(sorted);
        let count = quantiles.count();
        if count == 0 {
            return Self::default();
        }
        let sum: f64 = sorted.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
        let mut next = |share| quantiles.next(share).map(|(value_ns, _)| value_ns as f64 / 1e3);
        Self {
            mean: Some(sum / count as f64 / 1e3),
            p50: next(0.5),
            p90: next(0.9),
            p95: next(0.95),
            p99: next(0.99),
            p999: next(0.999),
            max: next(1.0),
        }
    }
}

/// An interval of a load.
pub(super) struct IntervalRow<'r> {
    trial: &'r Trial,
    interval: &'r Interval,
    latencies: Latencies,
}

pub(super) fn all_intervals(record: &TrialRecord) -> impl Iterator<Item = IntervalRow<'_>> {
    record.intervals.iter().map(|interval| IntervalRow {
        trial: &record.trial,
        interval,
        latencies: Latencies::new(hlog::latencies(interval)),
    })
}

/// Columns of the interval: trial, time and phase.
macro_rules! interval_columns {
    ($row:ty) => {
        [
            field("trial", Text, "id of the trial", |row: &$row| Value::from(row.trial.id.as_str())),
            field("time", Time, "start of the interval, by the wall clock", |row: &$row| {
                wall_clock_time(row.trial, i64::try_from(row.interval.start_us).unwrap_or(i64::MAX))
            }),
            field("start_us", Integer, "start of the interval, after the load's start", |row: &$row| {
                Value::from(row.interval.start_us)
            }),
            field(
                "width_us",
                Integer,
                "length of the interval; the last one of a phase may be shorter",
                |row: &$row| Value::from(row.interval.width_us),
            ),
            field("phase", Text, "warmup, measure or drain", |row: &$row| {
                Value::from(phase(row.interval.phase))
            }),
        ]
    };
}

/// The columns of latencies.
macro_rules! latency_columns {
    ($row:ty) => {
        [
            field("latency_mean_us", Real, "mean latency from the intended start", |row: &$row| {
                Value::from(row.latencies.mean)
            }),
            field("latency_p50_us", Real, "median latency", |row: &$row| Value::from(row.latencies.p50)),
            field("latency_p90_us", Real, "90th percentile of latency", |row: &$row| {
                Value::from(row.latencies.p90)
            }),
            field("latency_p95_us", Real, "95th percentile of latency", |row: &$row| {
                Value::from(row.latencies.p95)
            }),
            field("latency_p99_us", Real, "99th percentile of latency", |row: &$row| {
                Value::from(row.latencies.p99)
            }),
            field("latency_p999_us", Real, "99.9th percentile of latency", |row: &$row| {
                Value::from(row.latencies.p999)
            }),
            field("latency_max_us", Real, "largest latency", |row: &$row| Value::from(row.latencies.max)),
        ]
    };
}

pub(super) fn intervals<'r>() -> Vec<Field<IntervalRow<'r>>> {
    let mut fields: Vec<Field<IntervalRow<'r>>> = Vec::from(interval_columns!(IntervalRow<'r>));
    fields.extend([
        field(
            "transactions",
            Integer,
            "successful transactions that ended in it",
            |row: &IntervalRow<'r>| Value::from(row.transactions()),
        ),
        field("failed", Integer, "transactions that failed", |row: &IntervalRow<'r>| {
            Value::from(row.failed())
        }),
        field("tps", Real, "transactions per second", |row: &IntervalRow<'r>| {
            Value::from(row.transactions().map(|count| per_second(count, row.interval)))
        }),
    ]);
    fields.extend(latency_columns!(IntervalRow<'r>));
    fields.extend([
        field(
            "driver_busy_share",
            Real,
            "share of it in which the busiest driver thread worked, also in the kernel, 0 to 1",
            |row: &IntervalRow<'r>| Value::from(row.interval.busy),
        ),
        field("driver_lag_mean_us", Real, "mean driver lag", |row: &IntervalRow<'r>| {
            Value::from(row.interval.lag_mean_us)
        }),
        field("driver_lag_max_us", Real, "largest driver lag", |row: &IntervalRow<'r>| {
            Value::from(row.interval.lag_max_us)
        }),
    ]);
    fields
}

impl IntervalRow<'_> {
    fn transactions(&self) -> Option<u64> {
        let scripts = &self.interval.scripts;
        (!scripts.is_empty()).then(|| scripts.iter().map(|script| script.transactions).sum())
    }

    fn failed(&self) -> Option<u64> {
        let scripts = &self.interval.scripts;
        scripts.first()?;
        scripts.iter().map(|script| script.failed).sum()
    }
}

/// A script in an interval.
pub(super) struct ScriptRow<'r> {
    trial: &'r Trial,
    interval: &'r Interval,
    is_background: bool,
    script: &'r ScriptInterval,
    latencies: Latencies,
}

pub(super) fn all_scripts(record: &TrialRecord) -> impl Iterator<Item = ScriptRow<'_>> {
    record.intervals.iter().flat_map(|interval| {
        let own = interval.scripts.iter().map(|script| (script, false));
        let all = own.chain(interval.background.iter().map(|script| (script, true)));
        all.map(|(script, is_background)| ScriptRow {
            trial: &record.trial,
            interval,
            is_background,
            script,
            latencies: Latencies::new(hlog::script_latencies(script)),
        })
    })
}

pub(super) fn scripts<'r>() -> Vec<Field<ScriptRow<'r>>> {
    let mut fields: Vec<Field<ScriptRow<'r>>> = Vec::from(interval_columns!(ScriptRow<'r>));
    fields.extend([
        field("session", Text, "load, or beside for a background workload", |row: &ScriptRow<'r>| {
            Value::from(if row.is_background { "beside" } else { "load" })
        }),
        field("script", Text, "name of the script", |row: &ScriptRow<'r>| {
            Value::from(row.script.script.as_str())
        }),
        field("transactions", Integer, "successful transactions that ended in it", |row: &ScriptRow<'r>| {
            Value::from(row.script.transactions)
        }),
        field("failed", Integer, "transactions that failed", |row: &ScriptRow<'r>| {
            Value::from(row.script.failed)
        }),
        field("tps", Real, "transactions per second", |row: &ScriptRow<'r>| {
            Value::from(per_second(row.script.transactions, row.interval))
        }),
    ]);
    fields.extend(latency_columns!(ScriptRow<'r>));
    fields
}

fn per_second(count: u64, interval: &Interval) -> f64 {
    count as f64 / interval.width_us as f64 * 1e6
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measure => "measure",
        Phase::Drain => "drain",
    }
}
