//! `--find-max`: the highest rate that holds objectives.

use std::time::Duration;

use driver::{Arrivals, Load, Rate, Record, Spacing};
use serde::{Serialize, Serializer};

use super::figures::{counted, grouped, ms, percent};
use super::interrupt::Interrupt;
use super::interval_log::IntervalLog;
use super::live::Live;
use super::measure::{Measured, measure};
use super::objective::{Objective, Window};
use super::search::{self, Next};

/// A search that has ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Search {
    #[serde(serialize_with = "in_words")]
    pub(super) objectives: Vec<Objective>,
    /// The highest rate that was found to hold them; null where none was.
    pub(super) rate_per_s: Option<f64>,
    /// Whether it did so for longer, too.
    pub(super) confirmed: bool,
    pub(super) steps: Vec<Step>,
}

/// A load of a search.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Step {
    pub(super) kind: StepKind,
    /// Null in a closed loop.
    pub(super) rate_per_s: Option<f64>,
    pub(super) tps: f64,
    pub(super) window_us: f64,
    /// What came out of each objective: microseconds, of errors a share.
    pub(super) values: Vec<Option<f64>>,
    pub(super) never_begun: u64,
    /// Null in a closed loop, which is not asked.
    pub(super) holds: Option<bool>,
    /// Why it does not.
    pub(super) reason: Option<String>,
    /// Whether it was ended early, for it could not hold any longer.
    pub(super) ended_early: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StepKind {
    /// Without a schedule, to see what the clients can do.
    Closed,
    Try,
    /// The longer run at the end.
    Confirm,
}

/// How much longer than a step it is confirmed.
const LONGER: u32 = 3;

/// How much shorter than a step the closed loop is.
const SHORTER: u32 = 2;

/// Rates a bit below that are confirmed where the one that was found does not hold for longer.
const LOWER: f64 = 0.95;
const CONFIRMATIONS: u32 = 3;

/// Share of the arrivals that may never begin.
const NEVER_BEGUN: f64 = 0.01;

impl StepKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed loop",
            Self::Try => "try",
            Self::Confirm => "confirm",
        }
    }
}

impl Step {
    /// In a word or two.
    pub(super) fn verdict(&self) -> String {
        match (self.holds, &self.reason) {
            (None, _) => String::new(),
            (Some(true), _) => "holds".to_owned(),
            (Some(false), None) => "fails".to_owned(),
            (Some(false), Some(reason)) if self.ended_early => format!("fails: {reason}, ended early"),
            (Some(false), Some(reason)) => format!("fails: {reason}"),
        }
    }
}

fn in_words<S: Serializer>(objectives: &[Objective], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(objectives.iter().map(ToString::to_string))
}

/// What a search gives back: its steps, and the last load with what came of it.
pub(super) struct Found {
    pub(super) search: Search,
    pub(super) load: Load,
    pub(super) measured: Measured,
}

/// Searches. `step` is the load that steps have in common: its length is theirs, its arrivals say how they are spaced.
///
/// # Errors
/// A load cannot be run.
pub(super) fn find_max(
    step: &Load,
    spacing: Spacing,
    objectives: &[Objective],
    interrupt: &Interrupt,
    live: &mut Live,
    mut log: Option<&mut IntervalLog>,
) -> anyhow::Result<Found> {
    let mut finder = Finder { step, spacing, objectives, interrupt, live, steps: Vec::new() };
    let mut last = finder.run(StepKind::Closed, None, log.as_deref_mut())?;
    let mut found = None;
    let capacity = finder.steps.last().map_or(0.0, |step| step.tps);
    if capacity > 0.0 && !interrupt.happened_already() {
        let mut search = search::Search::new(capacity);
        while let Next::Try(rate) = search.next() {
            last = finder.run(StepKind::Try, Some(rate), log.as_deref_mut())?;
            if interrupt.happened_already() {
                break;
            }
            search.tried(rate, finder.last_held());
        }
        if let Next::Found(rate) = search.next() {
            found = Some(rate);
        }
    }
    let mut confirmed = false;
    if let Some(rate) = &mut found {
        for attempt in 0..CONFIRMATIONS {
            if attempt > 0 {
                *rate *= LOWER;
            }
            last = finder.run(StepKind::Confirm, Some(*rate), log.as_deref_mut())?;
            confirmed = finder.last_held() && !interrupt.happened_already();
            if confirmed || interrupt.happened_already() {
                break;
            }
        }
    }
    let (load, measured) = last;
    let search =
        Search { objectives: objectives.to_vec(), rate_per_s: found, confirmed, steps: finder.steps };
    Ok(Found { search, load, measured })
}

