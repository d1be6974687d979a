//! Gates on a history: bounds on shifts that are not accepted.

use super::{History, Series, Tested};
use crate::compare::Gate;

/// Outcome of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct GateOutcome {
    /// The gate.
    pub gate: Gate,
    /// Indices of the series and of its change point for each hit: a change by more than the bound, in one of the
    /// newest steps, and not accepted.
    pub hit: Vec<(usize, usize)>,
    /// Indices of the series that could not be searched for changes.
    pub undecided: Vec<usize>,
}

/// The outcome of a gate.
pub(super) fn outcome(gate: &Gate, history: &History) -> GateOutcome {
    let oldest = history.newest.map_or(0, |newest| history.steps.len().saturating_sub(newest));
    let hits = |series: &Series| {
        let hits =
            series.changes.iter().zip(&series.accepted).enumerate().filter(|(_, (change, accepted))| {
                accepted.is_none() && change.after >= oldest && gate.is_beyond(change.effect.ratio)
            });
        hits.map(|(at, _)| at).collect::<Vec<usize>>()
    };
    let all = || history.series.iter().enumerate();
    GateOutcome {
        gate: gate.clone(),
        hit: all()
            .flat_map(|(at, series)| hits(series).into_iter().map(move |change| (at, change)))
            .collect(),
        undecided: all().filter(|(_, series)| series.tested != Tested::Yes).map(|(at, _)| at).collect(),
    }
}
