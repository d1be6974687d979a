//! Counts of one thread in one interval; added up, those of all threads.

use std::borrow::Cow;

use hdrhistogram::Histogram;
use model::message::Phase;

use crate::error::LoadError;
use crate::histogram::latencies;

/// The counts of one interval.
#[derive(Clone, Debug)]
pub struct Record {
    /// Number of the interval in the schedule.
    pub(crate) number: u64,
    /// Phase of the load.
    pub phase: Phase,
    /// Start, in nanoseconds after the load's start.
    pub start_ns: u64,
    /// End, in nanoseconds after the load's start.
    pub end_ns: u64,
    /// By script, in the load's order: those of its main group, then the background ones.
    pub scripts: Vec<ScriptRecord>,
    /// Spans of the transactions that ended, of groups that record them; unordered.
    pub spans: Vec<TransactionSpan>,
    /// The hundredths of the interval in which a transaction of the main group succeeded, from the lowest bit.
    pub(crate) hundredths: u128,
    /// Driver lag in handling responses: readable → handled.
    pub lag: Lag,
    /// Driver lag in beginning due transactions: due → sent.
    pub send_lag: Lag,
    /// Time spent waiting for sockets; of one thread.
    pub(crate) waited_ns: u64,
    /// Share of the time spent on work: not waiting, or on a CPU, also in the kernel; of several threads, the largest.
    pub busy: f64,
    /// Connections opened after the start, and the time from the request until ready.
    pub connects: Moments,
    /// Bytes received.
    pub bytes: u64,
    /// Commits reported by the server.
    pub commits: u64,
    /// Whether there may be more: statements ran that can commit without reporting it.
    pub has_unreported_commits: bool,
}

/// Start and end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionSpan {
    /// Number of its script in the load's order.
    pub script: usize,
    /// Number of its client in the whole load.
    pub client: u32,
    /// Actual start, in nanoseconds after the load's start.
    pub start_ns: u64,
    /// End, likewise.
    pub end_ns: u64,
    /// Whether it failed.
    pub failed: bool,
}

/// The transactions of one script that ended in an interval.
#[derive(Clone, Debug)]
pub struct ScriptRecord {
    /// Whether it is a script of the main group.
    pub(crate) is_main: bool,
    /// Whether latencies count where the transactions were to start: in the main group of an open loop.
    pub(crate) is_open: bool,
    /// Latency of successful transactions, from the intended start to the end, in nanoseconds; without those of
    /// `from_warmup`.
    pub latency: Histogram<u64>,
    /// Moments of the same.
    pub moments: Moments,
    /// Service time of successful transactions, from the actual start to the end, in nanoseconds; only in an open loop,
    /// where it differs from the latency.
    pub service: Option<Histogram<u64>>,
    /// Successful transactions of an open loop that were to start in the warm-up, after it; none without any.
    pub(crate) from_warmup: Option<Box<Intended>>,
    /// Transactions that were to start in the window of an open loop and will not end, at the time when that was known;
    /// none without any.
    pub(crate) unfinished: Option<Box<Intended>>,
    /// Delay of successful transactions, from the intended to the actual start, in nanoseconds.
    pub start_lag: Moments,
    /// Transactions skipped because they were already late.
    pub skipped: u64,
    /// Transactions beyond the latency limit, without failed ones.
    pub late: u64,
    /// Transactions that took more than one try, successful or not.
    pub retried: u64,
    /// Tries after the first of each transaction.
    pub retries: u64,
    /// Failed transactions.
    pub failures: Failures,
    /// Errors that caused failures and retries, by SQLSTATE.
    pub errors: Vec<ErrorRecord>,
    /// Rows received.
    pub rows: u64,
    /// By command; empty if commands are not measured.
    pub commands: Vec<CommandRecord>,
}

