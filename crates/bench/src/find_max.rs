//! `--find-max`: the highest rate that meets the objectives.

use std::time::Duration;

use driver::{Arrivals, Intended, Load, Rate, Record};
use replay::{StepKind, step_verdict};
use serde::Serialize;

use crate::error::RunError;
use crate::figures::{counted, grouped};
use crate::highest::{Point, StepEnd, as_text, contradictions, find_highest};
use crate::interrupt::Interrupt;
use crate::interval_log::IntervalLog;
use crate::live::Live;
use crate::measure::{Measurement, measure};
use crate::objective::{Objective, Window};
use crate::plan::SearchPlan;

/// A search that has ended.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Search {
    #[serde(serialize_with = "as_text")]
    pub(crate) objectives: Vec<Objective>,
    /// The highest rate that meets them; null if none does.
    pub(crate) rate_per_s: Option<f64>,
    /// Up to this rate, all steps held; null if there is none.
    pub(crate) low_per_s: Option<f64>,
    /// From this rate on, all steps failed; null if there is none.
    pub(crate) high_per_s: Option<f64>,
    /// Steps that contradict each other.
    pub(crate) contradictions: Vec<String>,
    /// Whether a longer run also met them.
    pub(crate) confirmed: bool,
    pub(crate) steps: Vec<Step>,
}

/// One load of a search.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    /// Null in a closed loop.
    pub(crate) rate_per_s: Option<f64>,
    pub(crate) tps: f64,
    pub(crate) window_us: f64,
    /// The value of each objective's figure: microseconds, for errors a share.
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) never_begun: u64,
    /// Whether all objectives were met; null in a closed loop, where they do not apply.
    pub(crate) holds: Option<bool>,
    /// Reason why they were not.
    pub(crate) reason: Option<String>,
    /// Whether it ended early because an objective was violated.
    pub(crate) ended_early: bool,
}

/// Length of the confirmation, in steps.
const CONFIRM_LENGTH: u32 = 3;

/// Divisor of a step's length for the closed loop.
const CLOSED_LENGTH_DIVISOR: u32 = 2;

/// Share of the arrivals that may never begin.
const MAX_NEVER_STARTED: f64 = 0.01;

impl Step {
    /// The outcome in a few words.
    pub(crate) fn verdict(&self) -> String {
        step_verdict(self.holds, self.reason.as_deref(), self.ended_early)
    }
}

/// A search with its last load and measurement.
pub(crate) struct SearchOutcome {
    pub(crate) search: Search,
    pub(crate) load: Load,
    pub(crate) measurement: Measurement,
}

/// Searches for the highest rate. `load` is the common part of the steps.
///
/// # Errors
/// A load can't be run.
pub(crate) fn find_max(
    load: &Load,
    plan: &SearchPlan,
    interrupt: &Interrupt,
    live: &mut Live<'_>,
    mut log: Option<&mut IntervalLog>,
) -> Result<SearchOutcome, RunError> {
    let mut finder = Finder { load, plan, interrupt, live, steps: Vec::new() };
    let (highest, (load, measurement)) = find_highest(f64::INFINITY, &mut |kind, rate| {
        let (load, measurement) = finder.run(kind, rate, log.as_deref_mut())?;
        if kind == StepKind::Closed {
            measurement.check_began(&load, interrupt)?;
        }
        let end = match finder.steps.last() {
            Some(step) if !interrupt.is_requested() => {
                StepEnd::Ended { capacity: step.tps, holds: step.holds == Some(true) }
            }
            _ => StepEnd::Interrupted,
        };
        Ok::<_, RunError>((end, (load, measurement)))
    })?;
    let steps = finder.steps.iter();
    let points: Vec<_> =
        steps.map(|step| Point { at: step.rate_per_s, values: &step.values, holds: step.holds }).collect();
    let contradictions = contradictions(&points, &plan.objectives, &|rate| format!("{}/s", grouped(rate)));
    let search = Search {
        objectives: plan.objectives.clone(),
        rate_per_s: highest.value,
        low_per_s: highest.low,
        high_per_s: highest.high,
        contradictions,
        confirmed: highest.confirmed,
        steps: finder.steps,
    };
    Ok(SearchOutcome { search, load, measurement })
}

