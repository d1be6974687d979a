//! The search for the highest rate or speed that meets objectives: which steps are run, and what follows from them.

use replay::StepKind;
use serde::Serializer;

use crate::figures::ms;
use crate::objective::Objective;
use crate::search::{Next, Search};

/// How a step ended.
pub(crate) enum StepEnd {
    /// With the capacity in a closed loop, and whether the objectives were met.
    Ended { capacity: f64, holds: bool },
    /// The search is to end.
    Interrupted,
}

/// What a search found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Highest {
    /// The highest value that meets the objectives.
    pub(crate) value: Option<f64>,
    /// Up to this value, all steps held.
    pub(crate) low: Option<f64>,
    /// From this value on, all steps failed.
    pub(crate) high: Option<f64>,
    /// Whether the last run also met them.
    pub(crate) confirmed: bool,
}

/// Factor for the next value to confirm if the one that was found does not hold then.
const CONFIRM_FACTOR: f64 = 0.95;
const MAX_CONFIRMATIONS: u32 = 3;

/// Searches for the highest value by steps: a closed loop, tries and confirmations. Values above `limit` times the capacity are
/// not tried. Also returns the result of the last step.
///
/// # Errors
/// A step can't be run.
pub(crate) fn find_highest<T, E>(
    limit: f64,
    step: &mut dyn FnMut(StepKind, Option<f64>) -> Result<(StepEnd, T), E>,
) -> Result<(Highest, T), E> {
    let (end, mut last) = step(StepKind::Closed, None)?;
    let StepEnd::Ended { capacity, .. } = end else { return Ok((Highest::default(), last)) };
    if capacity <= 0.0 {
        return Ok((Highest::default(), last));
    }
    let mut search = Search::new(capacity);
    let mut run = |kind, value, search: &mut Search| {
        let (end, result) = step(kind, Some(value))?;
        last = result;
        Ok(match end {
            StepEnd::Ended { holds, .. } => {
                search.record(value, holds);
                Some(holds)
            }
            StepEnd::Interrupted => None,
        })
    };
    let mut found = None;
    loop {
        match search.next() {
            Next::Try(value) if value > capacity * limit => {
                found = search.interval().0;
                break;
            }
            Next::Try(value) => {
                if run(StepKind::Try, value, &mut search)?.is_none() {
                    break;
                }
            }
            Next::NotFound(_) => break,
            Next::Found(value) => {
                found = Some(value);
                break;
            }
        }
    }
    let mut confirmed = false;
    if let Some(value) = &mut found {
        for attempt in 0..MAX_CONFIRMATIONS {
            if attempt > 0 {
                *value *= CONFIRM_FACTOR;
            }
            let held = run(StepKind::Confirm, *value, &mut search)?;
            confirmed = held == Some(true);
            if held != Some(false) {
                break;
            }
        }
    }
    let (low, high) = search.interval();
    let at_most_found = |low: f64| found.map_or(low, |found| low.min(found));
    Ok((Highest { value: found, low: low.map(at_most_found), high, confirmed }, last))
}

/// A step that ended, as contradictions need it.
pub(crate) struct Point<'a> {
    /// Rate or speed; none in a closed loop.
    pub(crate) at: Option<f64>,
    /// The value of each objective's figure.
    pub(crate) values: &'a [Option<f64>],
    pub(crate) holds: Option<bool>,
}

/// Steps that contradict each other: for each objective the most different ones, and outcomes. `shown` is a rate or speed in
/// words.
pub(crate) fn contradictions(
    points: &[Point<'_>],
    objectives: &[Objective],
    shown: &dyn Fn(f64) -> String,
) -> Vec<String> {
    // All pairs of a step and one of at least its rate.
    let pairs = || {
        points.iter().flat_map(move |lower| {
            let higher = points
                .iter()
                .filter(move |higher| lower.at.zip(higher.at).is_some_and(|(low, high)| low <= high));
            higher.map(move |higher| (lower, higher))
        })
    };
    let mut found = Vec::new();
    for (number, objective) in objectives.iter().enumerate() {
        let values = pairs().filter_map(|(lower, higher)| {
            let values = (*lower.values.get(number)?)?..(*higher.values.get(number)?)?;
            let contradicts = objective.is_contradiction(values.start, values.end) && lower.at < higher.at;
            contradicts.then_some((values, lower.at?, higher.at?))
        });
        let most = values.max_by(|(a, ..), (b, ..)| (a.start / a.end).total_cmp(&(b.start / b.end)));
        if let Some((values, low, high)) = most {
            let (name, low, high) = (objective.figure_name(), shown(low), shown(high));
            let (slow, fast) = (ms(values.start * 1e3), ms(values.end * 1e3));
            found.push(format!("{name} was {slow} ms at {low}, and {fast} ms at {high}"));
        }
    }
    let outcomes = pairs().filter(|(lower, higher)| lower.holds == Some(false) && higher.holds == Some(true));
    let outcomes = outcomes.filter_map(|(lower, higher)| Some((lower.at?, higher.at?)));
    if let Some((low, high)) = outcomes.max_by(|(a, b), (c, d)| (b / a).total_cmp(&(d / c))) {
        found.push(match low == high {
            true => format!("{} failed in one run and held in another", shown(low)),
            false => format!("{} failed, and {} held", shown(low), shown(high)),
        });
    }
    found
}

/// Serializes objectives as they were given.
pub(crate) fn as_text<S: Serializer>(objectives: &[Objective], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(objectives.iter().map(ToString::to_string))
}
