//! One load, run to its end: sums and intervals of its window.

use std::fs;
use std::time::Duration;

use driver::{Control, DriverMessage, Level, Load, Observer, Outcome, Record, ScriptRecord, Stopper};
use jiff::Timestamp;
use model::message::Phase;
use model::record::ClockReading;

use crate::description::server_name;
use crate::error::RunError;
use crate::interrupt::Interrupt;
use crate::interval_log::IntervalLog;
use crate::live::Live;

/// The measurement of a load.
pub(crate) struct Measurement {
    /// Start of the load; None if it did not start.
    pub(crate) started: Option<Timestamp>,
    /// Time until all clients were connected.
    pub(crate) connecting: Duration,
    /// The sum over the measured window; None if there was no window.
    pub(crate) window: Option<Record>,
    /// Transactions that ended before the window.
    pub(crate) in_warmup: u64,
    /// Transactions in flight at the window's end.
    pub(crate) drain: Drain,
    /// The intervals of the window.
    pub(crate) intervals: Vec<Interval>,
    /// Share of the window in which the busiest thread of each interval did not wait.
    pub(crate) busy: f64,
    /// Messages of the first clients that were aborted.
    pub(crate) aborts: Vec<String>,
    /// Resident memory of the clients and their threads, in bytes.
    pub(crate) memory: Option<u64>,
    /// Whether it was ended early because its objectives were violated.
    pub(crate) ended_early: bool,
    pub(crate) outcome: Outcome,
}

/// Transactions that ended after the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drain {
    pub(crate) transactions: u64,
    pub(crate) max_ns: u64,
}

/// One interval of the window, all scripts together. Times count from the load's start.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) transactions: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) late: u64,
    pub(crate) retries: u64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
    pub(crate) service_p99_ns: Option<u64>,
    pub(crate) busy: f64,
    pub(crate) lag_mean_ns: Option<f64>,
    pub(crate) lag_max_ns: u64,
}

/// Aborted clients whose messages are kept.
const MAX_ABORTS_KEPT: usize = 3;

/// Runs a load to its end. It ends early once `is_violated` is true of the window so far, after any interval.
///
/// # Errors
/// The load can't be run, or the interval log can't be written.
pub(crate) fn measure(
    load: Load,
    control: Control,
    live: &mut Live<'_>,
    log: Option<&mut IntervalLog>,
    is_violated: &dyn Fn(&Record) -> bool,
) -> Result<Measurement, RunError> {
    let scripts = load.main.scripts.iter().map(|script| script.script.name().to_owned()).collect();
    let mut recorder = Recorder {
        stopper: control.stopper(),
        live,
        log,
        is_violated,
        resident: resident_bytes(),
        started: None,
        connecting: Duration::ZERO,
        window: None,
        in_warmup: 0,
        drain: Drain::default(),
        intervals: Vec::new(),
        busy_ns: 0.0,
        scripts,
        last_error: None,
        aborts: Vec::new(),
        memory: None,
        ended_early: false,
        log_error: None,
    };
    let outcome = driver::run(load, control, &mut recorder);
    recorder.live.end();
    let outcome = outcome?;
    if let Some(error) = recorder.log_error {
        return Err(error);
    }
    Ok(Measurement {
        started: recorder.started,
        connecting: recorder.connecting,
        busy: recorder.busy_ns / outcome.window_ns.max(1) as f64,
        window: recorder.window,
        in_warmup: recorder.in_warmup,
        drain: recorder.drain,
        intervals: recorder.intervals,
        aborts: recorder.aborts,
        memory: recorder.memory,
        ended_early: recorder.ended_early,
        outcome,
    })
}

impl Measurement {
    /// Checks that an interrupt has not kept the load from beginning.
    ///
    /// # Errors
    /// It has.
    pub(crate) fn check_began(&self, load: &Load, interrupt: &Interrupt) -> Result<(), RunError> {
        if self.started.is_some() {
            return Ok(());
        }
        interrupt
            .check(|| format!("connecting {} clients to {}", load.clients(), server_name(&load.connection)))
    }
}

/// Observer that keeps the measurement of a load.
struct Recorder<'a, 'view> {
    stopper: Stopper,
    live: &'a mut Live<'view>,
    log: Option<&'a mut IntervalLog>,
    is_violated: &'a dyn Fn(&Record) -> bool,
    resident: Option<u64>,
    started: Option<Timestamp>,
    connecting: Duration,
    window: Option<Record>,
    in_warmup: u64,
    drain: Drain,
    intervals: Vec<Interval>,
    busy_ns: f64,
    scripts: Vec<String>,
    /// A client's last error that did not abort it, and the client.
    last_error: Option<(u32, String)>,
    aborts: Vec<String>,
    memory: Option<u64>,
    ended_early: bool,
    log_error: Option<RunError>,
}

