//! Values that no trial can have, and values that contradict each other, in a bundle whose files are intact: whoever wrote
//! it, or changed it and its checksums, was wrong.

use std::ops::RangeInclusive;

use model::load_hosts::LoadHost;
use model::message::Interval;
use model::metrics::Metrics;
use model::profile::{ProfileSummary, Stacks};
use model::record::{BackgroundSummary, Clocks, Latency, Status, Summary, Trial, TrialRecord};
use model::statistics::Statistics;
use model::validity;

use crate::error::Defect;
use crate::{format, metrics, series, spans, stacks, statements, waits};

/// A year in microseconds: no load is longer.
const YEAR_US: u64 = 366 * 86_400 * 1_000_000;
/// A duration in microseconds.
const DURATION_US: RangeInclusive<f64> = 0.0..=YEAR_US as f64;
/// Transactions per second: beyond what any server or network can do.
const PER_SECOND: RangeInclusive<f64> = 0.0..=1e9;
/// A share, a probability.
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
/// A reading of a collector: counters have up to 64 bits.
const READING: RangeInclusive<f64> = -1e20..=1e20;
/// How far a figure may be from another one that it follows from, as a share: histograms round to 0.1 %.
const TOLERANCE: f64 = 0.002;
/// Steps of the wall clock that are not an error of the bundle, in microseconds: clocks are adjusted all the time.
const CLOCK_STEP_US: i64 = 1_000_000;

/// Problems of a record's values; one for each table.
pub(super) fn problems(record: &TrialRecord) -> Vec<Defect> {
    let mut head = Head::default();
    head.trial(&record.trial);
    let mut defects: Vec<Defect> =
        head.problems.into_iter().map(|reason| Defect::damaged(format::TRIAL, reason)).collect();
    defects.extend(unknown_gates(&record.trial));
    let tables = [
        (series::FILE, intervals(&record.intervals)),
        (spans::FILE, transactions(record)),
        (metrics::FILE, readings(&record.metrics)),
        (waits::FILE, samples(record)),
        (statements::FILE, costs(record)),
    ];
    for (file, problem) in tables {
        defects.extend(problem.err().map(|reason| Defect::damaged(file, reason)));
    }
    if let Some(profile) = &record.trial.profile {
        let problem = profiled(profile, &record.stacks).err();
        defects.extend(problem.map(|reason| Defect::damaged(stacks::STACKS.trim_end_matches('/'), reason)));
    }
    defects
}

/// Gates of a later release, whose findings this one does not know.
fn unknown_gates(trial: &Trial) -> impl Iterator<Item = Defect> {
    let findings = trial.validity.findings.iter();
    findings.filter(|finding| !validity::GATES.contains(&finding.gate.as_str())).map(|finding| {
        Defect::newer(format::TRIAL, format!("this release of pgdyno has no gate \"{}\"", finding.gate))
    })
}

/// Problems of `trial.json`.
#[derive(Default)]
struct Head {
    problems: Vec<String>,
}

impl Head {
    fn figure(&mut self, name: &str, value: impl Into<Option<f64>>, range: RangeInclusive<f64>) {
        self.problems.extend(value.into().and_then(|value| within(name, value, range).err()));
    }

    fn duration(&mut self, name: &str, value: impl Into<Option<u64>>) {
        self.figure(name, value.into().map(|us| us as f64), DURATION_US);
    }

    fn ordered(&mut self, low: (&str, impl Into<Option<f64>>), high: (&str, impl Into<Option<f64>>)) {
        if let (Some(from), Some(to)) = (low.1.into(), high.1.into())
            && from > to * (1.0 + TOLERANCE)
        {
            self.problems.push(format!("{} is {from:?}, above {}, which is {to:?}", low.0, high.0));
        }
    }

    /// Two throughputs.
    fn equal(&mut self, name: &str, value: f64, source: &str, expected: f64) {
        // A value out of range has been named.
        if PER_SECOND.contains(&value) && (value - expected).abs() > TOLERANCE * expected.abs() {
            self.problems.push(format!("{name} is {value:?}, but {expected:?} by {source}"));
        }
    }