/// Latencies of transactions of one script that were to start in the same phase of an open loop, whenever they ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Intended {
    /// From the intended start, in nanoseconds, without failed ones.
    pub latency: Histogram<u64>,
    /// Moments of the same.
    pub moments: Moments,
    /// Service time: from the actual start, of those that started.
    pub service: Histogram<u64>,
    /// How many of them did not end, whether or not they had started: they have at least the time until then.
    pub unfinished: u64,
}

/// Latencies and service times of the transactions of one interval that count in the same phase.
#[derive(Clone, Debug)]
pub struct PhaseLatencies<'a> {
    /// The phase.
    pub phase: Phase,
    /// From the intended start, in nanoseconds.
    pub latency: Cow<'a, Histogram<u64>>,
    /// From the actual start; none in a closed loop.
    pub service: Option<Cow<'a, Histogram<u64>>>,
}

/// Counts of one command of a script.
#[derive(Clone, Debug)]
pub struct CommandRecord {
    /// Latency, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Moments of the same.
    pub moments: Moments,
    /// Transactions that failed here.
    pub failures: u64,
    /// Retries because of an error here.
    pub retries: u64,
}

/// The errors of one SQLSTATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorRecord {
    /// SQLSTATE; empty if the error is not the server's.
    pub sqlstate: String,
    /// Message of one of them.
    pub text: String,
    /// Transactions that failed because of it.
    pub failed: u64,
    /// Tries followed by another one.
    pub retries: u64,
}

/// Failed transactions by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// SQLSTATE 40001.
    pub serialization: u64,
    /// SQLSTATE 40P01.
    pub deadlock: u64,
    /// Any other; also transactions whose client was aborted.
    pub other: u64,
}

/// Count, mean, variance and extremes of durations in nanoseconds.
///
/// Source: Welford 1962; merged as by Chan, Golub and LeVeque 1979.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Number of durations.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sum of the squared differences from the mean.
    pub squares: f64,
    /// Smallest; 0 if there are none.
    pub min: u64,
    /// Largest.
    pub max: u64,
}

/// Driver lag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Number of delays.
    pub count: u64,
    /// Total delay.
    pub sum_ns: u64,
    /// Largest delay.
    pub max_ns: u64,
}

/// The parts of a script's record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Whether it is a script of the main group.
    pub(crate) is_main: bool,
    /// Number of commands to measure.
    pub(crate) commands: usize,
    /// Whether service times differ from latencies.
    pub(crate) service: bool,
    /// Whether latencies count where the transactions were to start.
    pub(crate) is_open: bool,
}

impl Record {
    pub(crate) fn new(shapes: &[Shape]) -> Result<Self, LoadError> {
        Ok(Self {
            number: 0,
            phase: Phase::Warmup,
            start_ns: 0,
            end_ns: 0,
            scripts: shapes.iter().map(ScriptRecord::new).collect::<Result<_, LoadError>>()?,
            spans: Vec::new(),
            hundredths: 0,
            lag: Lag::default(),
            send_lag: Lag::default(),
            waited_ns: 0,
            busy: 0.0,
            connects: Moments::default(),
            bytes: 0,
            commits: 0,
            has_unreported_commits: false,
        })
    }

    pub(crate) fn clear(&mut self) {
        self.scripts.iter_mut().for_each(ScriptRecord::clear);
        self.spans.clear();
        self.hundredths = 0;
        (self.lag, self.send_lag) = Default::default();
        (self.waited_ns, self.busy, self.connects, self.bytes) = Default::default();
        (self.commits, self.has_unreported_commits) = Default::default();
    }

    /// Adds the counts of another thread or interval of the same load: the record then spans both, and `busy` is the
    /// larger one.
    pub fn add(&mut self, other: &Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        for (script, others) in self.scripts.iter_mut().zip(&other.scripts) {
            script.add(others);
        }
        self.spans.extend_from_slice(&other.spans);
        self.hundredths |= other.hundredths;
        self.lag.merge(&other.lag);
        self.send_lag.merge(&other.send_lag);
        self.busy = self.busy.max(other.busy);
        self.connects.merge(&other.connects);
        self.bytes += other.bytes;
        self.commits += other.commits;
        self.has_unreported_commits |= other.has_unreported_commits;
    }