struct Finder<'a> {
    step: &'a Load,
    spacing: Spacing,
    objectives: &'a [Objective],
    interrupt: &'a Interrupt,
    live: &'a mut Live,
    steps: Vec<Step>,
}

impl Finder<'_> {
    fn run(
        &mut self,
        kind: StepKind,
        rate: Option<f64>,
        log: Option<&mut IntervalLog>,
    ) -> anyhow::Result<(Load, Measured)> {
        let mut load = self.step.clone();
        let Some(step) = load.length else { anyhow::bail!("a step of a search has a duration") };
        let length = match kind {
            StepKind::Closed => step / SHORTER,
            StepKind::Try => step,
            StepKind::Confirm => step * LONGER,
        };
        load.length = Some(length);
        load.main.arrivals = match rate {
            Some(rate) => Arrivals::Rate(Rate::constant(rate, self.spacing)),
            None => Arrivals::Closed,
        };
        // Often enough to see early what is lost.
        load.interval = load.interval.min((length / 20).max(Duration::from_millis(10)));
        let expected = rate.unwrap_or_default() * length.as_secs_f64();
        let objectives = self.objectives;
        let is_try = kind == StepKind::Try;
        let lost = |record: &Record| {
            let window = if is_try { Window::of(record) } else { None };
            window
                .is_some_and(|window| objectives.iter().any(|objective| objective.is_lost(&window, expected)))
        };
        let label = match rate {
            Some(rate) => format!("{:<11} {:>9}/s", kind.name(), grouped(rate)),
            None => format!("{:<11} {:>11}", kind.name(), ""),
        };
        self.live.expect(&load, &label);
        let measured = measure(load.clone(), self.interrupt.control(), self.live, log, &lost)?;
        let step = self.judged(kind, rate, &measured);
        self.live.line(format!("{label}  {:>9} tps   {}", grouped(step.tps), step.verdict()).trim_end());
        self.steps.push(step);
        Ok((load, measured))
    }

    fn last_held(&self) -> bool {
        self.steps.last().is_some_and(|step| step.holds == Some(true))
    }

    fn judged(&self, kind: StepKind, rate: Option<f64>, measured: &Measured) -> Step {
        let window = measured.window.as_ref().and_then(Window::of);
        let reached: Vec<_> = match &window {
            Some(window) => self.objectives.iter().map(|objective| Some(objective.reached(window))).collect(),
            None => self.objectives.iter().map(|_| None).collect(),
        };
        let done: u64 = measured.intervals.iter().map(|interval| interval.transactions).sum();
        let tps = if measured.outcome.window_ns == 0 {
            0.0
        } else {
            done as f64 * 1e9 / measured.outcome.window_ns as f64
        };
        let ended: u64 = measured
            .intervals
            .iter()
            .map(|interval| interval.transactions + interval.failed + interval.skipped)
            .sum();
        let never = measured.outcome.missed;
        let broken =
            self.objectives.iter().zip(&reached).find(|(_, reached)| !reached.is_some_and(|r| r.holds));
        let reason = if measured.outcome.aborted > 0 {
            Some(format!("{} aborted", counted(u64::from(measured.outcome.aborted), "client")))
        } else if let Some((objective, reached)) = broken {
            let value = reached.and_then(|reached| reached.value);
            Some(match value {
                None => "nothing succeeded".to_owned(),
                Some(share) if objective.is_share() => format!("{} {}", objective.name(), percent(share)),
                Some(us) => format!("{} {} ms", objective.name(), ms(us * 1e3)),
            })
        } else if never as f64 > NEVER_BEGUN * (ended + never) as f64
            && never > u64::from(self.step.clients())
        {
            Some(format!("{} never began", counted(never, "arrival")))
        } else {
            None
        };
        Step {
            kind,
            rate_per_s: rate,
            tps,
            window_us: measured.outcome.window_ns as f64 / 1e3,
            values: reached.iter().map(|reached| reached.and_then(|reached| reached.value)).collect(),
            never_begun: never,
            holds: rate.map(|_| reason.is_none()),
            reason: reason.filter(|_| rate.is_some()),
            ended_early: measured.given_up,
        }
    }
}