    fn trial(&mut self, trial: &Trial) {
        for (name, number) in
            [("repeat", trial.repeat), ("attempt", trial.attempt), ("position", trial.position)]
        {
            if number == 0 {
                self.problems.push(format!("{name} is 0: they are counted from 1"));
            }
        }
        self.times(trial);
        let worst = trial.validity.findings.iter().map(|finding| finding.status).max();
        let (status, worst) = (trial.validity.status, worst.unwrap_or(Status::Valid));
        if status != worst {
            self.problems.push(format!(
                "validity.status is {}, but {} by its findings",
                status.as_str(),
                worst.as_str()
            ));
        }
        if let Some(summary) = &trial.summary {
            self.summary(summary, trial);
        }
        trial.load_hosts.iter().for_each(|host| self.load_host(host));
        if trial.imported.is_none()
            && let (Some(all), Some(window)) = (
                trial.accounting.driver_transactions,
                trial.summary.as_ref().and_then(|summary| summary.transactions),
            )
        {
            self.ordered(
                ("summary.transactions", window as f64),
                ("accounting.driver_transactions", all as f64),
            );
        }
    }

    fn times(&mut self, trial: &Trial) {
        let is_backward = |clocks: &Clocks| clocks.ended.monotonic_us < clocks.started.monotonic_us;
        if trial.clocks.as_ref().is_some_and(is_backward) {
            self.problems.push("clocks: the load ended before it started".to_owned());
        }
        // The wall clock may have been set meanwhile, which is a finding of the trial.
        let step = trial.clocks.map_or(0, |Clocks { started, ended }| {
            (ended.unix_us - started.unix_us) - (ended.monotonic_us - started.monotonic_us)
        });
        if step.abs() > CLOCK_STEP_US {
            return;
        }
        let times =
            [("started", trial.started), ("load_started", trial.load_started), ("ended", trial.ended)];
        let known: Vec<_> = times.into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
        for pair in known.windows(2) {
            let [(first, from), (second, to)] = pair else { continue };
            if to.as_microsecond() + CLOCK_STEP_US < from.as_microsecond() {
                self.problems.push(format!("{second} ({to}) is before {first} ({from})"));
            }
        }
    }

    fn load_host(&mut self, host: &LoadHost) {
        let LoadHost {
            name, offset_us, bound_us, late_us, busy, busy_max, lag_us, lag_max_us, cpu_us, ..
        } = host;
        // Clocks of machines count from their boots.
        let year = YEAR_US as f64;
        let of_host = |figure: &str| format!("{figure} of the load host \"{name}\"");
        self.figure(&of_host("offset_us"), offset_us.map(|us| us as f64), -100.0 * year..=100.0 * year);
        self.duration(&of_host("bound_us"), *bound_us);
        self.duration(&of_host("late_us"), *late_us);
        self.figure(&of_host("busy"), *busy, SHARE);
        self.figure(&of_host("busy_max"), *busy_max, SHARE);
        self.figure(&of_host("lag_us"), *lag_us, DURATION_US);
        self.figure(&of_host("lag_max_us"), *lag_max_us, DURATION_US);
        self.duration(&of_host("cpu_us"), *cpu_us);
    }