    /// All that ended in the interval, all scripts together; None if there are no scripts.
    pub fn ended(&self) -> Option<ScriptRecord> {
        let (first, others) = self.scripts.split_first()?;
        let mut sum = first.clone();
        others.iter().for_each(|script| sum.add(script));
        sum.merge_warmup();
        Some(sum)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start_ns == self.end_ns && self.commits == 0 && self.scripts.iter().all(ScriptRecord::is_empty)
    }
}

impl ScriptRecord {
    fn new(shape: &Shape) -> Result<Self, LoadError> {
        Ok(Self {
            is_main: shape.is_main,
            is_open: shape.is_open,
            latency: latencies()?,
            moments: Moments::default(),
            from_warmup: None,
            unfinished: None,
            service: if shape.service { Some(latencies()?) } else { None },
            start_lag: Moments::default(),
            skipped: 0,
            late: 0,
            retried: 0,
            retries: 0,
            failures: Failures::default(),
            errors: Vec::new(),
            rows: 0,
            commands: (0..shape.commands).map(|_| CommandRecord::new()).collect::<Result<_, LoadError>>()?,
        })
    }

    /// Transactions that ended, successful or not.
    pub fn transactions(&self) -> u64 {
        self.succeeded() + self.failures.sum()
    }

    /// Transactions that succeeded, whenever they were to start.
    pub fn succeeded(&self) -> u64 {
        self.moments.count + self.from_warmup.as_ref().map_or(0, |intended| intended.moments.count)
    }

    /// Transactions that were to start in the window and will not end; None in a closed loop.
    pub fn unfinished(&self) -> Option<u64> {
        self.is_open.then(|| self.unfinished.as_ref().map_or(0, |intended| intended.unfinished))
    }

    fn is_empty(&self) -> bool {
        self.transactions() + self.skipped == 0 && self.unfinished.is_none()
    }

    /// Counts a successful transaction that was to start in the warm-up, after it.
    #[cold]
    pub(crate) fn add_from_warmup(&mut self, latency_ns: u64, service_ns: u64) {
        let intended = self.from_warmup.get_or_insert_with(|| Box::new(Intended::like(&self.latency)));
        intended.record(latency_ns, Some(service_ns));
    }

    /// Counts a transaction that will not end; None: it has not started.
    #[cold]
    pub(crate) fn add_unfinished(&mut self, latency_ns: u64, service_ns: Option<u64>) {
        let intended = self.unfinished.get_or_insert_with(|| Box::new(Intended::like(&self.latency)));
        intended.record(latency_ns, service_ns);
        intended.unfinished += 1;
    }

    /// Adds those that were to start in the warm-up to the latencies, which are then those of all that ended.
    fn merge_warmup(&mut self) {
        if let Some(intended) = self.from_warmup.take() {
            add(&mut self.latency, &intended.latency);
            self.moments.merge(&intended.moments);
            self.service.iter_mut().for_each(|service| add(service, &intended.service));
        }
    }

