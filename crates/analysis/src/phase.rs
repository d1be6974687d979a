//! One phase of a trial, as a trial of its own.

use model::record::TrialRecord;

use crate::select::SelectError;

/// Error of a phase.
#[derive(Debug, thiserror::Error)]
pub enum PhaseError {
    /// The trials can't be selected.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// Phases are those of one trial.
    #[error("{0} trials are selected, and a phase is that of one: give a trial's id, or the beginning of it")]
    SeveralTrials(usize),
    /// The trial has no phases.
    #[error("trial {id} has no phases: its workload runs one load")]
    NoPhases {
        /// The trial.
        id: String,
    },
    /// The trial has other phases.
    #[error("trial {id} has no phase \"{phase}\"; it has {}", known.join(", "))]
    Unknown {
        /// The trial.
        id: String,
        /// The phase that was asked for.
        phase: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// The phase has no results.
    #[error("the phase \"{phase}\" of trial {id} did not run: `pgdyno show {id}` has the reason")]
    NotRun {
        /// The trial.
        id: String,
        /// The phase.
        phase: String,
    },
}

/// A phase of a trial, as a trial of its own.
///
/// # Errors
/// It has no such phase, or the phase did not run.
pub fn phase_of(record: &TrialRecord, phase: &str) -> Result<TrialRecord, PhaseError> {
    let id = || record.trial.id.clone();
    let known = record.trial.cell.phase_names();
    if known.is_empty() {
        return Err(PhaseError::NoPhases { id: id() });
    }
    let Some(of_phase) = record.of_phase(phase) else {
        let known = known.into_iter().map(str::to_owned).collect();
        return Err(PhaseError::Unknown { id: id(), phase: phase.to_owned(), known });
    };
    match of_phase.trial.summary {
        Some(_) => Ok(of_phase),
        None => Err(PhaseError::NotRun { id: id(), phase: phase.to_owned() }),
    }
}
