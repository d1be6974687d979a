//! The results of a load on several hosts, summed: as one driver reports those of its threads.

use std::collections::BTreeMap;
use std::iter;

use hdrhistogram::Histogram;
use model::message::{BackgroundOutcome, Interval, Load, Outcome, Phase, PhaseLatencies, ScriptInterval};
use model::workload::BackgroundWorkload;

use crate::error::LoadError;
use crate::histogram::{Encoder, add, decode, figures, latencies};

/// Sums the intervals and the outcomes of a load's parts.
pub struct MergedLoad {
    parts: Vec<PartProgress>,
    /// Intervals that some parts have not yet reported.
    pending: BTreeMap<Place, IntervalSum>,
    /// End of the last merged interval.
    reported_until_us: u64,
    /// Latencies and service times of the window's transactions of the main workload.
    window: Histogram<u64>,
    service: Histogram<u64>,
    /// The same latencies of each background workload.
    background: Vec<Histogram<u64>>,
    /// The background workload of each of their scripts, in order.
    workload_of_script: Vec<usize>,
    is_open_loop: bool,
    has_iterations: bool,
    encoder: Encoder,
}

/// Place of an interval among those of its load. The drain begins when a part ends, so that only its intervals' numbers are
/// the same in all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Warmup { start_us: u64 },
    Measure { start_us: u64 },
    Drain { number: u64 },
}

/// Progress of one part.
#[derive(Default)]
struct PartProgress {
    /// The last interval that it has reported.
    last: Option<Place>,
    /// Number of intervals of the drain that it has reported.
    drained: u64,
    /// Transactions of the intervals that it has reported.
    counted: Counts,
    /// Whether it reports nothing more.
    has_ended: bool,
    outcome: Option<Outcome>,
}

/// Transactions of a part, which its intervals and its outcome count alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Succeeded transactions of the main workload that ended in the warm-up.
    warmup: u64,
    /// Those that ended in the window.
    window: u64,
    /// Those that ended in the drain.
    drain: u64,
    /// Failed ones, in any phase.
    failed: u64,
    /// Succeeded and failed ones of all background workloads, in any phase.
    background: u64,
}

/// An interval of several parts.
struct IntervalSum {
    /// Without latencies.
    interval: Interval,
    /// By script, in the order of the main workload's and then the background ones.
    latencies: Vec<Vec<PhaseSum>>,
}

/// Latencies of a script's transactions that count in one phase.
struct PhaseSum {
    phase: Phase,
    latency: Histogram<u64>,
    service: Option<Histogram<u64>>,
}

impl MergedLoad {
    /// Results of a load in this many parts.
    ///
    /// # Errors
    /// The memory for its histograms is not available.
    pub fn new(load: &Load, parts: usize) -> Result<Self, LoadError> {
        let custom = load.workload.custom();
        let background = custom.map(|custom| custom.background.as_slice()).unwrap_or_default();
        // A workload of pgbench's has one script.
        let scripts =
            |one: &BackgroundWorkload| one.workload.custom().map_or(1, |custom| custom.scripts.len());
        let workload_of_script =
            background.iter().enumerate().flat_map(|(at, one)| iter::repeat_n(at, scripts(one)));
        Ok(Self {
            parts: (0..parts).map(|_| PartProgress::default()).collect(),
            pending: BTreeMap::new(),
            reported_until_us: 0,
            window: latencies()?,
            service: latencies()?,
            background: background.iter().map(|_| latencies()).collect::<Result<_, _>>()?,
            workload_of_script: workload_of_script.collect(),
            is_open_loop: load.rate.get().is_some(),
            has_iterations: load.workload.iterations().is_some(),
            encoder: Encoder::default(),
        })
    }

    /// Adds the next interval of a part.
    ///
    /// # Errors
    /// It has other scripts than the same interval of other parts, or a histogram that can't be read.
    pub fn add(&mut self, part: usize, interval: Interval) -> Result<(), LoadError> {
        let progress = &mut self.parts[part];
        let start_us = interval.start_us;
        let place = match interval.phase {
            Phase::Warmup => Place::Warmup { start_us },
            Phase::Measure => Place::Measure { start_us },
            Phase::Drain => {
                progress.drained += 1;
                Place::Drain { number: progress.drained }
            }
        };
        progress.last = Some(place);
        progress.counted.add(&interval);
        let one = IntervalSum::new(interval)?;
        match self.pending.get_mut(&place) {
            Some(sum) => sum.add(one),
            None => {
                self.pending.insert(place, one);
                Ok(())
            }
        }
    }

