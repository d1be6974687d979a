//! A trial's transactions one by one: how long each took against a lone one, which ended together, what was read from
//! disk meanwhile.

use std::collections::BTreeMap;

use model::cell::{Level, RecordedCell};
use model::message::TransactionSpan;
use model::metrics::Series;
use model::record::{Status, Trial, TrialRecord};
use serde::Serialize;
use stats::Task;

/// The most that are shown one by one; a trial with more has figures of all of them, and clumps of none.
const MOST: usize = 1000;

/// The transactions of a trial; none where they were not kept, or there were none.
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
    let (each, clumps) = match record.spans.len() <= MOST {
        true => one_by_one(&record.spans),
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

/// What a counter grew by from the last reading before a span to the first one after it. Of what is done for nothing but
/// the span, this is all; between readings a share of it would be taken for what came after.
fn growth_around(series: &Series, from_us: u64, to_us: u64) -> Option<f64> {
    let at = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
    let readings = || series.points.iter().filter(|point| point.value.is_some()).map(|point| point.at_us);
    let before = readings().filter(|reading| *reading <= at(from_us)).max();
    let after = readings().filter(|reading| *reading >= at(to_us)).min();
    series.growth(before.unwrap_or(at(from_us)), after.unwrap_or(at(to_us)))
}

/// What a lone transaction takes, by cell: the mean of the trials of the cell that has one client and is otherwise the
/// same. Invalid trials do not count.
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

/// By client, each client's in order; and which of them ended together. Looked for is among the first of all clients, among
/// the second, and so on: what begins because something else has ended together is no clump of its own.
fn one_by_one(spans: &[TransactionSpan]) -> (Vec<Span>, Vec<SynchronizedEnds>) {
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

/// The transactions of a trial: scans, say. Times are in microseconds after the load's start.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Spans {
    /// How many there were, the failed ones among them.
    pub count: usize,
    /// Mean length of those that succeeded.
    pub mean_us: Option<f64>,
    /// Length of the longest of those.
    pub longest_us: Option<u64>,
    /// What a lone transaction takes: their mean in the cell with one client, all else equal; null where that has no trial
    /// that may be used.
    pub lone_us: Option<f64>,
    /// When the first began.
    pub start_us: u64,
    /// When the last ended.
    pub end_us: u64,
    /// Bytes that were read meanwhile from the disk under the data: by the server, where its disk was limited, else by all.
    pub read_bytes: Option<f64>,
    /// By client, each client's in order; empty where there are more than 1000.
    pub each: Vec<Span>,
    /// Groups that ended together though they began apart.
    pub clumps: Vec<SynchronizedEnds>,
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct Span {
    /// Name of its script.
    pub script: String,
    /// Its client, from 0.
    pub client: u32,
    /// The client's first, second, …, from 1.
    pub iteration: usize,
    /// When it began.
    pub start_us: u64,
    /// When it ended.
    pub end_us: u64,
    /// Whether it failed.
    pub failed: bool,
    /// Its place in [`Spans::clumps`].
    pub clump: Option<usize>,
}

/// Transactions of different clients that ended together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
pub struct SynchronizedEnds {
    /// How many.
    pub transactions: usize,
    /// When the first of them ended.
    pub first_end_us: u64,
    /// When the last of them ended.
    pub last_end_us: u64,
}

/// The disks under the data, where it is known which these are, else all. One that lies on others is told by these.
pub fn data_disks(record: &TrialRecord) -> Vec<&str> {
    let all: Vec<&str> = record
        .metrics
        .all("disk.write_bytes")
        .filter_map(|series: &Series| series.label.as_deref())
        .collect();
    // From the one that holds the data down to those that it is made of.
    let mut under = record.environment.data_devices.iter().rev();
    match under.find_map(|device| all.iter().find(|disk| **disk == device.name)) {
        Some(disk) => vec![disk],
        None => all,
    }
}
