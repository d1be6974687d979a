//! A trial second by second: what clients got beside what the server and the machine did.

use model::message::Phase;
use model::metrics::{Metrics, Series};
use model::record::TrialRecord;

use crate::table::Table;

/// One row for each interval of the load. A figure that is not known is a dash; what is counted by the server comes up to a
/// second late, as backends hand it in.
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
    let disks = disks(record);
    for interval in &record.intervals {
        let from_us = signed(interval.start_us);
        let to_us = from_us + signed(interval.width_us);
        let seconds = interval.width_us as f64 / 1e6;
        let growth = |metric: &str, of: Option<&str>| record.metrics.growth(metric, of, from_us, to_us);
        let of_disks = |metric: &str| sum(disks.iter().map(|disk| growth(metric, Some(disk))));
        let transactions: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
        let share = |us: f64| 100.0 * us / (to_us - from_us).max(1) as f64;
        let busiest = disks.iter().filter_map(|disk| growth("disk.busy_us", Some(disk))).reduce(f64::max);
        table.push(vec![
            format!("{:.1}", interval.start_us as f64 / 1e6),
            phase(interval.phase).to_owned(),
            if seconds > 0.0 {
                format!("{:.0}", transactions as f64 / seconds)
            } else {
                NOT_KNOWN.to_owned()
            },
            shown(busy(&record.metrics, from_us, to_us), 0),
            shown(checkpoint_us(record, from_us, to_us).map(share), 0),
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

const NOT_KNOWN: &str = "–";

fn shown(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| NOT_KNOWN.to_owned(), |value| format!("{value:.decimals$}"))
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warm-up",
        Phase::Measure => "",
        Phase::Drain => "drain",
    }
}

/// The disks under the data, where it is known which these are, else all. One that lies on others is told by these.
fn disks(record: &TrialRecord) -> Vec<&str> {
    let all: Vec<&str> =
        record.metrics.all("disk.write_bytes").filter_map(|series: &Series| series.of.as_deref()).collect();
    // From the one that holds the data down to those that it is made of.
    let mut under = record.environment.data_devices.iter().rev();
    match under.find_map(|device| all.iter().find(|disk| **disk == device.name)) {
        Some(disk) => vec![disk],
        None => all,
    }
}

/// How busy the processors were, in per cent.
fn busy(metrics: &Metrics, from_us: i64, to_us: i64) -> Option<f64> {
    let of = |name: &str| metrics.growth(&format!("cpu.{name}_us"), Some("all"), from_us, to_us);
    let busy_us = sum(["user", "nice", "system", "irq", "softirq"].into_iter().map(of))?;
    let rest_us = of("idle")? + of("iowait").unwrap_or_default() + of("steal").unwrap_or_default();
    (busy_us + rest_us > 0.0).then(|| 100.0 * busy_us / (busy_us + rest_us))
}

fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|sum, more| sum + more)
}

/// Time within a span in which a checkpoint ran; none where the server's log was not read.
fn checkpoint_us(record: &TrialRecord, from_us: i64, to_us: i64) -> Option<f64> {
    let started = record.trial.load_started?;
    record.events.iter().find(|event| event.kind.starts_with("checkpoint-"))?;
    let ended = record.events.iter().filter(|event| event.kind == "checkpoint-ended").filter_map(|event| {
        let end_us = i64::try_from(event.at.duration_since(started).as_micros()).ok()?;
        Some((end_us - *event.figures.get("total_us")? as i64, end_us))
    });
    Some(ended.map(|(start_us, end_us)| (end_us.min(to_us) - start_us.max(from_us)).max(0) as f64).sum())
}

/// Kinds of events within a span, each with how often where that is more than once.
fn events(record: &TrialRecord, from_us: i64, to_us: i64) -> String {
    let Some(started) = record.trial.load_started else { return String::new() };
    let mut kinds: Vec<(&str, u32)> = Vec::new();
    for event in &record.events {
        let at_us = i64::try_from(event.at.duration_since(started).as_micros()).unwrap_or(i64::MAX);
        if !(from_us..to_us).contains(&at_us) || event.kind.starts_with("judged-") {
            continue;
        }
        match kinds.iter_mut().find(|(kind, _)| *kind == event.kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((&event.kind, 1)),
        }
    }
    let told = |(kind, count): &(&str, u32)| match count {
        1 => (*kind).to_owned(),
        count => format!("{count} × {kind}"),
    };
    kinds.iter().map(told).collect::<Vec<_>>().join(", ")
}

fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}