    /// The latencies and service times of an interval of this phase, by the phase that their transactions count in: in
    /// an open loop where they were to start, else where they ended.
    pub fn by_phase(&self, phase: Phase) -> Vec<PhaseLatencies<'_>> {
        let mut own = PhaseLatencies {
            phase: if self.is_open && phase == Phase::Drain { Phase::Measure } else { phase },
            latency: Cow::Borrowed(&self.latency),
            service: self.service.as_ref().map(Cow::Borrowed),
        };
        if let Some(unfinished) = &self.unfinished {
            add(own.latency.to_mut(), &unfinished.latency);
            own.service.iter_mut().for_each(|service| add(service.to_mut(), &unfinished.service));
        }
        let from_warmup = self.from_warmup.as_ref().map(|intended| PhaseLatencies {
            phase: Phase::Warmup,
            latency: Cow::Borrowed(&intended.latency),
            service: Some(Cow::Borrowed(&intended.service)),
        });
        [own].into_iter().chain(from_warmup).collect()
    }

    /// The errors of a SQLSTATE; if there are none yet, with `text` as their message.
    pub(crate) fn error(&mut self, sqlstate: &str, text: impl FnOnce() -> String) -> &mut ErrorRecord {
        let known = self.errors.iter().position(|error| error.sqlstate == sqlstate);
        let at = known.unwrap_or_else(|| {
            let sqlstate = sqlstate.to_owned();
            self.errors.push(ErrorRecord { sqlstate, text: text(), failed: 0, retries: 0 });
            self.errors.len() - 1
        });
        &mut self.errors[at]
    }

    fn clear(&mut self) {
        self.latency.reset();
        self.service.iter_mut().for_each(Histogram::reset);
        (self.from_warmup, self.unfinished) = Default::default();
        (self.moments, self.start_lag, self.failures) = Default::default();
        self.errors.clear();
        (self.skipped, self.late, self.retried, self.retries, self.rows) = Default::default();
        self.commands.iter_mut().for_each(CommandRecord::clear);
    }

    /// Adds the counts of another thread or interval.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.latency, &other.latency);
        self.moments.merge(&other.moments);
        if let (Some(service), Some(others)) = (&mut self.service, &other.service) {
            add(service, others);
        }
        add_intended(&mut self.from_warmup, &other.from_warmup);
        add_intended(&mut self.unfinished, &other.unfinished);
        self.start_lag.merge(&other.start_lag);
        self.skipped += other.skipped;
        self.late += other.late;
        self.retried += other.retried;
        self.retries += other.retries;
        self.failures.merge(&other.failures);
        for others in &other.errors {
            let error = self.error(&others.sqlstate, || others.text.clone());
            error.failed += others.failed;
            error.retries += others.retries;
        }
        self.rows += other.rows;
        for (command, others) in self.commands.iter_mut().zip(&other.commands) {
            add(&mut command.latency, &others.latency);
            command.moments.merge(&others.moments);
            command.failures += others.failures;
            command.retries += others.retries;
        }
    }
}

/// Adds a histogram. It cannot fail, because both have the same bounds.
fn add(histogram: &mut Histogram<u64>, other: &Histogram<u64>) {
    let _ = histogram.add(other);
}

fn add_intended(sum: &mut Option<Box<Intended>>, other: &Option<Box<Intended>>) {
    match (sum, other) {
        (Some(sum), Some(other)) => sum.add(other),
        (sum @ None, Some(_)) => sum.clone_from(other),
        (_, None) => {}
    }
}

impl Intended {
    pub(crate) fn new() -> Result<Self, LoadError> {
        Ok(Self::like(&latencies()?))
    }

    /// Without transactions, with the bounds of a histogram.
    fn like(histogram: &Histogram<u64>) -> Self {
        let empty = || Histogram::new_from(histogram);
        Self { latency: empty(), moments: Moments::default(), service: empty(), unfinished: 0 }
    }

    /// Adds a transaction; None: it has not started.
    fn record(&mut self, latency_ns: u64, service_ns: Option<u64>) {
        self.latency.saturating_record(latency_ns);
        self.moments.add(latency_ns);
        if let Some(service_ns) = service_ns {
            self.service.saturating_record(service_ns);
        }
    }

