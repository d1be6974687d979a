//! Replies from records.

use std::ops::Range;

use hdrhistogram::Histogram;
use model::message::{
    BackgroundOutcome, Interval, Outcome, Phase, PhaseLatencies, ScriptInterval, TransactionSpan,
};

use crate::error::LoadError;
use crate::histogram::{Encoder, add, figures, latencies};
use crate::load::Load;
use crate::observer;
use crate::record::{self, Intended, Record, ScriptRecord};
use crate::schedule::Schedule;
use crate::stall::Stall;

/// Sums a load interval by interval, and converts the intervals to replies.
pub(crate) struct Summary {
    /// By script, in the load's order.
    script_names: Vec<String>,
    /// Number of scripts of the main group.
    main: usize,
    background: Vec<Background>,
    open_loop: bool,
    /// End of the last interval.
    reported_until_ns: u64,
    warmup: u64,
    measured: u64,
    drain: u64,
    failed: u64,
    commits: u64,
    has_unreported_commits: bool,
    window: Histogram<u64>,
    /// None if the load runs in slices.
    stall: Option<Stall>,
    encoder: Encoder,
}

/// Counts of a background group.
struct Background {
    /// Numbers of its scripts.
    scripts: Range<usize>,
    /// Whether it has a schedule until the end of the load.
    has_schedule: bool,
    outcome: BackgroundOutcome,
    window: Histogram<u64>,
}

impl Summary {
    /// `names` are those of the background groups.
    pub(crate) fn new(load: &Load, names: Vec<String>) -> Result<Self, LoadError> {
        let scripts = load.groups().flat_map(|group| &group.scripts);
        let main = load.main.scripts.len();
        let mut first = main;
        let background = load.background.iter().zip(names).map(|(group, workload)| {
            let scripts = first..first + group.scripts.len();
            first = scripts.end;
            let outcome = BackgroundOutcome {
                workload,
                transactions: 0,
                window_transactions: 0,
                failed_transactions: 0,
                missed: None,
                latency: None,
            };
            let has_schedule = group.arrivals.is_open() && group.transactions.is_none();
            Ok(Background { scripts, has_schedule, outcome, window: latencies()? })
        });
        Ok(Self {
            script_names: scripts.map(|script| script.script.name().to_owned()).collect(),
            main,
            background: background.collect::<Result<_, LoadError>>()?,
            open_loop: load.main.arrivals.is_open(),
            reported_until_ns: 0,
            warmup: 0,
            measured: 0,
            drain: 0,
            failed: 0,
            commits: 0,
            has_unreported_commits: false,
            window: latencies()?,
            stall: load.slice_guard.is_none().then(|| Stall::new(Schedule::new(load).hundredth_ns())),
            encoder: Encoder::default(),
        })
    }

    /// The script and line of a message's client.
    pub(crate) fn location(&self, message: &observer::DriverMessage) -> String {
        let name = self.script_names.get(message.script).map_or("?", String::as_str);
        format!("line {} of script {name}", message.line)
    }