    fn summary(&mut self, summary: &Summary, trial: &Trial) {
        let is_imported = trial.imported.is_some();
        self.duration("summary.window_us", summary.window_us);
        self.figure("summary.tps", summary.tps, PER_SECOND);
        self.figure("summary.worst_second_tps", summary.worst_second_tps, PER_SECOND);
        self.duration("summary.longest_stall_us", summary.longest_stall_us);
        self.figure("summary.instructions_per_transaction", summary.instructions_per_transaction, 0.0..=1e18);
        self.duration("summary.connect_us", summary.connect_us);
        self.figure("summary.driver_busy_max", summary.driver_busy_max, SHARE);
        self.figure("summary.driver_lag_max_us", summary.driver_lag_max_us, DURATION_US);
        for (name, latency) in [("latency", &summary.latency), ("service", &summary.service)] {
            if let Some(latency) = latency {
                self.latency(&format!("summary.{name}"), latency, is_imported);
            }
        }
        for BackgroundSummary { workload, tps, rate, latency, .. } in &summary.background {
            self.figure(&format!("tps of the background workload \"{workload}\""), *tps, PER_SECOND);
            self.figure(&format!("rate of the background workload \"{workload}\""), *rate, PER_SECOND);
            if let Some(latency) = latency {
                self.latency(&format!("latency of \"{workload}\""), latency, is_imported);
            }
        }
        if let Some(statistics) = &summary.statistics {
            self.statistics(statistics);
        }
        // Other programs may exclude the time to connect.
        if is_imported {
            return;
        }
        let Some(window_us) = summary.window_us.filter(|us| *us > 0) else { return };
        let per_second = |transactions: u64| transactions as f64 / (window_us as f64 / 1e6);
        let source = "its transactions and the window's length";
        let clients = trial.cell.clients.known().copied().unwrap_or_default();
        if let Some(tps) = trial.paired.as_ref().and_then(|paired| paired.tps(clients)) {
            self.equal("summary.tps", summary.tps, "its slices", tps);
        } else if let Some(transactions) = summary.transactions {
            self.equal("summary.tps", summary.tps, source, per_second(transactions));
        }
        for background in &summary.background {
            let name = format!("tps of the background workload \"{}\"", background.workload);
            self.equal(&name, background.tps, source, per_second(background.transactions));
        }
    }

    fn latency(&mut self, of: &str, latency: &Latency, is_imported: bool) {
        let Latency { mean_us, stddev_us, min_us, p50_us, p90_us, p95_us, p99_us, p999_us, max_us } = latency;
        let ascending = [
            ("min_us", min_us),
            ("p50_us", p50_us),
            ("p90_us", p90_us),
            ("p95_us", p95_us),
            ("p99_us", p99_us),
            ("p999_us", p999_us),
            ("max_us", max_us),
        ];
        let before = self.problems.len();
        for (name, value) in ascending.iter().chain(&[("mean_us", mean_us), ("stddev_us", stddev_us)]) {
            self.figure(&format!("{of}.{name}"), **value, DURATION_US);
        }
        // Those of an import may have several sources.
        if is_imported || self.problems.len() > before {
            return;
        }
        for pair in ascending.windows(2) {
            let [(low, from), (high, to)] = pair else { continue };
            self.ordered((&format!("{of}.{low}"), **from), (high, **to));
        }
        self.ordered((&format!("{of}.min_us"), *min_us), ("mean_us", *mean_us));
        self.ordered((&format!("{of}.mean_us"), *mean_us), ("max_us", *max_us));
    }

    fn statistics(&mut self, of: &Statistics) {
        self.figure("summary.statistics.tps_mean", of.tps_mean, PER_SECOND);
        self.figure("summary.statistics.effective_seconds", of.effective_seconds, 0.0..=YEAR_US as f64 / 1e6);
        self.figure("summary.statistics.trend_p", of.trend_p, SHARE);
        self.figure("summary.statistics.drift_share", of.drift_share, -1e9..=1e9);
        self.duration("summary.statistics.warmup_cut_us", of.warmup_cut_us);
        if let Some((low, high)) = of.tps_interval
            && low > high
        {
            self.problems.push(format!("summary.statistics.tps_interval goes from {low:?} to {high:?}"));
        }
        for stall in of.stalls.iter().flatten() {
            self.duration("start_us of a stall", stall.start_us);
            self.duration("length_us of a stall", stall.length_us);
            self.figure("usual_tps of a stall", stall.baseline_tps, PER_SECOND);
        }
        for percentile in &of.percentiles {
            self.figure("share of a percentile", percentile.share, SHARE);
            self.figure("value_us of a percentile", percentile.value_us, DURATION_US);
            if let Some((low, high)) = percentile.interval_us.filter(|(low, high)| low > high) {
                self.problems.push(format!("interval_us of a percentile goes from {low:?} to {high:?}"));
            }
        }
    }
}

