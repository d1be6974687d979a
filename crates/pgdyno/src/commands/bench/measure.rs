//! Runs one load and keeps what came of it.

use std::fs;
use std::time::Duration;

use anyhow::anyhow;
use driver::{Control, Level, Load, Observer, Outcome, Record, Said, Stopper};
use jiff::Timestamp;
use model::message::Phase;
use model::record::ClockReading;

use super::interval_log::IntervalLog;
use super::live::Live;

/// A load that has been run.
pub(super) struct Measured {
    /// When it began; none where it did not.
    pub(super) started: Option<Timestamp>,
    /// How long connecting all clients took.
    pub(super) connecting: Duration,
    /// All that was counted in the measured window; none where there was no window.
    pub(super) window: Option<Record>,
    /// Transactions that ended before the window.
    pub(super) in_warmup: u64,
    /// What was in flight at the window's end.
    pub(super) drain: Drain,
    /// The intervals of the window.
    pub(super) intervals: Vec<Interval>,
    /// Share of the window in which threads did not wait, of the busiest thread of each interval.
    pub(super) busy: f64,
    /// What the first clients that were aborted said.
    pub(super) aborts: Vec<String>,
    /// Resident memory that came with the clients and their threads, in bytes.
    pub(super) memory: Option<u64>,
    /// Whether it was ended since to go on was of no use.
    pub(super) given_up: bool,
    pub(super) outcome: Outcome,
}

/// What ended after the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drain {
    pub(super) transactions: u64,
    pub(super) max_ns: u64,
}

/// One interval of the window, all scripts together. Times count from the load's start.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) transactions: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
    pub(super) late: u64,
    pub(super) retries: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) mean_ns: Option<f64>,
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
    pub(super) service_p99_ns: Option<u64>,
    pub(super) busy: f64,
    pub(super) lag_mean_ns: Option<f64>,
    pub(super) lag_max_ns: u64,
}

/// Aborted clients of which it is kept what they said.
const ABORTS_KEPT: usize = 3;

/// Runs a load to its end. `lost` is asked after each interval of the window whether to go on is of no use.
///
/// # Errors
/// The load cannot be run, or the interval log cannot be written.
pub(super) fn measure(
    load: Load,
    control: Control,
    live: &mut Live,
    log: Option<&mut IntervalLog>,
    lost: &dyn Fn(&Record) -> bool,
) -> anyhow::Result<Measured> {
    let scripts = load.main.scripts.iter().map(|script| script.script.name().to_owned()).collect();
    let mut keeper = Keeper {
        stopper: control.stopper(),
        live,
        log,
        lost,
        resident: resident_bytes(),
        started: None,
        connecting: Duration::ZERO,
        window: None,
        in_warmup: 0,
        drain: Drain::default(),
        intervals: Vec::new(),
        busy_ns: 0.0,
        scripts,
        cause: None,
        aborts: Vec::new(),
        memory: None,
        given_up: false,
        problem: None,
    };
    let ran = driver::run(load, control, &mut keeper);
    keeper.live.finish();
    // The error tells its causes itself.
    let outcome = ran.map_err(|error| anyhow!("{error}"))?;
    if let Some(problem) = keeper.problem {
        return Err(problem);
    }
    Ok(Measured {
        started: keeper.started,
        connecting: keeper.connecting,
        busy: keeper.busy_ns / outcome.window_ns.max(1) as f64,
        window: keeper.window,
        in_warmup: keeper.in_warmup,
        drain: keeper.drain,
        intervals: keeper.intervals,
        aborts: keeper.aborts,
        memory: keeper.memory,
        given_up: keeper.given_up,
        outcome,
    })
}

