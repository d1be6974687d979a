//! `--find-max`: the highest rate that meets the objectives.

use std::time::Duration;

use driver::{Arrivals, Intended, Load, Rate, Record};
use serde::{Serialize, Serializer};

use crate::error::RunError;
use crate::figures::{counted, grouped, ms, percent};
use crate::interrupt::Interrupt;
use crate::interval_log::IntervalLog;
use crate::live::Live;
use crate::measure::{Measurement, measure};
use crate::objective::{Objective, Window};
use crate::plan::SearchPlan;
use crate::search::{self, Next};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StepKind {
    /// Without a schedule: the clients' capacity.
    Closed,
    Try,
    /// The longer run at the end, which confirms the rate.
    Confirm,
}

/// Length of the confirmation, in steps.
const CONFIRM_LENGTH: u32 = 3;

/// Divisor of a step's length for the closed loop.
const CLOSED_LENGTH_DIVISOR: u32 = 2;

/// Factor for the next rate to confirm if the one that was found does not hold for longer.
const CONFIRM_RATE_FACTOR: f64 = 0.95;
const MAX_CONFIRMATIONS: u32 = 3;

/// Share of the arrivals that may never begin.
const MAX_NEVER_STARTED: f64 = 0.01;

impl StepKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed loop",
            Self::Try => "try",
            Self::Confirm => "confirm",
        }
    }
}

impl Step {
    /// The outcome in a few words.
    pub(crate) fn verdict(&self) -> String {
        match (self.holds, &self.reason) {
            (None, _) => String::new(),
            (Some(true), _) => "holds".to_owned(),
            (Some(false), None) => "fails".to_owned(),
            (Some(false), Some(reason)) if self.ended_early => format!("fails: {reason}, ended early"),
            (Some(false), Some(reason)) => format!("fails: {reason}"),
        }
    }
}

fn as_text<S: Serializer>(objectives: &[Objective], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(objectives.iter().map(ToString::to_string))
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
    let mut last = finder.run(StepKind::Closed, None, log.as_deref_mut())?;
    last.1.check_began(&last.0, interrupt)?;
    let mut found = None;
    let capacity = finder.steps.last().map_or(0.0, |step| step.tps);
    let mut search = search::Search::new(capacity);
    if capacity > 0.0 && !interrupt.is_requested() {
        while let Next::Try(rate) = search.next() {
            last = finder.run(StepKind::Try, Some(rate), log.as_deref_mut())?;
            if interrupt.is_requested() {
                break;
            }
            search.record(rate, finder.last_held());
        }
        if let Next::Found(rate) = search.next() {
            found = Some(rate);
        }
    }
    let mut confirmed = false;
    if let Some(rate) = &mut found {
        for attempt in 0..MAX_CONFIRMATIONS {
            if attempt > 0 {
                *rate *= CONFIRM_RATE_FACTOR;
            }
            last = finder.run(StepKind::Confirm, Some(*rate), log.as_deref_mut())?;
            if interrupt.is_requested() {
                break;
            }
            confirmed = finder.last_held();
            search.record(*rate, confirmed);
            if confirmed {
                break;
            }
        }
    }
    let (load, measurement) = last;
    let (low, high) = search.interval();
    let at_most_found = |low: f64| found.map_or(low, |found| low.min(found));
    let search = Search {
        objectives: plan.objectives.clone(),
        rate_per_s: found,
        low_per_s: low.map(at_most_found),
        high_per_s: high,
        contradictions: contradictions(&finder.steps, &plan.objectives),
        confirmed,
        steps: finder.steps,
    };
    Ok(SearchOutcome { search, load, measurement })
}

/// Steps that contradict each other: for each objective the most different ones, and outcomes.
fn contradictions(steps: &[Step], objectives: &[Objective]) -> Vec<String> {
    // All pairs of a step and one of at least its rate.
    let pairs = || {
        let of_lower = |lower: &'_ Step| lower.rate_per_s;
        steps.iter().flat_map(move |lower| {
            let higher = steps.iter().filter(move |higher| {
                of_lower(lower).zip(higher.rate_per_s).is_some_and(|(low, high)| low <= high)
            });
            higher.map(move |higher| (lower, higher))
        })
    };
    let mut found = Vec::new();
    for (number, objective) in objectives.iter().enumerate() {
        let values = pairs().filter_map(|(lower, higher)| {
            let values = (*lower.values.get(number)?)?..(*higher.values.get(number)?)?;
            let contradicts =
                objective.is_contradiction(values.start, values.end) && lower.rate_per_s < higher.rate_per_s;
            contradicts.then_some((values, lower.rate_per_s?, higher.rate_per_s?))
        });
        let most = values.max_by(|(a, ..), (b, ..)| (a.start / a.end).total_cmp(&(b.start / b.end)));
        if let Some((values, low, high)) = most {
            let (name, low, high) = (objective.figure_name(), grouped(low), grouped(high));
            let (slow, fast) = (ms(values.start * 1e3), ms(values.end * 1e3));
            found.push(format!("{name} was {slow} ms at {low}/s, and {fast} ms at {high}/s"));
        }
    }
    let outcomes = pairs().filter(|(lower, higher)| lower.holds == Some(false) && higher.holds == Some(true));
    let outcomes = outcomes.filter_map(|(lower, higher)| Some((lower.rate_per_s?, higher.rate_per_s?)));
    if let Some((low, high)) = outcomes.max_by(|(a, b), (c, d)| (b / a).total_cmp(&(d / c))) {
        found.push(match low == high {
            true => format!("{}/s failed in one run and held in another", grouped(low)),
            false => format!("{}/s failed, and {}/s held", grouped(low), grouped(high)),
        });
    }
    found
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

    fn last_held(&self) -> bool {
        self.steps.last().is_some_and(|step| step.holds == Some(true))
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
            let value = evaluation.and_then(|evaluation| evaluation.value);
            Some(match value {
                None => "nothing succeeded".to_owned(),
                Some(share) if objective.is_share() => {
                    format!("{} {}", objective.figure_name(), percent(share))
                }
                Some(us) => format!("{} {} ms", objective.figure_name(), ms(us * 1e3)),
            })
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