fn within(name: &str, value: f64, range: RangeInclusive<f64>) -> Result<(), String> {
    match range.contains(&value) {
        true => Ok(()),
        false => Err(format!("{name} is {value:?}, not between {:?} and {:?}", range.start(), range.end())),
    }
}

/// Within a load: times after its start, also before it, when collectors begin.
fn of_load(name: &str, at_us: i64) -> Result<(), String> {
    match at_us.unsigned_abs() <= YEAR_US {
        true => Ok(()),
        false => Err(format!("{name} is {at_us} µs, more than a year from the load's start")),
    }
}

fn intervals(intervals: &[Interval]) -> Result<(), String> {
    let mut before = 0;
    for interval in intervals {
        let at = format!("at {} µs: ", interval.start_us);
        if interval.start_us < before {
            return Err(format!("{at}the row before begins later, at {before} µs"));
        }
        before = interval.start_us;
        let end_us = interval.start_us.saturating_add(interval.width_us);
        within(&format!("{at}the end"), end_us as f64, DURATION_US)?;
        let figures = [
            ("busy", interval.busy, SHARE),
            ("lag_max_us", interval.lag_max_us, DURATION_US),
            ("lag_mean_us", interval.lag_mean_us, DURATION_US),
            ("send_lag_max_us", interval.send_lag_max_us, DURATION_US),
        ];
        for (name, value, range) in figures {
            value.map_or(Ok(()), |value| within(&format!("{at}{name}"), value, range))?;
        }
    }
    Ok(())
}

fn transactions(record: &TrialRecord) -> Result<(), String> {
    let ends = record.spans.iter().map(|span| span.end_us).max();
    ends.map_or(Ok(()), |end_us| within("the end of a transaction", end_us as f64, DURATION_US))
}

fn readings(metrics: &Metrics) -> Result<(), String> {
    for series in &metrics.0 {
        let mut before = i64::MIN;
        for point in &series.points {
            let at = format!("{} at {} µs", series.metric, point.at_us);
            of_load(&format!("a reading of {}", series.metric), point.at_us)?;
            if point.at_us < before {
                return Err(format!("{at}: the reading before it is of {before} µs"));
            }
            before = point.at_us;
            point.value.map_or(Ok(()), |value| within(&at, value, READING))?;
        }
    }
    Ok(())
}

fn samples(record: &TrialRecord) -> Result<(), String> {
    for waits in &record.waits {
        of_load("a row", waits.at_us)?;
        within(&format!("at {} µs: the length", waits.at_us), waits.width_us as f64, DURATION_US)?;
        if waits.samples == 0 && waits.seen > 0 {
            return Err(format!(
                "at {} µs: sessions were seen {} times in no sample",
                waits.at_us, waits.seen
            ));
        }
    }
    Ok(())
}

fn costs(record: &TrialRecord) -> Result<(), String> {
    for statement in &record.statements {
        let of = |name: &str| format!("{name} of statement {}", statement.query_id);
        // Of all clients together.
        within(&of("total_us"), statement.total_us, 0.0..=YEAR_US as f64 * 1e6)?;
        statement
            .wal_bytes
            .map_or(Ok(()), |bytes| within(&of("wal_bytes"), bytes, 0.0..=READING.end().to_owned()))?;
    }
    Ok(())
}

fn profiled(profile: &ProfileSummary, stacks: &[Stacks]) -> Result<(), String> {
    let off_cpu = profile.off_cpu.as_ref().map(|off_cpu| (off_cpu.from_us, off_cpu.to_us));
    for (from_us, to_us) in [(profile.from_us, profile.to_us)].into_iter().chain(off_cpu) {
        of_load("the start of the profile", from_us)?;
        of_load("the end of the profile", to_us)?;
        if to_us < from_us {
            return Err(format!("the profile ends at {to_us} µs, before its start at {from_us} µs"));
        }
    }
    let found =
        stacks.iter().flat_map(|stacks| stacks.samples.values()).fold(0_u64, |sum, n| sum.saturating_add(*n));
    match found == profile.samples {
        true => Ok(()),
        false => Err(format!("the stacks have {found} samples, {} {}", format::TRIAL, profile.samples)),
    }
}
