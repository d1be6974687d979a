//! A trial's transactions: their durations compared with a lone one, clumps, and reads from disk meanwhile.

use std::collections::BTreeMap;

use model::cell::{Level, RecordedCell};
use model::message::TransactionSpan;
use model::metrics::Series;
use model::record::{Status, Trial, TrialRecord};
use serde::Serialize;
use stats::Task;

/// The largest number listed individually; a trial with more has figures of all of them, but no clumps.
const MAX_LISTED: usize = 1000;

/// The transactions of a trial; `None` if they were not stored, or there were none.
pub fn spans(record: &TrialRecord) -> Option<Spans> {
    let first_us = record.spans.iter().map(|span| span.start_us).min()?;
    let last_us = record.spans.iter().map(|span| span.end_us).max()?;
    let succeeded = || record.spans.iter().filter(|span| !span.failed).map(length);
    let (count, sum_us) =
        succeeded().fold((0_u64, 0.0), |(count, sum), length| (count + 1, sum + length as f64));
    let growth =
        |metric: &str, of: &str| growth_around(record.metrics.get(metric, Some(of))?, first_us, last_us);
    let disks = data_disks(record);
    let by_all = || disks.iter().map(|disk| growth("disk.read_bytes", disk)).sum::<Option<f64>>();
    let groups = record.trial.limits.iter().flat_map(|limits| &limits.groups);
    let by_server = groups.filter_map(|group| growth("cgroup.read_bytes", group)).reduce(f64::max);
    let read_bytes = by_server.or_else(|| by_all().filter(|_| !disks.is_empty()));
    let (each, clumps) = match record.spans.len() <= MAX_LISTED {
        true => list_transactions(&record.spans),
        false => (Vec::new(), Vec::new()),
    };
    Some(Spans {
        count: record.spans.len(),
        mean_us: (count > 0).then(|| sum_us / count as f64),
        longest_us: succeeded().max(),
        lone_us: None,
        start_us: first_us,
        end_us: last_us,
        read_bytes,
        each,
        clumps,
    })
}

/// Growth of a counter from the last reading before a span to the first one after it. It covers all activity of the
/// span; interpolation would attribute a part to the time after it.
fn growth_around(series: &Series, from_us: u64, to_us: u64) -> Option<f64> {
    let at = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
    let readings = || series.points.iter().filter(|point| point.value.is_some()).map(|point| point.at_us);
    let before = readings().filter(|reading| *reading <= at(from_us)).max();
    let after = readings().filter(|reading| *reading >= at(to_us)).min();
    series.growth(before.unwrap_or(at(from_us)), after.unwrap_or(at(to_us)))
}

/// Duration of a lone transaction: the mean of the trials of the otherwise equal cell with one client. Invalid trials
/// do not count.
pub fn lone_us<'a>(
    cell: &RecordedCell,
    trials: impl Iterator<Item = &'a Trial>,
    of: impl Fn(&'a Trial) -> Option<&'a Spans>,
) -> Option<f64> {
    let alone = RecordedCell { clients: Level::Known(1), ..cell.clone() };
    let lone = |trial: &&Trial| trial.cell == alone && trial.validity.status != Status::Invalid;
    let means: Vec<f64> = trials.filter(lone).filter_map(|trial| of(trial)?.mean_us).collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}

fn length(span: &TransactionSpan) -> u64 {
    span.end_us.saturating_sub(span.start_us)
}

/// Transactions by client, each client's in order, and their clumps. These are searched among the first transactions of
/// all clients, then among the second, and so on: transactions that start because others ended together are no clump.
fn list_transactions(spans: &[TransactionSpan]) -> (Vec<Span>, Vec<SynchronizedEnds>) {
    let mut sorted: Vec<&TransactionSpan> = spans.iter().collect();
    sorted.sort_by_key(|span| (span.client, span.start_us, span.end_us));
    let mut each: Vec<Span> = Vec::with_capacity(sorted.len());
    for span in sorted {
        let before = each.last().filter(|before| before.client == span.client);
        each.push(Span {
            script: span.script.clone(),
            client: span.client,
            iteration: before.map_or(1, |before| before.iteration + 1),
            start_us: span.start_us,
            end_us: span.end_us,
            failed: span.failed,
            clump: None,
        });
    }
    let mut iterations: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, span) in each.iter().enumerate().filter(|(_, span)| !span.failed) {
        iterations.entry(span.iteration).or_default().push(at);
    }
    let mut clumps: Vec<SynchronizedEnds> = Vec::new();
    for places in iterations.values() {
        let task = |at: &usize| Task { start: each[*at].start_us as f64, end: each[*at].end_us as f64 };
        let tasks: Vec<Task> = places.iter().map(task).collect();
        for group in stats::synchronized_ends(&tasks).unwrap_or_default() {
            let ends = || group.iter().map(|at| each[places[*at]].end_us);
            let (Some(first_end_us), Some(last_end_us)) = (ends().min(), ends().max()) else { continue };
            let clump = SynchronizedEnds { transactions: group.len(), first_end_us, last_end_us };
            for at in group {
                each[places[at]].clump = Some(clumps.len());
            }
            clumps.push(clump);
        }
    }
    (each, clumps)
}

/// The transactions of a trial, such as scans. Times are in microseconds after the load's start.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spans {
    /// Number of transactions, including failed ones.
    pub count: usize,
    /// Mean duration of the successful ones.
    pub mean_us: Option<f64>,
    /// Longest duration of a successful one.
    pub longest_us: Option<u64>,
    /// Mean duration of a lone transaction, in the cell with one client, all else equal; null if that has no usable
    /// trial.
    pub lone_us: Option<f64>,
    /// Start of the first.
    pub start_us: u64,
    /// End of the last.
    pub end_us: u64,
    /// Bytes read meanwhile from the data's disk: by the server if its disk was limited, else by all processes.
    pub read_bytes: Option<f64>,
    /// By client, each client's in order; empty if there are more than 1000.
    pub each: Vec<Span>,
    /// Groups that ended together although they began apart.
    pub clumps: Vec<SynchronizedEnds>,
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// Name of the script.
    pub script: String,
    /// The client, from 0.
    pub client: u32,
    /// Number of the transaction among the client's, from 1.
    pub iteration: usize,
    /// Start.
    pub start_us: u64,
    /// End.
    pub end_us: u64,
    /// Whether it failed.
    pub failed: bool,
    /// Index in [`Spans::clumps`].
    pub clump: Option<usize>,
}

/// Transactions of different clients that ended together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SynchronizedEnds {
    /// Number of transactions.
    pub transactions: usize,
    /// End of the first of them.
    pub first_end_us: u64,
    /// End of the last of them.
    pub last_end_us: u64,
}

/// The disk of the data, if known, else all disks. A device on top of others is represented by the last of these.
pub fn data_disks(record: &TrialRecord) -> Vec<&str> {
    let all: Vec<&str> = record
        .metrics
        .all("disk.write_bytes")
        .filter_map(|series: &Series| series.label.as_deref())
        .collect();
    // From the lowest underlying device up to the one that holds the data.
    let mut under = record.environment.data_devices.iter().rev();
    match under.find_map(|device| all.iter().find(|disk| **disk == device.name)) {
        Some(disk) => vec![disk],
        None => all,
    }
}
