//! The results of a load, with units in their names: the figures of its report.

use driver::{ErrorRecord, Intended, Load, Moments, Record, ScriptRecord};
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::measure::{self, Measurement};
use crate::omission::{self, Stall};

/// The figures of a load.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    /// Actual length of the measured window.
    pub(crate) window_us: f64,
    pub(crate) totals: Totals,
    pub(crate) clients_aborted: u32,
    /// Messages of the first clients that were aborted.
    pub(crate) aborts: Vec<String>,
    pub(crate) connecting: Connecting,
    pub(crate) driver: Driver,
    pub(crate) before_window: u64,
    pub(crate) after_window: AfterWindow,
    pub(crate) scripts: Vec<Script>,
}

/// All scripts together, in the window.
#[derive(Debug, Serialize)]
pub(crate) struct Totals {
    pub(crate) tps: f64,
    /// Successful transactions.
    pub(crate) transactions: u64,
    pub(crate) failed: u64,
    pub(crate) retried: u64,
    pub(crate) retries: u64,
    pub(crate) skipped: u64,
    pub(crate) late: u64,
    /// Arrivals of an open loop that never started; null in a closed loop.
    pub(crate) never_begun: Option<u64>,
    /// Transactions that were due in the window of an open loop and did not end; their latencies are minimums. Null in a
    /// closed loop.
    pub(crate) unfinished: Option<u64>,
    pub(crate) rows: u64,
    pub(crate) rows_per_s: f64,
    pub(crate) received_bytes: u64,
    pub(crate) received_bytes_per_s: f64,
    /// From the intended start.
    pub(crate) latency: Option<Latency>,
    /// From the actual start; null in a closed loop, where that is the same.
    pub(crate) service: Option<Latency>,
    /// Corrected for coordinated omission; null without a stall, and in an open loop, which needs no correction.
    pub(crate) corrected: Option<Latency>,
    pub(crate) errors: Vec<Error>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) count: u64,
    pub(crate) min_us: f64,
    pub(crate) mean_us: f64,
    pub(crate) stddev_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p95_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) p9999_us: f64,
    pub(crate) max_us: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Error {
    /// Null if the error is not the server's.
    pub(crate) sqlstate: Option<String>,
    /// The message of one of them.
    pub(crate) text: String,
    pub(crate) failed: u64,
    pub(crate) retries: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Connecting {
    /// Time until all clients were connected, before the load.
    pub(crate) took_us: f64,
    /// Connections opened in the window.
    pub(crate) in_window: u64,
    pub(crate) in_window_mean_us: Option<f64>,
    pub(crate) in_window_max_us: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Driver {
    pub(crate) engine: &'static str,
    /// Reason why io_uring could not be used.
    pub(crate) engine_reason: Option<String>,
    pub(crate) busy_share: f64,
    pub(crate) busy_share_max: f64,
    /// Readable → handled.
    pub(crate) lag_mean_us: Option<f64>,
    pub(crate) lag_max_us: Option<f64>,
    /// Due → sent; null in a closed loop.
    pub(crate) send_lag_mean_us: Option<f64>,
    pub(crate) send_lag_max_us: Option<f64>,
    pub(crate) cpu_us: u64,
    pub(crate) cpu_us_per_transaction: Option<f64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) memory_bytes_per_client: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct AfterWindow {
    /// In flight at the window's end.
    pub(crate) transactions: u64,
    pub(crate) max_us: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) weight: u64,
    pub(crate) tps: f64,
    pub(crate) transactions: u64,
    pub(crate) failed: u64,
    pub(crate) retried: u64,
    pub(crate) retries: u64,
    pub(crate) skipped: u64,
    pub(crate) late: u64,
    pub(crate) rows: u64,
    pub(crate) latency: Option<Latency>,
    pub(crate) service: Option<Latency>,
    pub(crate) errors: Vec<Error>,
    /// Empty without --per-statement.
    pub(crate) statements: Vec<Statement>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Statement {
    pub(crate) line: u32,
    pub(crate) text: String,
    pub(crate) latency: Option<Latency>,
    pub(crate) failures: u64,
    pub(crate) retries: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Interval {
    /// After the load's start, warm-up included.
    start_us: f64,
    width_us: f64,
    tps: f64,
    transactions: u64,
    failed: u64,
    skipped: u64,
    late: u64,
    retries: u64,
    mean_us: Option<f64>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    max_us: Option<f64>,
    service_p99_us: Option<f64>,
    rows_per_s: f64,
    received_bytes_per_s: f64,
    busy_share: f64,
    lag_mean_us: Option<f64>,
    lag_max_us: f64,
}

impl Results {
    /// The figures of a measured load; `stall` is the reason to correct latencies.
    pub(crate) fn new(load: &Load, measurement: &Measurement, stall: Option<&Stall>) -> Self {
        let window_ns = measurement.outcome.window_ns;
        Self {
            window_us: window_ns as f64 / 1e3,
            totals: Totals::new(load, measurement, stall),
            clients_aborted: measurement.outcome.aborted,
            aborts: measurement.aborts.clone(),
            connecting: Connecting::new(measurement),
            driver: Driver::new(load, measurement),
            before_window: measurement.in_warmup,
            after_window: AfterWindow {
                transactions: measurement.drain.transactions,
                max_us: (measurement.drain.transactions > 0).then_some(measurement.drain.max_ns as f64 / 1e3),
            },
            scripts: match &measurement.window {
                Some(window) => scripts(load, window, &measurement.outcome.intended, window_ns),
                None => Vec::new(),
            },
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.totals.never_begun.is_some()
    }
}

fn per_second(count: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * 1e9 / ns as f64 }
}

impl Totals {
    fn new(load: &Load, measurement: &Measurement, stall: Option<&Stall>) -> Self {
        let window_ns = measurement.outcome.window_ns;
        let sum = measurement.window.as_ref().and_then(Record::ended);
        let count = |figure: fn(&ScriptRecord) -> u64| sum.as_ref().map_or(0, figure);
        let (rows, bytes) = (count(|s| s.rows), measurement.window.as_ref().map_or(0, |window| window.bytes));
        let transactions = count(|s| s.moments.count);
        let corrected = sum.as_ref().filter(|_| stall.is_some()).and_then(|sum| {
            let ended = transactions + sum.failures.sum();
            Latency::new(&omission::corrected(&sum.latency, ended, load.clients(), window_ns), None)
        });
        let intended = Intended::sum(&measurement.outcome.intended);
        Self {
            tps: per_second(transactions, window_ns),
            transactions,
            failed: count(|s| s.failures.sum()),
            retried: count(|s| s.retried),
            retries: count(|s| s.retries),
            skipped: count(|s| s.skipped),
            late: count(|s| s.late),
            never_begun: load.main.arrivals.is_open().then_some(measurement.outcome.missed),
            unfinished: intended.as_ref().map(|intended| intended.unfinished),
            rows,
            rows_per_s: per_second(rows, window_ns),
            received_bytes: bytes,
            received_bytes_per_s: per_second(bytes, window_ns),
            latency: match &intended {
                Some(intended) => Latency::new(&intended.latency, Some(&intended.moments)),
                None => sum.as_ref().and_then(|sum| Latency::new(&sum.latency, Some(&sum.moments))),
            },
            service: intended.as_ref().and_then(|intended| Latency::new(&intended.service, None)),
            corrected,
            errors: sum.as_ref().map_or_else(Vec::new, |sum| errors(&sum.errors)),
        }
    }
}

fn errors(records: &[ErrorRecord]) -> Vec<Error> {
    let mut errors: Vec<Error> = records
        .iter()
        .map(|error| Error {
            sqlstate: Some(error.sqlstate.clone()).filter(|state| !state.is_empty()),
            text: error.text.trim_end().to_owned(),
            failed: error.failed,
            retries: error.retries,
        })
        .collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.failed + error.retries));
    errors
}

impl Latency {
    /// The figures of a histogram; `exact` has mean, deviation and extremes if they are known exactly.
    fn new(histogram: &Histogram<u64>, exact: Option<&Moments>) -> Option<Self> {
        if histogram.is_empty() {
            return None;
        }
        let from_histogram =
            || (histogram.min() as f64, histogram.mean(), histogram.stdev(), histogram.max() as f64);
        let (min, mean, stddev, max) =
            exact.map_or_else(from_histogram, |m| (m.min as f64, m.mean, m.stddev(), m.max as f64));
        // A bucket's upper end may be above the largest value in it.
        let quantile = |q| (histogram.value_at_quantile(q) as f64).min(max) / 1e3;
        Some(Self {
            count: histogram.len(),
            min_us: min / 1e3,
            mean_us: mean / 1e3,
            stddev_us: stddev / 1e3,
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            p9999_us: quantile(0.9999),
            max_us: max / 1e3,
        })
    }
}

impl Connecting {
    fn new(measurement: &Measurement) -> Self {
        let connects = measurement.window.as_ref().map(|window| window.connects).filter(|c| c.count > 0);
        Self {
            took_us: measurement.connecting.as_nanos() as f64 / 1e3,
            in_window: connects.map_or(0, |connects| connects.count),
            in_window_mean_us: connects.map(|connects| connects.mean / 1e3),
            in_window_max_us: connects.map(|connects| connects.max as f64 / 1e3),
        }
    }
}

impl Driver {
    fn new(load: &Load, measurement: &Measurement) -> Self {
        let lag = measurement.window.as_ref().map(|window| window.lag).filter(|lag| lag.count > 0);
        let send_lag = measurement.window.as_ref().map(|window| window.send_lag).filter(|lag| lag.count > 0);
        let us = |ns: u64| ns as f64 / 1e3;
        // CPU time is the whole load's, warm-up and end included.
        let in_window: u64 =
            measurement.intervals.iter().map(|interval| interval.transactions + interval.failed).sum();
        let all = in_window + measurement.in_warmup + measurement.drain.transactions;
        Self {
            engine: measurement.outcome.engine.name,
            engine_reason: measurement.outcome.engine.reason.clone(),
            busy_share: measurement.busy,
            busy_share_max: measurement.intervals.iter().map(|interval| interval.busy).fold(0.0, f64::max),
            lag_mean_us: lag.and_then(|lag| lag.mean_ns()).map(|ns| ns / 1e3),
            lag_max_us: lag.map(|lag| us(lag.max_ns)),
            send_lag_mean_us: send_lag.and_then(|lag| lag.mean_ns()).map(|ns| ns / 1e3),
            send_lag_max_us: send_lag.map(|lag| us(lag.max_ns)),
            cpu_us: measurement.outcome.cpu_us,
            cpu_us_per_transaction: (all > 0).then(|| measurement.outcome.cpu_us as f64 / all as f64),
            memory_bytes: measurement.memory,
            memory_bytes_per_client: measurement.memory.map(|bytes| bytes / u64::from(load.clients())),
        }
    }
}

fn scripts(load: &Load, window: &Record, intended: &[Intended], window_ns: u64) -> Vec<Script> {
    load.main
        .scripts
        .iter()
        .zip(&window.scripts)
        .enumerate()
        .map(|(number, (script, record))| Script {
            name: script.script.name().to_owned(),
            weight: script.weight,
            tps: per_second(record.succeeded(), window_ns),
            transactions: record.succeeded(),
            failed: record.failures.sum(),
            retried: record.retried,
            retries: record.retries,
            skipped: record.skipped,
            late: record.late,
            rows: record.rows,
            latency: match intended.get(number) {
                Some(intended) => Latency::new(&intended.latency, Some(&intended.moments)),
                None => Latency::new(&record.latency, Some(&record.moments)),
            },
            service: intended.get(number).and_then(|intended| Latency::new(&intended.service, None)),
            errors: errors(&record.errors),
            statements: script
                .script
                .commands()
                .iter()
                .zip(&record.commands)
                .map(|(command, record)| Statement {
                    line: command.line,
                    text: command.text.clone(),
                    latency: Latency::new(&record.latency, Some(&record.moments)),
                    failures: record.failures,
                    retries: record.retries,
                })
                .collect(),
        })
        .collect()
}

impl Interval {
    pub(crate) fn new(interval: &measure::Interval) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        let width_ns = interval.end_ns - interval.start_ns;
        Self {
            start_us: us(interval.start_ns),
            width_us: us(width_ns),
            tps: per_second(interval.transactions, width_ns),
            transactions: interval.transactions,
            failed: interval.failed,
            skipped: interval.skipped,
            late: interval.late,
            retries: interval.retries,
            mean_us: interval.mean_ns.map(|ns| ns / 1e3),
            p50_us: interval.p50_ns.map(us),
            p99_us: interval.p99_ns.map(us),
            max_us: interval.max_ns.map(us),
            service_p99_us: interval.service_p99_ns.map(us),
            rows_per_s: per_second(interval.rows, width_ns),
            received_bytes_per_s: per_second(interval.bytes, width_ns),
            busy_share: interval.busy,
            lag_mean_us: interval.lag_mean_ns.map(|ns| ns / 1e3),
            lag_max_us: us(interval.lag_max_ns),
        }
    }
}