    /// Adds the next interval, and returns it as a reply.
    pub(crate) fn interval(&mut self, record: &Record) -> Result<Interval, LoadError> {
        self.commits += record.commits;
        self.has_unreported_commits |= record.has_unreported_commits;
        let mut scripts = Vec::with_capacity(record.scripts.len());
        for (number, (name, script)) in self.script_names.iter().zip(&record.scripts).enumerate() {
            let transactions = script.succeeded();
            let background =
                self.background.iter_mut().find(|background| background.scripts.contains(&number));
            if let Some(background) = background {
                background.outcome.failed_transactions += script.failures.sum();
                background.outcome.transactions += transactions;
                if record.phase == Phase::Measure {
                    add(&mut background.window, &script.latency)?;
                }
            } else {
                self.failed += script.failures.sum();
                match record.phase {
                    Phase::Warmup => self.warmup += transactions,
                    Phase::Drain => self.drain += transactions,
                    Phase::Measure => {
                        self.measured += transactions;
                        add(&mut self.window, &script.latency)?;
                    }
                }
            }
            scripts.push(ScriptInterval {
                script: name.clone(),
                transactions,
                failed: Some(script.failures.sum()),
                unfinished: script.unfinished(),
                latencies: encoded(&mut self.encoder, script, record.phase)?,
            });
        }
        if let Some(stall) = self.stall.as_mut().filter(|_| record.phase == Phase::Measure) {
            stall.add(record);
        }
        // After a stop, which threads notice one after the other, records overlap by the delay.
        let start_ns = record.start_ns.max(self.reported_until_ns);
        let end_ns = record.end_ns.max(start_ns);
        self.reported_until_ns = end_ns;
        // Rounded at both ends, so that an interval begins where the previous one ended.
        let start_us = start_ns / 1_000;
        let lag = record.lag;
        let background = scripts.split_off(self.main);
        let spans = record.spans.iter().map(|span| self.span(span)).collect();
        Ok(Interval {
            start_us,
            width_us: end_ns / 1_000 - start_us,
            phase: record.phase,
            scripts,
            background,
            spans,
            busy: Some(record.busy),
            lag_max_us: Some(lag.max_ns as f64 / 1e3),
            lag_mean_us: lag.mean_ns().map(|ns| ns / 1e3),
            responses: Some(lag.count),
            send_lag_max_us: self.open_loop.then_some(record.send_lag.max_ns as f64 / 1e3),
        })
    }

    fn span(&self, span: &record::TransactionSpan) -> TransactionSpan {
        TransactionSpan {
            script: self.script_names.get(span.script).cloned().unwrap_or_default(),
            client: span.client,
            start_us: span.start_ns / 1_000,
            end_us: span.end_ns / 1_000,
            failed: span.failed,
        }
    }

    /// The totals. `other_commits` are commits that the server counts in addition to those that it reported.
    pub(crate) fn outcome(&self, outcome: &observer::Outcome, other_commits: u64) -> Outcome {
        let intended = Intended::sum(&outcome.intended);
        Outcome {
            window_us: outcome.window_ns / 1_000,
            stopped_early: outcome.stopped_early,
            warmup_transactions: self.warmup,
            window_transactions: self.measured,
            drain_transactions: self.drain,
            failed_transactions: self.failed,
            latency: figures(intended.as_ref().map_or(&self.window, |intended| &intended.latency)),
            service: intended.as_ref().and_then(|intended| figures(&intended.service)),
            longest_stall_us: self.stall.as_ref().and_then(Stall::longest_us),
            background: self
                .background
                .iter()
                .zip(&outcome.background_missed)
                .map(|(background, missed)| background.outcome(*missed))
                .collect(),
            connections: outcome.connections,
            commits: self.commits,
            has_unreported_commits: self.has_unreported_commits,
            other_commits,
            cpu_us: outcome.cpu_us,
            engine: outcome.engine.name.to_owned(),
            engine_reason: outcome.engine.reason.clone(),
        }
    }
}

impl Background {
    fn outcome(&self, missed: u64) -> BackgroundOutcome {
        let missed = self.has_schedule.then_some(missed);
        let mut outcome = BackgroundOutcome { missed, ..self.outcome.clone() };
        outcome.window_transactions = self.window.len();
        outcome.latency = figures(&self.window);
        outcome
    }
}

/// The latencies of an interval of this phase in the encoding of messages.
fn encoded(
    encoder: &mut Encoder,
    script: &ScriptRecord,
    phase: Phase,
) -> Result<Vec<PhaseLatencies>, LoadError> {
    let mut all = Vec::new();
    for of_phase in script.by_phase(phase) {
        let service = of_phase.service.map(|service| encoder.encode(&service)).transpose()?;
        all.push(PhaseLatencies {
            phase: of_phase.phase,
            latency_ns: encoder.encode(&of_phase.latency)?,
            service_ns: service,
        });
    }
    Ok(all)
}