    /// Adds the transactions of another thread or script.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.latency, &other.latency);
        self.moments.merge(&other.moments);
        add(&mut self.service, &other.service);
        self.unfinished += other.unfinished;
    }

    /// Adds the transactions of an interval after the warm-up that were to start in the window.
    pub(crate) fn add_interval(&mut self, script: &ScriptRecord) {
        add(&mut self.latency, &script.latency);
        self.moments.merge(&script.moments);
        script.service.iter().for_each(|service| add(&mut self.service, service));
        script.unfinished.iter().for_each(|unfinished| self.add(unfinished));
    }

    /// The sum over all scripts; None if there are none, as in a closed loop.
    pub fn sum(scripts: &[Self]) -> Option<Self> {
        let (first, others) = scripts.split_first()?;
        let mut sum = first.clone();
        others.iter().for_each(|other| sum.add(other));
        Some(sum)
    }
}

impl CommandRecord {
    fn new() -> Result<Self, LoadError> {
        Ok(Self { latency: latencies()?, moments: Moments::default(), failures: 0, retries: 0 })
    }

    fn clear(&mut self) {
        self.latency.reset();
        self.moments = Moments::default();
        (self.failures, self.retries) = (0, 0);
    }
}

impl Failures {
    /// All of them.
    pub fn sum(&self) -> u64 {
        self.serialization + self.deadlock + self.other
    }

    fn merge(&mut self, other: &Self) {
        self.serialization += other.serialization;
        self.deadlock += other.deadlock;
        self.other += other.other;
    }
}

impl Moments {
    /// Adds a duration.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.count += 1;
        let from_mean = ns as f64 - self.mean;
        self.mean += from_mean / self.count as f64;
        self.squares += from_mean * (ns as f64 - self.mean);
    }

    /// Adds the durations of another.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.count += other.count;
        self.mean += apart * theirs / (ours + theirs);
        self.squares += other.squares + apart * apart * ours * theirs / (ours + theirs);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Standard deviation of the population (divided by the count, as pgbench does).
    pub fn stddev(&self) -> f64 {
        if self.count == 0 { 0.0 } else { (self.squares / self.count as f64).sqrt() }
    }

    /// Their sum.
    pub fn sum(&self) -> f64 {
        self.mean * self.count as f64
    }
}

impl Lag {
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Mean, in nanoseconds; None without any delay.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[u64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|value| moments.add(*value));
        moments
    }

    #[test]
    fn merged_moments_are_those_of_all_values() {
        let mut merged = moments(&[3, 8]);
        merged.merge(&moments(&[]));
        merged.merge(&moments(&[1, 4, 9]));
        let all = moments(&[3, 8, 1, 4, 9]);
        assert_eq!((merged.count, merged.min, merged.max), (5, 1, 9));
        assert!((merged.mean - 5.0).abs() < 1e-12 && (all.mean - 5.0).abs() < 1e-12);
        // Squared differences from 5: 4 + 9 + 16 + 1 + 16.
        assert!((merged.stddev() - (46.0_f64 / 5.0).sqrt()).abs() < 1e-12);
        assert!((all.stddev() - merged.stddev()).abs() < 1e-12);
    }

    #[test]
    fn errors_are_added_up_by_sqlstate() {
        let shape = Shape { is_main: true, commands: 0, service: false, is_open: false };
        let (mut ours, mut theirs) = (ScriptRecord::new(&shape).unwrap(), ScriptRecord::new(&shape).unwrap());
        ours.error("40001", || "ours".to_owned()).retries += 2;
        theirs.error("40001", || "theirs".to_owned()).failed += 1;
        theirs.error("23505", || "twice".to_owned()).failed += 1;
        ours.add(&theirs);
        let errors = ours.errors.iter().map(|e| (e.sqlstate.as_str(), e.text.as_str(), e.failed, e.retries));
        assert_eq!(errors.collect::<Vec<_>>(), [("40001", "ours", 1, 2), ("23505", "twice", 1, 0)]);
    }

    #[test]
    fn a_small_spread_far_from_zero_is_not_lost() {
        let far = 3_600_000_000_000;
        assert!((moments(&[far, far + 2]).stddev() - 1.0).abs() < 1e-3);
    }
}
