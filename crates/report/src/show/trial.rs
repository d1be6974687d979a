//! One trial: its figures, and its measured window over time.

use std::collections::BTreeMap;

use diagnose::{CpuTime, explain};
use jiff::Timestamp;
use model::load_hosts::LoadHost;
use model::message::{Interval, Phase};
use model::record::{BackgroundSummary, Latency, TrialRecord};
use model::statistics::Stall;
use model::waits::{SessionKind, Waits};
use serde::Serialize;

use analysis::notes;
use analysis::overview::view::{self, Finding, Script};
use analysis::spans::data_disks;

use super::statements::StatementLine;

/// Report of a trial by `pgdyno show`. Times are in microseconds after the load's start.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrialReport {
    /// Its id.
    pub id: String,
    /// Its run's id.
    pub run: String,
    /// Its campaign's name.
    pub campaign: String,
    /// The cell in words.
    pub cell: String,
    /// The server's own version.
    pub server_version: Option<String>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Time of its start.
    pub started: Option<Timestamp>,
    /// `valid`, `suspect` or `invalid`.
    pub validity: &'static str,
    /// Findings of the gates.
    pub findings: Vec<Finding>,
    /// Transactions per second in the window.
    pub tps: Option<f64>,
    /// Instructions for each transaction; null if they were not counted.
    pub instructions_per_transaction: Option<f64>,
    /// Notes on the figures of an emulated kernel.
    pub notes: Vec<&'static str>,
    /// 95% confidence interval of the throughput, from this run alone.
    pub tps_interval: Option<(f64, f64)>,
    /// Transactions that ended in the window.
    pub transactions: Option<u64>,
    /// Transactions that failed, in any phase.
    pub failed: Option<u64>,
    /// Length of the window.
    pub window_us: Option<u64>,
    /// The window's seconds, in order; empty if unknown.
    pub seconds: Vec<Second>,
    /// Seconds with next to no transactions; null if there are too few seconds to tell.
    pub stalls: Option<Vec<Stall>>,
    /// Checkpoints that ran in the window, as far as the server's log has their times.
    pub checkpoints: Vec<Span>,
    /// Runs of autovacuum in the window, likewise.
    pub vacuums: Vec<Span>,
    /// Latency of the window's transactions, from their intended start.
    pub latency: Option<Latency>,
    /// Their service time; null in a closed loop, where it does not differ.
    pub service: Option<Latency>,
    /// Results of each background workload.
    #[serde(rename = "beside")]
    pub background: Vec<BackgroundSummary>,
    /// Results of each script, if the workload has several.
    pub scripts: Vec<Script>,
    /// Results of the workload's own queries, by the names of their metrics; absent without any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
    /// Results of each phase, if the workload has several; absent otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<view::Phase>,
    /// The statements of the trace that was played, those that take the most time first; absent otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementLine>,
    /// The hosts that the load came from; absent if it came from the host of the campaign.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_hosts: Vec<LoadHost>,
    /// Activities of the clients' sessions, the most frequent first.
    pub waits: Vec<Wait>,
    /// Components of the mean latency; null if unknown.
    pub explained: Option<CellExplanation>,
    /// Reason why they are unknown.
    pub unexplained: Option<String>,
    /// Main metrics of the machine and the server, second by second.
    pub metrics: Vec<MetricSeries>,
    /// Events of the load.
    pub events: Vec<TrialEvent>,
}

/// A second of the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Second {
    /// Its start.
    pub start_us: u64,
    /// Its length.
    pub width_us: u64,
    /// Transactions per second in it.
    pub tps: f64,
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Span {
    /// Its start, which may lie before the window.
    pub start_us: i64,
    /// Its end, which may lie after it.
    pub end_us: i64,
}

/// An activity of sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Wait {
    /// `LWLock WALWrite`; `CPU` if a session was active and did not wait; a state such as `idle` if it was not active.
    pub what: String,
    /// Share of all the sessions' time.
    pub share: f64,
    /// Mean number of sessions.
    pub sessions: f64,
}

/// Components of the mean latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellExplanation {
    /// The limit, in a sentence.
    pub verdict: String,
    /// Confidence in it: `high`, `medium` or `low`.
    pub confidence: &'static str,
    /// The mean latency.
    pub latency_us: f64,
    /// Its parts, the largest first, and the unexplained part last.
    pub parts: Vec<Part>,
}

/// A part of the mean latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Part {
    /// Name of the component.
    pub name: String,
    /// Its share of the mean latency.
    pub share: f64,
}