    /// Marks the end of a part, with its outcome.
    ///
    /// # Errors
    /// Its intervals have other transactions than its outcome: some were lost on their way, and the part is to be
    /// [lost](Self::lose), too.
    pub fn end(&mut self, part: usize, outcome: Outcome) -> Result<(), LoadError> {
        let progress = &mut self.parts[part];
        let (arrived, ended) = (progress.counted.sum(), Counts::of_outcome(&outcome));
        if progress.counted != ended {
            return Err(LoadError::LostIntervals { arrived, ended: ended.sum() });
        }
        progress.has_ended = true;
        progress.outcome = Some(outcome);
        Ok(())
    }

    /// Marks the end of a part that is lost: it has no outcome.
    pub fn lose(&mut self, part: usize) {
        self.parts[part].has_ended = true;
    }

    /// The next interval that all parts have reported; none if some still have to.
    ///
    /// # Errors
    /// A histogram can't be written.
    pub fn next_interval(&mut self) -> Result<Option<Interval>, LoadError> {
        let Some(entry) = self.pending.first_entry() else { return Ok(None) };
        let place = *entry.key();
        let has_passed = |part: &PartProgress| part.has_ended || part.last >= Some(place);
        if !self.parts.iter().all(has_passed) {
            return Ok(None);
        }
        let IntervalSum { mut interval, latencies } = entry.remove();
        let main = interval.scripts.len();
        let scripts = interval.scripts.iter_mut().chain(&mut interval.background);
        for (at, (script, sums)) in scripts.zip(&latencies).enumerate() {
            for of_phase in sums {
                if of_phase.phase == Phase::Measure {
                    self.add_to_window(at.checked_sub(main), of_phase)?;
                }
                let PhaseSum { phase, latency, service } = of_phase;
                let encoded = self.encoder.encode(latency)?;
                let service = service.as_ref().map(|service| self.encoder.encode(service)).transpose()?;
                let of_phase = script.latencies_of(*phase);
                (of_phase.latency_ns, of_phase.service_ns) = (encoded, service);
            }
        }
        // After a stop, which parts notice one after the other, intervals overlap by the delay.
        let end_us = (interval.start_us + interval.width_us).max(self.reported_until_us);
        interval.start_us = interval.start_us.max(self.reported_until_us);
        interval.width_us = end_us - interval.start_us;
        self.reported_until_us = end_us;
        Ok(Some(interval))
    }

    /// Adds latencies that count in the window, of a script of the main workload or of a background one.
    fn add_to_window(&mut self, background: Option<usize>, of_phase: &PhaseSum) -> Result<(), LoadError> {
        let Some(script) = background else {
            add(&mut self.window, &of_phase.latency)?;
            return of_phase.service.iter().try_for_each(|service| add(&mut self.service, service));
        };
        let workload = self.workload_of_script.get(script);
        match workload.and_then(|workload| self.background.get_mut(*workload)) {
            Some(window) => add(window, &of_phase.latency),
            None => Ok(()),
        }
    }

    /// The totals of all parts that have ended, except those that were lost; none without any.
    pub fn outcome(&self) -> Option<Outcome> {
        let mut outcomes = self.parts.iter().filter_map(|part| part.outcome.as_ref());
        let mut sum = outcomes.next()?.clone();
        for one in outcomes {
            self.add_outcome(&mut sum, one);
        }
        sum.latency = figures(&self.window);
        sum.service = if self.is_open_loop { figures(&self.service) } else { None };
        for (background, window) in sum.background.iter_mut().zip(&self.background) {
            background.latency = figures(window);
        }
        Some(sum)
    }

    fn add_outcome(&self, sum: &mut Outcome, one: &Outcome) {
        sum.window_us = sum.window_us.max(one.window_us);
        // Where clients have iterations, each has to complete them.
        sum.stopped_early = match self.has_iterations {
            true => sum.stopped_early || one.stopped_early,
            false => sum.stopped_early && one.stopped_early,
        };
        sum.warmup_transactions += one.warmup_transactions;
        sum.window_transactions += one.window_transactions;
        sum.drain_transactions += one.drain_transactions;
        sum.failed_transactions += one.failed_transactions;
        // A time without an end on any host is not known.
        sum.longest_stall_us = None;
        for (sum, one) in sum.background.iter_mut().zip(&one.background) {
            add_background(sum, one);
        }
        sum.connections += one.connections;
        sum.commits += one.commits;
        sum.has_unreported_commits |= one.has_unreported_commits;
        sum.other_commits += one.other_commits;
        sum.cpu_us += one.cpu_us;
        if !sum.engine.split(", ").any(|engine| engine == one.engine) {
            sum.engine = format!("{}, {}", sum.engine, one.engine);
        }
        sum.engine_reason = sum.engine_reason.take().or_else(|| one.engine_reason.clone());
    }
}

fn add_background(sum: &mut BackgroundOutcome, one: &BackgroundOutcome) {
    sum.transactions += one.transactions;
    sum.window_transactions += one.window_transactions;
    sum.failed_transactions += one.failed_transactions;
    sum.missed = both(sum.missed, one.missed, u64::saturating_add);
}

