//! The log that pgbench's `--log` writes: a line for every transaction, or one for every interval.
//!
//! Source: PostgreSQL manual, "pgbench", sections "Per-Transaction Logging" and "Aggregated Logging".

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use script::RandomState;

use crate::load::LogOptions;

const SECOND_US: i64 = 1_000_000;

/// The log of one thread. Times are those of the wall clock, in microseconds since the Unix epoch.
#[derive(Debug)]
pub(crate) struct TransactionLog<W: Write = BufWriter<File>> {
    out: W,
    failures_detailed: bool,
    retries: bool,
    with_lag: bool,
    with_skipped: bool,
    sample: Option<Sample>,
    aggregate: Option<Aggregate>,
}

/// A transaction that ended or was skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The client, from 0.
    pub(crate) client: u32,
    /// Number of the transaction among those of its client, from 1; skipped and failed ones count.
    pub(crate) number: u64,
    /// The script, from 0.
    pub(crate) script: usize,
    pub(crate) result: LoggedResult,
    /// From the intended start to the end; of successful transactions.
    pub(crate) latency_us: f64,
    /// From the intended to the actual start; of successful transactions.
    pub(crate) lag_us: f64,
    /// Number of tries; 0 for skipped transactions.
    pub(crate) tries: u32,
    /// Time of the end.
    pub(crate) unix_us: i64,
}

/// Outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoggedResult {
    Done,
    Skipped,
    Serialization,
    Deadlock,
    Other,
}

#[derive(Debug)]
struct Sample {
    rate: f64,
    random: RandomState,
}

impl TransactionLog {
    /// Creates the file of a thread, truncating an existing one.
    ///
    /// `with_lag`: transactions have intended starts; `with_skipped`: some may be skipped.
    pub(crate) fn open(
        options: &LogOptions,
        thread: usize,
        sample: RandomState,
        start_unix_us: i64,
        with_lag: bool,
        with_skipped: bool,
    ) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path(options, thread))?);
        Ok(Self::new(file, options, sample, start_unix_us, with_lag, with_skipped))
    }
}

/// Path of the log of a thread of this process.
pub(crate) fn path(options: &LogOptions, thread: usize) -> PathBuf {
    log_path(&options.prefix, std::process::id(), thread)
}

fn log_path(prefix: &Path, process: u32, thread: usize) -> PathBuf {
    let mut name = OsString::from(prefix);
    name.push(format!(".{process}"));
    if thread > 0 {
        name.push(format!(".{thread}"));
    }
    name.into()
}

impl<W: Write> TransactionLog<W> {
    fn new(
        out: W,
        options: &LogOptions,
        sample: RandomState,
        start_unix_us: i64,
        with_lag: bool,
        with_skipped: bool,
    ) -> Self {
        Self {
            out,
            failures_detailed: options.failures_detailed,
            retries: options.retries,
            with_lag,
            with_skipped,
            sample: options.sampling_rate.map(|rate| Sample { rate, random: sample }),
            aggregate: options.aggregate_interval.map(|seconds| Aggregate::new(start_unix_us, seconds)),
        }
    }

    /// Logs a transaction.
    pub(crate) fn transaction(&mut self, entry: &Entry) -> io::Result<()> {
        if self.sample.as_mut().is_some_and(|sample| sample.random.f64() > sample.rate) {
            return Ok(());
        }
        if self.aggregate.is_none() {
            return self.write_transaction(entry);
        }
        self.write_ended_intervals(entry.unix_us)?;
        if let Some(aggregate) = &mut self.aggregate {
            aggregate.interval.add(entry);
        }
        Ok(())
    }

    /// Ends the log. The last, incomplete interval is written too, unless it is empty.
    pub(crate) fn finish(mut self, unix_us: i64) -> io::Result<()> {
        self.write_ended_intervals(unix_us)?;
        if let Some(Aggregate { interval, .. }) = self.aggregate.take()
            && !interval.is_empty()
        {
            self.write_interval(&interval)?;
        }
        self.out.flush()
    }