/// A metric of the machine or the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetricSeries {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// One figure for each of [`TrialReport::seconds`].
    pub values: Vec<Option<f64>>,
}

/// An event of the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrialEvent {
    /// Its time.
    pub at_us: i64,
    /// Its kind.
    pub kind: String,
    /// Its message.
    pub message: String,
}

impl TrialReport {
    /// Report of a trial.
    pub fn new(record: &TrialRecord) -> Self {
        let trial = &record.trial;
        let summary = trial.summary.as_ref();
        let statistics = summary.and_then(|summary| summary.statistics.as_ref());
        let seconds = seconds_of(record);
        let span = seconds.first().zip(seconds.last());
        let window = span
            .map_or((0, 0), |(first, last)| (signed(first.start_us), signed(last.start_us + last.width_us)));
        let explanation = explain(record);
        Self {
            id: trial.id.clone(),
            run: trial.run.id.clone(),
            campaign: trial.run.campaign.clone(),
            cell: trial.cell.to_string(),
            server_version: trial.server_version.clone(),
            repeat: trial.repeat,
            attempt: trial.attempt,
            started: trial.started,
            validity: trial.validity.status.as_str(),
            findings: trial.validity.findings.iter().map(Finding::new).collect(),
            tps: summary.map(|summary| summary.tps),
            notes: notes(trial.cell.acceleration.into_known()),
            instructions_per_transaction: summary.and_then(|summary| summary.instructions_per_transaction),
            tps_interval: statistics.and_then(|statistics| statistics.tps_interval),
            transactions: summary.and_then(|summary| summary.transactions),
            failed: summary.and_then(|summary| summary.failed),
            window_us: summary.and_then(|summary| summary.window_us),
            stalls: statistics.and_then(|statistics| statistics.stalls.clone()),
            checkpoints: spans(record, "checkpoint-ended", "total_us", window),
            vacuums: spans(record, "autovacuum", "elapsed_us", window),
            latency: summary.and_then(|summary| summary.latency.clone()),
            service: summary.and_then(|summary| summary.service.clone()),
            background: summary.map(|summary| summary.background.clone()).unwrap_or_default(),
            scripts: Script::of(record),
            figures: trial.figures.clone(),
            phases: view::Phase::of(trial),
            statements: StatementLine::of(&record.played),
            load_hosts: trial.load_hosts.clone(),
            waits: waits(&record.waits, window),
            unexplained: explanation.as_ref().err().map(ToString::to_string),
            explained: explanation.ok().map(|explanation| CellExplanation {
                verdict: explanation.verdict(),
                confidence: explanation.confidence().name(),
                latency_us: explanation.budget.latency_us,
                parts: explanation
                    .budget
                    .parts
                    .iter()
                    .map(|part| Part { name: part.name(), share: explanation.budget.share(part) })
                    .collect(),
            }),
            metrics: metrics(record, &seconds),
            events: events(record),
            seconds,
        }
    }
}

fn in_window(record: &TrialRecord) -> impl Iterator<Item = &Interval> {
    record.intervals.iter().filter(|interval| interval.phase == Phase::Measure && interval.width_us > 0)
}

/// Seconds of the window. Its last interval is the remainder of a second; if that is less than half of one, it is left
/// out: a handful of transactions would look like a spike or a stall.
fn seconds_of(record: &TrialRecord) -> Vec<Second> {
    let longest = in_window(record).map(|interval| interval.width_us).max().unwrap_or(0);
    in_window(record)
        .filter(|interval| interval.width_us * 2 >= longest)
        .map(|interval| {
            let transactions: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
            let tps = transactions as f64 / interval.width_us as f64 * 1e6;
            Second { start_us: interval.start_us, width_us: interval.width_us, tps }
        })
        .collect()
}

/// Spans in the window that end with an event of this kind; the figure `length` is their length.
fn spans(record: &TrialRecord, kind: &str, length: &str, (from_us, to_us): (i64, i64)) -> Vec<Span> {
    let events = record.events.iter().filter(|event| event.kind == kind);
    let span = events.filter_map(|event| {
        let end_us = record.after_start_us(event)?;
        Some(Span { start_us: end_us - event.length_us(length)?, end_us })
    });
    span.filter(|span| span.end_us > from_us && span.start_us < to_us).collect()
}