struct Finder<'a, 'view> {
    load: &'a Load,
    plan: &'a SearchPlan,
    interrupt: &'a Interrupt,
    live: &'a mut Live<'view>,
    steps: Vec<Step>,
}

impl Finder<'_, '_> {
    fn run(
        &mut self,
        kind: StepKind,
        rate: Option<f64>,
        log: Option<&mut IntervalLog>,
    ) -> Result<(Load, Measurement), RunError> {
        let mut load = self.load.clone();
        let length = match kind {
            StepKind::Closed => self.plan.step / CLOSED_LENGTH_DIVISOR,
            StepKind::Try => self.plan.step,
            StepKind::Confirm => self.plan.step * CONFIRM_LENGTH,
        };
        load.length = Some(length);
        load.main.arrivals = match rate {
            Some(rate) => Arrivals::Rate(Rate::constant(rate, self.plan.spacing)),
            None => Arrivals::Closed,
        };
        // Often enough to end a failing step early.
        load.interval = load.interval.min((length / 20).max(Duration::from_millis(10)));
        let expected = rate.unwrap_or_default() * length.as_secs_f64();
        let objectives = &self.plan.objectives;
        let is_try = kind == StepKind::Try;
        let is_violated = |record: &Record| {
            let window = if is_try { Window::from_record(record) } else { None };
            window.is_some_and(|window| {
                objectives.iter().any(|objective| objective.is_violated(&window, expected))
            })
        };
        let label = match rate {
            Some(rate) => format!("{:<11} {:>9}/s", kind.as_str(), grouped(rate)),
            None => format!("{:<11} {:>11}", kind.as_str(), ""),
        };
        self.live.begin(&load, Some(&label));
        let measurement = measure(load.clone(), self.interrupt.control(), self.live, log, &is_violated)?;
        let step = self.evaluate(kind, rate, &measurement);
        self.live.line(format!("{label}  {:>9} tps   {}", grouped(step.tps), step.verdict()).trim_end());
        self.steps.push(step);
        Ok((load, measurement))
    }

    fn evaluate(&self, kind: StepKind, rate: Option<f64>, measurement: &Measurement) -> Step {
        let mut window = measurement.window.as_ref().and_then(Window::from_record);
        // A step that was ended early has failed because of what had ended until then.
        if let Some(intended) =
            Intended::sum(&measurement.outcome.intended).filter(|_| !measurement.ended_early)
        {
            window = window.map(|window| window.with_intended(&intended));
        }
        let evaluations: Vec<_> = match &window {
            Some(window) => {
                self.plan.objectives.iter().map(|objective| Some(objective.evaluate(window))).collect()
            }
            None => self.plan.objectives.iter().map(|_| None).collect(),
        };
        let done: u64 = measurement.intervals.iter().map(|interval| interval.transactions).sum();
        let tps = if measurement.outcome.window_ns == 0 {
            0.0
        } else {
            done as f64 * 1e9 / measurement.outcome.window_ns as f64
        };
        let ended: u64 = measurement
            .intervals
            .iter()
            .map(|interval| interval.transactions + interval.failed + interval.skipped)
            .sum();
        let never = measurement.outcome.missed;
        let mut objectives = self.plan.objectives.iter().zip(&evaluations);
        let violated = objectives.find(|(_, evaluation)| !evaluation.is_some_and(|e| e.holds));
        let reason = if measurement.outcome.aborted > 0 {
            Some(format!("{} aborted", counted(u64::from(measurement.outcome.aborted), "client")))
        } else if let Some((objective, evaluation)) = violated {
            Some(objective.violation(evaluation.and_then(|evaluation| evaluation.value)))
        } else if never as f64 > MAX_NEVER_STARTED * (ended + never) as f64
            && never > u64::from(self.load.clients())
        {
            Some(format!("{} never started", counted(never, "arrival")))
        } else {
            None
        };
        Step {
            kind,
            rate_per_s: rate,
            tps,
            window_us: measurement.outcome.window_ns as f64 / 1e3,
            values: evaluations.iter().map(|evaluation| evaluation.and_then(|e| e.value)).collect(),
            never_begun: never,
            holds: rate.map(|_| reason.is_none()),
            reason: reason.filter(|_| rate.is_some()),
            ended_early: measurement.ended_early,
        }
    }
}
