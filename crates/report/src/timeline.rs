//! A trial second by second: throughput next to metrics of the server and the machine.

use analysis::spans::data_disks;
use diagnose::CpuTime;
use model::message::Phase;
use model::record::TrialRecord;

use plaintext::table::Table;

/// One row for each interval of the load. An unknown figure is a dash; counters of the server lag by up to a second,
/// because backends report them late.
pub fn timeline(record: &TrialRecord) -> Table {
    let mut table = Table::new([
        "#s",
        "phase",
        "#tps",
        "#cpu %",
        "#checkpoint %",
        "#buffers by checkpointer",
        "#by bgwriter",
        "#by backends",
        "#WAL MB",
        "#read MB",
        "#written MB",
        "#disk busy %",
        "events",
    ]);
    let disks = data_disks(record);
    // Every trial of pgdyno begins with one, unless its log was not read.
    let has_checkpoint_events = record.events.iter().any(|event| event.kind.starts_with("checkpoint-"));
    for interval in &record.intervals {
        let from_us = signed(interval.start_us);
        let to_us = from_us + signed(interval.width_us);
        let seconds = interval.width_us as f64 / 1e6;
        let growth = |metric: &str, of: Option<&str>| record.metrics.growth(metric, of, from_us, to_us);
        let of_disks = |metric: &str| sum(disks.iter().map(|disk| growth(metric, Some(disk))));
        let transactions: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
        let share = |us: f64| 100.0 * us / (to_us - from_us).max(1) as f64;
        let cpu = CpuTime::new(&record.metrics, "all", from_us, to_us);
        let busiest = disks.iter().filter_map(|disk| growth("disk.busy_us", Some(disk))).reduce(f64::max);
        table.push(vec![
            format!("{:.1}", interval.start_us as f64 / 1e6),
            phase(interval.phase).to_owned(),
            if seconds > 0.0 { format!("{:.0}", transactions as f64 / seconds) } else { UNKNOWN.to_owned() },
            shown(cpu.map(|cpu| 100.0 * cpu.busy()).filter(|percent| percent.is_finite()), 0),
            shown(has_checkpoint_events.then(|| share(record.checkpoint_us(from_us, to_us))), 0),
            shown(growth("pg.checkpoint.buffers_written", None), 0),
            shown(growth("pg.bgwriter.buffers_written", None), 0),
            shown(growth("pg.backend.buffers_written", None), 0),
            shown(growth("pg.wal.bytes", None).map(|bytes| bytes / 1e6), 1),
            shown(of_disks("disk.read_bytes").map(|bytes| bytes / 1e6), 1),
            shown(of_disks("disk.write_bytes").map(|bytes| bytes / 1e6), 1),
            shown(busiest.map(share), 0),
            events(record, from_us, to_us),
        ]);
    }
    table
}

const UNKNOWN: &str = "–";

fn shown(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| format!("{value:.decimals$}"))
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warm-up",
        Phase::Measure => "",
        Phase::Drain => "drain",
    }
}

fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|sum, more| sum + more)
}

/// Kinds of events within a span, each with its number if there are several.
fn events(record: &TrialRecord, from_us: i64, to_us: i64) -> String {
    let mut kinds: Vec<(&str, u32)> = Vec::new();
    for event in &record.events {
        let is_within = record.after_start_us(event).is_some_and(|at_us| (from_us..to_us).contains(&at_us));
        if !is_within || event.kind.starts_with("judged-") {
            continue;
        }
        match kinds.iter_mut().find(|(kind, _)| *kind == event.kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((&event.kind, 1)),
        }
    }
    let shown = |(kind, count): &(&str, u32)| match count {
        1 => (*kind).to_owned(),
        count => format!("{count} × {kind}"),
    };
    kinds.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}
