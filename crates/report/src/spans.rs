//! A trial's transactions one by one: how long each took beside a lone one, which ended together, and what was read from
//! disk meanwhile.

mod text;

use std::collections::BTreeMap;

use model::cell::Cell;
use model::message::TransactionSpan;
use model::record::{RawRead, Status, Trial, TrialRecord};
use stats::Task;

use crate::timeline::disks;
use crate::view::{self, Clump, Span, Spans};

pub use text::gantt;
pub(crate) use text::{LEGEND, charts, table};

/// The most that are shown one by one; a trial with more has figures of all of them, and clumps of none.
const MOST: usize = 1000;

/// The transactions of a trial; none where they were not kept, or there were none.
pub fn spans(record: &TrialRecord) -> Option<Spans> {
    let first_us = record.spans.iter().map(|span| span.start_us).min()?;
    let last_us = record.spans.iter().map(|span| span.end_us).max()?;
    let succeeded = || record.spans.iter().filter(|span| !span.failed).map(length);
    let (count, sum_us) =
        succeeded().fold((0_u64, 0.0), |(count, sum), length| (count + 1, sum + length as f64));
    let growth = |metric: &str, of: &str| {
        let at = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
        record.metrics.growth(metric, Some(of), at(first_us), at(last_us))
    };
    let disks = disks(record);
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

/// What the files gave that were read past the server.
pub(crate) fn raw_read(read: &RawRead) -> view::RawRead {
    view::RawRead {
        relation: read.relation.clone(),
        bytes: read.bytes,
        elapsed_us: read.elapsed_us,
        mb_s: read.mb_s(),
    }
}

/// What a lone transaction takes, by cell: the mean of the trials of the cell that has one client and is otherwise the
/// same. Invalid trials do not count.
pub(crate) fn lone_us<'a>(
    cell: &Cell,
    trials: impl Iterator<Item = &'a Trial>,
    of: impl Fn(&'a Trial) -> Option<&'a Spans>,
) -> Option<f64> {
    let alone = Cell { clients: 1, ..cell.clone() };
    let lone = |trial: &&Trial| trial.cell == alone && trial.validity.status != Status::Invalid;
    let means: Vec<f64> = trials.filter(lone).filter_map(|trial| of(trial)?.mean_us).collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}

fn length(span: &TransactionSpan) -> u64 {
    span.end_us.saturating_sub(span.start_us)
}

/// By client, each client's in order; and which of them ended together. Looked for is among the first of all clients, among
/// the second, and so on: what begins because something else has ended together is no clump of its own.
fn one_by_one(spans: &[TransactionSpan]) -> (Vec<Span>, Vec<Clump>) {
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
    let mut clumps: Vec<Clump> = Vec::new();
    for places in iterations.values() {
        let task = |at: &usize| Task { start: each[*at].start_us as f64, end: each[*at].end_us as f64 };
        let tasks: Vec<Task> = places.iter().map(task).collect();
        for group in stats::clumps(&tasks).unwrap_or_default() {
            let ends = || group.iter().map(|at| each[places[*at]].end_us);
            let (Some(first_end_us), Some(last_end_us)) = (ends().min(), ends().max()) else { continue };
            let clump = Clump { transactions: group.len(), first_end_us, last_end_us };
            for at in group {
                each[places[at]].clump = Some(clumps.len());
            }
            clumps.push(clump);
        }
    }
    (each, clumps)
}