    fn write_transaction(&mut self, entry: &Entry) -> io::Result<()> {
        let Entry { client, number, script, result, latency_us, lag_us, tries, unix_us } = *entry;
        let out = &mut self.out;
        write!(out, "{client} {number} ")?;
        let done = result == LoggedResult::Done;
        match result {
            LoggedResult::Done => write!(out, "{latency_us:.0}")?,
            LoggedResult::Skipped => out.write_all(b"skipped")?,
            _ if !self.failures_detailed => out.write_all(b"failed")?,
            LoggedResult::Serialization => out.write_all(b"serialization")?,
            LoggedResult::Deadlock => out.write_all(b"deadlock")?,
            LoggedResult::Other => out.write_all(b"other")?,
        }
        let (seconds, micros) = (unix_us.div_euclid(SECOND_US), unix_us.rem_euclid(SECOND_US));
        write!(out, " {script} {seconds} {micros}")?;
        if self.with_lag {
            write!(out, " {:.0}", if done { lag_us } else { 0.0 })?;
        }
        if self.retries {
            write!(out, " {}", tries.saturating_sub(1))?;
        }
        out.write_all(b"\n")
    }

    /// Writes every interval that has ended, including those without transactions.
    fn write_ended_intervals(&mut self, unix_us: i64) -> io::Result<()> {
        while let Some(aggregate) = &mut self.aggregate
            && let Some(ended) = aggregate.take_ended(unix_us)
        {
            self.write_interval(&ended)?;
        }
        Ok(())
    }

    fn write_interval(&mut self, interval: &Interval) -> io::Result<()> {
        let or_zero = |wanted: bool, count: u64| if wanted { count } else { 0 };
        let out = &mut self.out;
        write!(out, "{} {}", interval.start_us / SECOND_US, interval.latency.count)?;
        interval.latency.write(out)?;
        if self.with_lag {
            interval.lag.write(out)?
        } else {
            Sums::default().write(out)?
        }
        writeln!(
            out,
            " {} {} {} {} {}",
            or_zero(self.with_skipped, interval.skipped),
            or_zero(self.retries, interval.retried),
            or_zero(self.retries, interval.retries),
            or_zero(self.failures_detailed, interval.serialization),
            or_zero(self.failures_detailed, interval.deadlock),
        )
    }
}

/// Intervals, written instead of single transactions.
#[derive(Debug)]
struct Aggregate {
    length_us: i64,
    interval: Interval,
}

impl Aggregate {
    /// The first interval begins with the second in which the load begins.
    fn new(start_unix_us: i64, seconds: u64) -> Self {
        let start_us = start_unix_us - start_unix_us.rem_euclid(SECOND_US);
        let length_us = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(SECOND_US).max(SECOND_US);
        Self { length_us, interval: Interval { start_us, ..Interval::default() } }
    }

    /// Takes the current interval if it has ended, and begins the next one.
    fn take_ended(&mut self, unix_us: i64) -> Option<Interval> {
        let end_us = self.interval.start_us.checked_add(self.length_us)?;
        let next = Interval { start_us: end_us, ..Interval::default() };
        (end_us <= unix_us).then(|| std::mem::replace(&mut self.interval, next))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    start_us: i64,
    latency: Sums,
    lag: Sums,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
    other: u64,
}

impl Interval {
    fn add(&mut self, entry: &Entry) {
        if entry.result == LoggedResult::Skipped {
            self.skipped += 1;
            return;
        }
        if entry.tries > 1 {
            self.retried += 1;
            self.retries += u64::from(entry.tries - 1);
        }
        match entry.result {
            LoggedResult::Done => {
                self.latency.add(entry.latency_us);
                self.lag.add(entry.lag_us);
            }
            LoggedResult::Serialization => self.serialization += 1,
            LoggedResult::Deadlock => self.deadlock += 1,
            LoggedResult::Other | LoggedResult::Skipped => self.other += 1,
        }
    }