struct Keeper<'a> {
    stopper: Stopper,
    live: &'a mut Live,
    log: Option<&'a mut IntervalLog>,
    lost: &'a dyn Fn(&Record) -> bool,
    resident: Option<u64>,
    started: Option<Timestamp>,
    connecting: Duration,
    window: Option<Record>,
    in_warmup: u64,
    drain: Drain,
    intervals: Vec<Interval>,
    busy_ns: f64,
    scripts: Vec<String>,
    /// The last error that was told of a client without aborting it.
    cause: Option<(u32, String)>,
    aborts: Vec<String>,
    memory: Option<u64>,
    given_up: bool,
    problem: Option<anyhow::Error>,
}

impl Observer for Keeper<'_> {
    fn connected(&mut self, took: Duration, _: &[i32]) {
        self.connecting = took;
        self.memory = resident_bytes().zip(self.resident).map(|(now, before)| now.saturating_sub(before));
        self.live.connected(took);
    }

    fn started(&mut self, at: ClockReading) {
        self.started = Timestamp::from_microsecond(at.unix_us).ok();
        if let (Some(log), Some(started)) = (&mut self.log, self.started) {
            let begun = log.begin(started);
            self.fail_on(begun);
        }
        self.live.started();
    }

    fn interval(&mut self, record: &Record) {
        match record.phase {
            Phase::Warmup => {
                self.in_warmup += record.scripts.iter().map(|script| script.moments.count).sum::<u64>()
            }
            Phase::Drain => {
                for script in &record.scripts {
                    self.drain.transactions += script.moments.count;
                    self.drain.max_ns = self.drain.max_ns.max(script.moments.max);
                }
            }
            Phase::Measure => {
                self.busy_ns += record.busy * (record.end_ns - record.start_ns) as f64;
                self.intervals.push(Interval::of(record));
                let window = match &mut self.window {
                    Some(window) => {
                        window.add(record);
                        window
                    }
                    None => self.window.insert(record.clone()),
                };
                if !self.given_up && (self.lost)(window) {
                    self.given_up = true;
                    self.stopper.stop();
                }
            }
        }
        if let Some(log) = &mut self.log {
            let written = log.interval(record);
            self.fail_on(written);
        }
        self.live.interval(record);
    }

    fn said(&mut self, said: &Said) {
        match said.level {
            // The script's debug() is to be seen.
            Level::Plain => self.live.line(said.text.trim_end()),
            // It is told by itself, before what it leads to.
            Level::Error if !said.aborted => self.cause = Some((said.client, said.text.clone())),
            _ => {}
        }
        if !said.aborted {
            return;
        }
        let cause = self.cause.take().filter(|(client, _)| *client == said.client).map(|(_, text)| text);
        let text = self.native(said, cause.as_deref().unwrap_or(&said.text));
        self.live.aborted(&text);
        if self.aborts.len() < ABORTS_KEPT {
            self.aborts.push(text);
        }
    }
}

impl Keeper<'_> {
    /// Who was aborted where and why; of pgbench's words only what the script and line do not say better.
    fn native(&self, said: &Said, text: &str) -> String {
        let statement = text.split_once(" query ").filter(|(head, _)| head.contains(" aborted in command "));
        let why = statement.and_then(|(_, rest)| rest.split_once(": ")).map_or(text, |(_, why)| why);
        let place = match self.scripts.get(said.script) {
            Some(script) if said.line > 0 => format!("client {}, {script}:{}", said.client, said.line),
            _ => format!("client {}", said.client),
        };
        format!("{place}: {}", why.trim_end().replace("ERROR:  ", "ERROR: "))
    }

    fn fail_on(&mut self, result: anyhow::Result<()>) {
        if let Err(error) = result
            && self.problem.is_none()
        {
            self.problem = Some(error);
            self.stopper.stop();
        }
    }
}

impl Interval {
    fn of(record: &Record) -> Self {
        let (first, others) = match record.scripts.split_first() {
            Some((first, others)) => (first, others),
            None => return Self::empty(record),
        };
        let merged;
        let sum = if others.is_empty() {
            first
        } else {
            let mut all = first.clone();
            others.iter().for_each(|script| all.add(script));
            merged = all;
            &merged
        };
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