impl Counts {
    fn of_outcome(outcome: &Outcome) -> Self {
        let background = outcome.background.iter();
        Self {
            warmup: outcome.warmup_transactions,
            window: outcome.window_transactions,
            drain: outcome.drain_transactions,
            failed: outcome.failed_transactions,
            background: background.map(|one| one.transactions + one.failed_transactions).sum(),
        }
    }

    /// Adds an interval.
    fn add(&mut self, interval: &Interval) {
        let succeeded =
            |scripts: &[ScriptInterval]| -> u64 { scripts.iter().map(|script| script.transactions).sum() };
        let failed =
            |scripts: &[ScriptInterval]| -> u64 { scripts.iter().filter_map(|script| script.failed).sum() };
        let of_phase = match interval.phase {
            Phase::Warmup => &mut self.warmup,
            Phase::Measure => &mut self.window,
            Phase::Drain => &mut self.drain,
        };
        *of_phase += succeeded(&interval.scripts);
        self.failed += failed(&interval.scripts);
        self.background += succeeded(&interval.background) + failed(&interval.background);
    }

    fn sum(&self) -> u64 {
        self.warmup + self.window + self.drain + self.failed + self.background
    }
}

impl IntervalSum {
    fn new(mut interval: Interval) -> Result<Self, LoadError> {
        let scripts = interval.scripts.iter_mut().chain(&mut interval.background);
        let latencies = scripts.map(PhaseSum::take_all).collect::<Result<_, _>>()?;
        Ok(Self { interval, latencies })
    }

    /// Adds the same interval of another part.
    fn add(&mut self, other: Self) -> Result<(), LoadError> {
        let Self { interval: sum, latencies } = self;
        let one = other.interval;
        let scripts = |interval: &Interval| {
            let all = interval.scripts.iter().chain(&interval.background);
            all.map(|script| script.script.clone()).collect::<Vec<_>>()
        };
        if scripts(sum) != scripts(&one) {
            let (ours, theirs) = (scripts(&one).join(", "), scripts(sum).join(", "));
            return Err(LoadError::Internal(format!("it ran the scripts {ours}, others {theirs}")));
        }
        let end_us = (sum.start_us + sum.width_us).max(one.start_us + one.width_us);
        sum.start_us = sum.start_us.min(one.start_us);
        sum.width_us = end_us - sum.start_us;
        let lag_us = sum.lag_us().unwrap_or_default() + one.lag_us().unwrap_or_default();
        let others = one.scripts.iter().chain(&one.background);
        for (script, other) in sum.scripts.iter_mut().chain(&mut sum.background).zip(others) {
            script.transactions += other.transactions;
            script.failed = both(script.failed, other.failed, u64::saturating_add);
            script.unfinished = both(script.unfinished, other.unfinished, u64::saturating_add);
        }
        for (sums, more) in latencies.iter_mut().zip(other.latencies) {
            PhaseSum::add_all(sums, more)?;
        }
        sum.spans.extend(one.spans);
        sum.busy = both(sum.busy, one.busy, f64::max);
        sum.lag_max_us = both(sum.lag_max_us, one.lag_max_us, f64::max);
        sum.responses = both(sum.responses, one.responses, u64::saturating_add);
        sum.lag_mean_us = sum.responses.filter(|n| *n > 0).map(|responses| lag_us / responses as f64);
        sum.send_lag_max_us = both(sum.send_lag_max_us, one.send_lag_max_us, f64::max);
        Ok(())
    }
}

/// Both values combined; unknown if one of them is.
fn both<T>(one: Option<T>, other: Option<T>, combine: fn(T, T) -> T) -> Option<T> {
    one.zip(other).map(|(one, other)| combine(one, other))
}

impl PhaseSum {
    /// Takes the latencies out of a script's interval.
    fn take_all(script: &mut ScriptInterval) -> Result<Vec<Self>, LoadError> {
        let of_phase = |of_phase: PhaseLatencies| {
            Ok(Self {
                phase: of_phase.phase,
                latency: decode(&of_phase.latency_ns)?,
                service: of_phase.service_ns.as_deref().map(decode).transpose()?,
            })
        };
        script.latencies.drain(..).map(of_phase).collect()
    }

    fn add_all(sums: &mut Vec<Self>, more: Vec<Self>) -> Result<(), LoadError> {
        for one in more {
            match sums.iter_mut().find(|sum| sum.phase == one.phase) {
                Some(sum) => {
                    add(&mut sum.latency, &one.latency)?;
                    match (&mut sum.service, one.service) {
                        (Some(sum), Some(one)) => add(sum, &one)?,
                        (sum @ None, one) => *sum = one,
                        (Some(_), None) => {}
                    }
                }
                None => sums.push(one),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
