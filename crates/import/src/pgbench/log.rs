//! Logs of a run (`-l`), of each transaction or of intervals (`--aggregate-interval`).
//!
//! A line of a transaction: `client number time script epoch microseconds [lag] [retries]`, where `time` is its latency
//! from its intended start in microseconds, or the reason why it did not succeed: `skipped`, `failed`, `serialization`,
//! `deadlock`, `other`. Fields after the sixth differ between majors and options, and are not read.

use std::collections::BTreeMap;

use model::message::ScriptInterval;
use model::record::ImportedFile;

use super::aggregate::{Aggregated, Line as IntervalLine};
use super::{series, timestamp};
use crate::error::{HistogramError, ImportError, PgbenchError};
use crate::file::Source;
use crate::import::Draft;

/// Contents of a run's logs.
#[derive(Debug)]
pub(super) enum Log {
    /// No log.
    None,
    /// Each transaction.
    Transactions(Transactions),
    /// Sums of each interval.
    Aggregated(Aggregated),
}

/// Transactions by the second in which they ended.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// By second of the Unix epoch, then by script.
    seconds: BTreeMap<i64, BTreeMap<u32, Second>>,
    /// Start of the first and end of the last, in microseconds since the Unix epoch.
    span: Option<(i64, i64)>,
    count: u64,
    failed: u64,
}

#[derive(Debug, Default)]
struct Second {
    latencies_us: Vec<u32>,
    failed: u64,
}

/// Maximum length of a run: anything longer is of several runs, or damaged.
const MAX_LENGTH_S: i64 = 1_000_000;

impl Log {
    /// Reads the logs of all threads.
    pub(super) fn read(sources: &[Source], files: &mut Vec<ImportedFile>) -> Result<Self, ImportError> {
        let mut log = Self::None;
        for source in sources {
            files.push(source.lines(|_, line| log.add_line(line))?);
        }
        match log {
            Self::None if !sources.is_empty() => {
                Err(ImportError::Pgbench { file: sources[0].shown(), source: PgbenchError::Empty })
            }
            log => Ok(log),
        }
    }

    /// Number of successful transactions, and the time from the first to the last, in microseconds.
    pub(super) fn count_and_span(&self) -> Option<(u64, u64)> {
        match self {
            Self::None => None,
            Self::Transactions(log) => {
                let (first, last) = log.span?;
                Some((log.count, last.abs_diff(first)))
            }
            Self::Aggregated(log) => log.count_and_span(),
        }
    }

    fn add_line(&mut self, line: &[u8]) -> Result<(), PgbenchError> {
        let text = std::str::from_utf8(line).map_err(|_| PgbenchError::InvalidLine)?.trim();
        if text.is_empty() {
            return Ok(());
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        if let Some(line) = IntervalLine::parse(&fields) {
            if let Self::None = self {
                *self = Self::Aggregated(Aggregated::default());
            }
            let Self::Aggregated(log) = self else { return Err(PgbenchError::MixedFormats) };
            log.add(line);
            return Ok(());
        }
        let entry = entry(&fields).ok_or(PgbenchError::InvalidLine)?;
        if let Self::None = self {
            *self = Self::Transactions(Transactions::default());
        }
        let Self::Transactions(log) = self else { return Err(PgbenchError::MixedFormats) };
        log.add(&entry);
        Ok(())
    }
}

struct Entry {
    script: u32,
    end_us: i64,
    /// None if it failed.
    latency_us: Option<u32>,
    is_skipped: bool,
}

fn entry(fields: &[&str]) -> Option<Entry> {
    let [client, number, time, script, seconds, micros, ..] = fields else { return None };
    let (_, _): (u32, u64) = (client.parse().ok()?, number.parse().ok()?);
    let seconds: i64 = seconds.parse().ok().filter(|seconds| (0..1 << 40).contains(seconds))?;
    let micros: i64 = micros.parse().ok().filter(|micros| (0..1_000_000).contains(micros))?;
    let latency_us = match *time {
        "skipped" | "failed" | "serialization" | "deadlock" | "other" => None,
        us => Some(us.parse().ok()?),
    };
    Some(Entry {
        script: script.parse().ok()?,
        end_us: seconds * 1_000_000 + micros,
        latency_us,
        is_skipped: *time == "skipped",
    })
}

impl Transactions {
    fn add(&mut self, entry: &Entry) {
        if entry.is_skipped {
            return;
        }
        let second = self.seconds.entry(entry.end_us.div_euclid(1_000_000)).or_default();
        let of_script = second.entry(entry.script).or_default();
        let started_us = entry.end_us - i64::from(entry.latency_us.unwrap_or_default());
        let (first, last) = self.span.unwrap_or((started_us, entry.end_us));
        self.span = Some((first.min(started_us), last.max(entry.end_us)));
        match entry.latency_us {
            Some(us) => {
                of_script.latencies_us.push(us);
                self.count += 1;
            }
            None => {
                of_script.failed += 1;
                self.failed += 1;
            }
        }
    }

    /// Adds series, histograms and latency to a draft.
    pub(super) fn add_to(
        &self,
        script: impl Fn(u32) -> String,
        draft: &mut Draft,
    ) -> Result<(), PgbenchError> {
        let Some((first_us, last_us)) = self.span else { return Ok(()) };
        let (first_s, last_s) = (first_us.div_euclid(1_000_000), last_us.div_euclid(1_000_000));
        if last_s - first_s > MAX_LENGTH_S {
            return Err(PgbenchError::TooLong { what: "transactions", seconds: last_s - first_s });
        }
        let mut all = series::histogram(&[])?;
        let after_us = |unix_us: i64| unix_us.clamp(first_us, last_us).abs_diff(first_us);
        let none = BTreeMap::new();
        for second in first_s..=last_s {
            let start_us = after_us(second * 1_000_000);
            let mut interval = series::interval(start_us, after_us((second + 1) * 1_000_000) - start_us);
            for (number, of_script) in self.seconds.get(&second).unwrap_or(&none) {
                let histogram = series::histogram(&of_script.latencies_us)?;
                all.add(&histogram).map_err(HistogramError::from)?;
                let mut of_interval = ScriptInterval {
                    script: script(*number),
                    transactions: histogram.len(),
                    failed: Some(of_script.failed),
                    unfinished: None,
                    latencies: Vec::new(),
                };
                if !histogram.is_empty() {
                    of_interval.latencies_of(interval.phase).latency_ns = series::encoded(&histogram)?;
                }
                interval.scripts.push(of_interval);
            }
            draft.intervals.push(interval);
        }
        draft.load_started = timestamp(first_us);
        draft.started = draft.load_started;
        draft.ended = timestamp(last_us);
        draft.summary.latency = series::figures(&all);
        draft.summary.failed = draft.summary.failed.or(Some(self.failed));
        if let Some(counted) = draft.summary.transactions.filter(|counted| *counted != self.count) {
            draft.notes.push(format!(
                "the log has {} of the {counted} transactions that pgbench counted: latencies and seconds are of these",
                self.count
            ));
        }
        Ok(())
    }
}