impl Observer for Recorder<'_, '_> {
    fn connected(&mut self, took: Duration, _: &[i32]) {
        self.connecting = took;
        self.memory = resident_bytes().zip(self.resident).map(|(now, before)| now.saturating_sub(before));
        self.live.connected(took);
    }

    fn started(&mut self, at: ClockReading, _: Duration) {
        self.started = Timestamp::from_microsecond(at.unix_us).ok();
        if let (Some(log), Some(started)) = (&mut self.log, self.started) {
            let outcome = log.start(started);
            self.check_log(outcome);
        }
    }

    fn interval(&mut self, record: &Record) {
        match record.phase {
            Phase::Warmup => {
                self.in_warmup += record.scripts.iter().map(ScriptRecord::succeeded).sum::<u64>()
            }
            Phase::Drain => {
                if let Some(sum) = record.ended() {
                    self.drain.transactions += sum.moments.count;
                    self.drain.max_ns = self.drain.max_ns.max(sum.moments.max);
                }
            }
            Phase::Measure => {
                self.busy_ns += record.busy * (record.end_ns - record.start_ns) as f64;
                self.intervals.push(Interval::new(record));
                let window = match &mut self.window {
                    Some(window) => {
                        window.add(record);
                        window
                    }
                    None => self.window.insert(record.clone()),
                };
                if !self.ended_early && (self.is_violated)(window) {
                    self.ended_early = true;
                    self.stopper.stop();
                }
            }
        }
        if let Some(log) = &mut self.log {
            let outcome = log.interval(record);
            self.check_log(outcome);
        }
        self.live.interval(record);
    }

    fn on_message(&mut self, message: &DriverMessage) {
        match message.level {
            // Notices, and the output of the script's debug().
            Level::Plain => self.live.line(message.text.trim_end()),
            // The error comes before the abort that it causes.
            Level::Error if !message.aborted => {
                self.last_error = Some((message.client, message.text.clone()))
            }
            _ => {}
        }
        if !message.aborted {
            return;
        }
        let cause =
            self.last_error.take().filter(|(client, _)| *client == message.client).map(|(_, text)| text);
        let text = self.abort_message(message, cause.as_deref().unwrap_or(&message.text));
        self.live.aborted(&text);
        if self.aborts.len() < MAX_ABORTS_KEPT {
            self.aborts.push(text);
        }
    }
}

impl Recorder<'_, '_> {
    /// The client, script and line of an abort, and its reason without the place as pgbench words it.
    fn abort_message(&self, message: &DriverMessage, text: &str) -> String {
        let statement = text.split_once(" query ").filter(|(head, _)| head.contains(" aborted in command "));
        let why = statement.and_then(|(_, rest)| rest.split_once(": ")).map_or(text, |(_, why)| why);
        let place = match self.scripts.get(message.script) {
            Some(script) if message.line > 0 => {
                format!("client {}, {script}:{}", message.client, message.line)
            }
            _ => format!("client {}", message.client),
        };
        format!("{place}: {}", why.trim_end().replace("ERROR:  ", "ERROR: "))
    }

    /// An error of the interval log ends the load.
    fn check_log(&mut self, outcome: Result<(), RunError>) {
        if let Err(error) = outcome
            && self.log_error.is_none()
        {
            self.log_error = Some(error);
            self.stopper.stop();
        }
    }
}

impl Interval {
    fn new(record: &Record) -> Self {
        let Some(sum) = record.ended() else { return Self::empty(record) };
        let some = !sum.latency.is_empty();
        Self {
            transactions: sum.moments.count,
            failed: sum.failures.sum(),
            skipped: sum.skipped,
            late: sum.late,
            retries: sum.retries,
            rows: sum.rows,
            mean_ns: some.then_some(sum.moments.mean),
            p50_ns: some.then(|| sum.latency.value_at_quantile(0.5)),
            p99_ns: some.then(|| sum.latency.value_at_quantile(0.99)),
            max_ns: some.then_some(sum.moments.max),
            service_p99_ns: sum.service.as_ref().filter(|s| !s.is_empty()).map(|s| s.value_at_quantile(0.99)),
            ..Self::empty(record)
        }
    }

    fn empty(record: &Record) -> Self {
        Self {
            start_ns: record.start_ns,
            end_ns: record.end_ns,
            transactions: 0,
            failed: 0,
            skipped: 0,
            late: 0,
            retries: 0,
            rows: 0,
            bytes: record.bytes,
            mean_ns: None,
            p50_ns: None,
            p99_ns: None,
            max_ns: None,
            service_p99_ns: None,
            busy: record.busy,
            lag_mean_ns: record.lag.mean_ns(),
            lag_max_ns: record.lag.max_ns,
        }
    }
}

/// Resident memory of this process.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