    fn is_empty(&self) -> bool {
        self.latency.count + self.skipped + self.serialization + self.deadlock + self.other == 0
    }
}

/// Sum, sum of squares and extremes of times in microseconds, as in the format.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Sums {
    fn add(&mut self, us: f64) {
        self.min = if self.count == 0 { us } else { self.min.min(us) };
        self.max = if self.count == 0 { us } else { self.max.max(us) };
        self.count += 1;
        self.sum += us;
        self.squares += us * us;
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, " {:.0} {:.0} {:.0} {:.0}", self.sum, self.squares, self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_US: i64 = 1_700_000_000_400_000;

    const OPTIONS: LogOptions = LogOptions {
        prefix: PathBuf::new(),
        sampling_rate: None,
        aggregate_interval: None,
        failures_detailed: false,
        retries: false,
    };

    fn done(number: u64, latency_us: f64, unix_us: i64) -> Entry {
        Entry {
            client: 3,
            number,
            script: 1,
            result: LoggedResult::Done,
            latency_us,
            lag_us: 12.0,
            tries: 1,
            unix_us,
        }
    }

    fn ended(number: u64, result: LoggedResult, tries: u32) -> Entry {
        Entry { result, tries, ..done(number, 0.0, START_US) }
    }

    /// The log after these transactions have ended.
    fn lines(options: &LogOptions, lag: bool, entries: &[Entry], end_us: i64) -> String {
        let mut out = Vec::new();
        let random = RandomState::from_seed(1);
        let mut log = TransactionLog::new(&mut out, options, random, START_US, lag, lag);
        for entry in entries {
            log.transaction(entry).unwrap();
        }
        log.finish(end_us).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_has_client_number_latency_script_and_time() {
        let entries = [done(1, 1234.4, START_US), done(2, 99.5, START_US + 700_007)];
        assert_eq!(
            lines(&OPTIONS, false, &entries, START_US),
            "3 1 1234 1 1700000000 400000\n3 2 100 1 1700000001 100007\n"
        );
    }

    #[test]
    fn columns_for_lag_and_retries_are_optional() {
        let options = LogOptions { retries: true, ..OPTIONS };
        let entries = [done(1, 5.0, START_US), ended(2, LoggedResult::Skipped, 0)];
        let expected = "3 1 5 1 1700000000 400000 12 0\n3 2 skipped 1 1700000000 400000 0 0\n";
        assert_eq!(lines(&options, true, &entries, START_US), expected);
    }

    #[test]
    fn failures_are_distinguished_if_requested() {
        let entries = [ended(1, LoggedResult::Serialization, 3), ended(2, LoggedResult::Deadlock, 1)];
        let options = LogOptions { retries: true, ..OPTIONS };
        let expected = "3 1 failed 1 1700000000 400000 2\n3 2 failed 1 1700000000 400000 0\n";
        assert_eq!(lines(&options, false, &entries, START_US), expected);
        let options = LogOptions { failures_detailed: true, ..OPTIONS };
        let expected = "3 1 serialization 1 1700000000 400000\n3 2 deadlock 1 1700000000 400000\n";
        assert_eq!(lines(&options, false, &entries, START_US), expected);
    }

    #[test]
    fn intervals_begin_with_whole_seconds_and_empty_ones_are_written() {
        let options = LogOptions { aggregate_interval: Some(2), ..OPTIONS };
        let entries =
            [done(1, 10.0, START_US), done(2, 30.0, START_US + 1), done(3, 7.0, START_US + 5_000_000)];
        assert_eq!(
            lines(&options, true, &entries, START_US + 5_600_000),
            "1700000000 2 40 1000 10 30 24 288 12 12 0 0 0 0 0\n\
             1700000002 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             1700000004 1 7 49 7 7 12 144 12 12 0 0 0 0 0\n"
        );
    }

    #[test]
    fn the_interval_that_the_end_cuts_short_is_written_if_something_happened() {
        let options = LogOptions { aggregate_interval: Some(2), ..OPTIONS };
        let one = [done(1, 10.0, START_US)];
        let line = "1700000000 1 10 100 10 10 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(lines(&options, false, &one, START_US + 1), line);
        assert_eq!(lines(&options, false, &one, START_US + 1_600_000), line);
        assert_eq!(lines(&options, false, &[], START_US + 1), "");
    }

    #[test]
    fn intervals_count_retries_skipped_and_failed_transactions() {
        let options =
            LogOptions { aggregate_interval: Some(1), failures_detailed: true, retries: true, ..OPTIONS };
        let entries = [
            ended(1, LoggedResult::Serialization, 3),
            ended(2, LoggedResult::Deadlock, 2),
            ended(3, LoggedResult::Deadlock, 1),
            ended(4, LoggedResult::Skipped, 0),
        ];
        let expected = "1700000000 0 0 0 0 0 0 0 0 0 1 2 3 1 2\n";
        assert_eq!(lines(&options, true, &entries, START_US), expected);
    }

    #[test]
    fn a_sample_has_its_share_of_the_lines() {
        let options = LogOptions { sampling_rate: Some(0.25), ..OPTIONS };
        let entries: Vec<Entry> = (1..=4000).map(|number| done(number, 1.0, START_US)).collect();
        let count = lines(&options, false, &entries, START_US).lines().count();
        assert!((900..1100).contains(&count), "{count} of 4000 lines");
    }

    #[test]
    fn names_have_process_and_from_the_second_thread_on_thread() {
        let prefix = Path::new("dir/x");
        assert_eq!(log_path(prefix, 42, 0), Path::new("dir/x.42"));
        assert_eq!(log_path(prefix, 42, 3), Path::new("dir/x.42.3"));
    }
}