fn waits(all: &[Waits], (from_us, to_us): (i64, i64)) -> Vec<Wait> {
    let of_window = all.iter().filter(|waits| waits.session == SessionKind::Load);
    let of_window = of_window.filter(|waits| (from_us..to_us).contains(&waits.at_us));
    let mut found: Vec<(String, u64)> = Vec::new();
    let mut spans: Vec<(i64, u32)> = Vec::new();
    let mut seen = 0;
    for waits in of_window {
        let what = match (waits.state.as_deref(), &waits.event_type, &waits.event) {
            (Some("active") | None, Some(kind), Some(event)) => format!("{kind} {event}"),
            (Some("active") | None, ..) => "CPU".to_owned(),
            (Some(state), ..) => state.to_owned(),
        };
        seen += u64::from(waits.seen);
        spans.push((waits.at_us, waits.samples));
        match found.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += u64::from(waits.seen),
            None => found.push((what, u64::from(waits.seen))),
        }
    }
    spans.sort_unstable();
    spans.dedup_by_key(|(at_us, _)| *at_us);
    let samples: u64 = spans.iter().map(|(_, samples)| u64::from(*samples)).sum();
    found.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    let wait = |(what, count): (String, u64)| Wait {
        what,
        share: count as f64 / seen.max(1) as f64,
        sessions: count as f64 / samples.max(1) as f64,
    };
    found.into_iter().map(wait).collect()
}

/// Known metrics, in the order in which they are shown. Counters of the server lag by up to a second, because backends
/// report them late.
fn metrics(record: &TrialRecord, seconds: &[Second]) -> Vec<MetricSeries> {
    let disks = data_disks(record);
    let each =
        |name: &'static str, unit: &'static str, value_of: &dyn Fn(&SecondReadings<'_>) -> Option<f64>| {
            let value = |second: &Second| {
                let from_us = signed(second.start_us);
                let to_us = from_us + signed(second.width_us);
                value_of(&SecondReadings { record, disks: &disks, from_us, to_us })
                    .filter(|value| value.is_finite())
            };
            MetricSeries { name, unit, values: seconds.iter().map(value).collect() }
        };
    let all = [
        each("CPU busy", "%", &|at| {
            Some(100.0 * CpuTime::new(&record.metrics, "all", at.from_us, at.to_us)?.busy())
        }),
        each("driver busy", "%", &|at| Some(100.0 * at.interval()?.busy?)),
        each("WAL", "MB/s", &|at| Some(at.rate("pg.wal.bytes")? / 1e6)),
        each("disk read", "MB/s", &|at| Some(at.of_disks("disk.read_bytes")? / 1e6)),
        each("disk written", "MB/s", &|at| Some(at.of_disks("disk.write_bytes")? / 1e6)),
        each("disk busy", "%", &|at| Some(at.of_disks("disk.busy_us")? / 1e4 / disks.len() as f64)),
        each("buffers hit", "/s", &|at| at.rate("pg.database.blks_hit")),
        each("buffers read", "/s", &|at| at.rate("pg.database.blks_read")),
        each("buffers written", "/s", &|at| {
            let by = [
                "pg.checkpoint.buffers_written",
                "pg.bgwriter.buffers_written",
                "pg.backend.buffers_written",
            ];
            by.into_iter().map(|metric| at.rate(metric)).sum()
        }),
    ];
    all.into_iter().filter(|metric| metric.values.iter().any(Option::is_some)).collect()
}

/// A second of a trial.
struct SecondReadings<'a> {
    record: &'a TrialRecord,
    disks: &'a [&'a str],
    from_us: i64,
    to_us: i64,
}

impl SecondReadings<'_> {
    fn interval(&self) -> Option<&Interval> {
        in_window(self.record).find(|interval| signed(interval.start_us) == self.from_us)
    }

    fn per_second(&self, growth: f64) -> f64 {
        growth / (self.to_us - self.from_us) as f64 * 1e6
    }

    fn rate(&self, metric: &str) -> Option<f64> {
        Some(self.per_second(self.record.metrics.growth(metric, None, self.from_us, self.to_us)?))
    }

    fn of_disks(&self, metric: &str) -> Option<f64> {
        let growth = |disk: &&str| self.record.metrics.growth(metric, Some(disk), self.from_us, self.to_us);
        self.disks.iter().filter_map(growth).reduce(|sum, more| sum + more).map(|sum| self.per_second(sum))
    }
}

/// The load's events, without the judgements of gates, which are findings.
fn events(record: &TrialRecord) -> Vec<TrialEvent> {
    let events = record.events.iter().filter(|event| !event.kind.starts_with("judged-"));
    let in_load = events.filter_map(|event| {
        let at_us = record.after_start_us(event).filter(|at_us| *at_us >= 0)?;
        Some(TrialEvent { at_us, kind: event.kind.clone(), message: event.message.replace('\n', " ") })
    });
    in_load.collect()
}

fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}
