//! Acceptance of shifts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::acceptance::Acceptance;
use stats::ChangePoint;
use store::{Store, new_id};

use super::{History, HistoryError, Shift, step};
use crate::levels::Levels;

/// A decision about the shifts at a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They are intended.
    Accept {
        /// The first step after the shift, by key or label.
        at: String,
        /// The reason.
        note: String,
        /// Who accepts it; `None` if unknown.
        by: Option<String>,
    },
    /// They are no longer accepted.
    Withdraw {
        /// The first step after the shift, by key or label.
        at: String,
    },
}

impl History {
    /// Finds the acceptance of each change point: one of this metric, control and kind of history, with its cell and
    /// direction, and with an overlapping range of steps.
    pub(super) fn mark_accepted(&mut self, acceptances: Vec<Acceptance>) {
        let is_ours = |acceptance: &Acceptance| {
            acceptance.metric == self.metric.to_string()
                && acceptance.control == self.control
                && acceptance.over == self.over.name()
        };
        self.accepted = acceptances.into_iter().filter(is_ours).collect();
        let place = |key: &str| self.steps.iter().position(|step| step.key == key || step.label == key);
        let places: Vec<Option<(usize, usize)>> = self
            .accepted
            .iter()
            .map(|acceptance| Some((place(&acceptance.before)?, place(&acceptance.after)?)))
            .collect();
        for series in &mut self.series {
            let covers = |change: &ChangePoint, at: usize| {
                let acceptance = &self.accepted[at];
                let meets = |(before, after): (usize, usize)| change.before < after && before < change.after;
                acceptance.fell == (change.effect.ratio < 1.0)
                    && places[at].is_some_and(meets)
                    && acceptance.cells.iter().any(|cell| is_cell(cell, &series.cell))
            };
            let latest = |change: &ChangePoint| (0..places.len()).rev().find(|at| covers(change, *at));
            series.accepted = series.changes.iter().map(latest).collect();
        }
    }

    /// Applies a decision to all shifts at a step, for the cells of this history, and marks them.
    ///
    /// # Errors
    /// There is no such step, no shift or acceptance there, or the store can't be written to.
    pub fn decide(&mut self, store: &Store, decision: Decision) -> Result<(), HistoryError> {
        match decision {
            Decision::Accept { at, note, by } => self.accept(store, &at, &note, by)?,
            Decision::Withdraw { at } => self.withdraw(store, &at)?,
        }
        self.mark_accepted(store.acceptances()?);
        self.gates = self.gates.iter().map(|outcome| super::gate::outcome(&outcome.gate, self)).collect();
        Ok(())
    }

    fn accept(&self, store: &Store, at: &str, note: &str, by: Option<String>) -> Result<(), HistoryError> {
        for shift in self.shifts_at(at)? {
            store.accept(&Acceptance {
                id: new_id(),
                metric: self.metric.to_string(),
                control: self.control.clone(),
                over: self.over.name().to_owned(),
                before: self.steps[shift.event.before].key.clone(),
                after: self.steps[shift.event.after].key.clone(),
                fell: shift.event.ratio < 1.0,
                cells: shift.event.changes.iter().map(|(at, _)| levels(&self.series[*at].cell)).collect(),
                note: note.to_owned(),
                by: by.clone(),
                at: Timestamp::now(),
            })?;
        }
        Ok(())
    }

    fn withdraw(&self, store: &Store, at: &str) -> Result<(), HistoryError> {
        let mut places: Vec<usize> =
            self.shifts_at(at)?.iter().flat_map(|shift| shift.accepted(self)).flatten().collect();
        places.sort_unstable();
        places.dedup();
        if places.is_empty() {
            return Err(HistoryError::NoShift(format!("the shift at {at} is not accepted")));
        }
        Ok(places.into_iter().try_for_each(|place| store.withdraw(&self.accepted[place]))?)
    }

    fn shifts_at(&self, at: &str) -> Result<Vec<&Shift>, HistoryError> {
        let place = step(&self.steps, at)?;
        let shifts: Vec<&Shift> = self.shifts.iter().filter(|shift| shift.event.after == place).collect();
        if !shifts.is_empty() {
            return Ok(shifts);
        }
        let mut known: Vec<&str> =
            self.shifts.iter().map(|shift| self.steps[shift.event.after].label.as_str()).collect();
        known.dedup();
        let known = match known.is_empty() {
            true => "this history has no shifts".to_owned(),
            false => format!("shifts are at {}", known.join(", ")),
        };
        Err(HistoryError::NoShift(format!("there is no shift at {at}: {known}")))
    }
}

fn levels(cell: &Levels) -> BTreeMap<String, String> {
    cell.iter().map(|(factor, level)| (factor.name().to_owned(), level.clone())).collect()
}

/// Whether an accepted cell is this one, in all factors that it names: later releases may have more factors.
fn is_cell(accepted: &BTreeMap<String, String>, cell: &Levels) -> bool {
    let cell = levels(cell);
    accepted.iter().all(|(factor, level)| cell.get(factor) == Some(level))
}
