//! The phases of a workload that has several: their loads run one after the other on the prepared server, each with a driver and
//! collectors of its own. A workload without phases has one load.

use model::message::{Connection, Interval, Phase};
use model::phase::PhaseCell;
use model::waits::Waits;

use super::ActiveTrial;
use super::measure::{Measured, measure};
use crate::error::RunError;
use crate::load::LoadResult;
use crate::rig::ServerUnderTest;

/// The results of all loads of a trial.
#[derive(Default)]
pub(super) struct MeasuredLoads {
    /// Those of the judged phase, or of the only load.
    pub(super) judged: Measured,
    /// Those of the other phases that ran, in their order.
    pub(super) phases: Vec<MeasuredPhase>,
    /// The count of commits in the tested database after the last load, if known.
    pub(super) commits: Option<u64>,
    /// Whether the judged phase was the last that ran.
    pub(super) judged_is_last: bool,
}

/// The results of a phase that is not judged.
pub(super) struct MeasuredPhase {
    /// Its name.
    pub(super) name: String,
    /// The phase as a cell.
    pub(super) phase: PhaseCell,
    pub(super) measured: Measured,
}

impl MeasuredLoads {
    /// The load that ran last.
    pub(super) fn last(&self) -> &LoadResult {
        let last = self.phases.last().filter(|_| !self.judged_is_last);
        last.map_or(&self.judged.load, |phase| &phase.measured.load)
    }
}

/// Measures the loads of a trial's phases. A phase that fails is the last one.
///
/// # Errors
/// A driver process can't be started.
pub(super) fn measure_phases(
    trial: &ActiveTrial,
    server: &dyn ServerUnderTest,
    connection: Result<Connection, server::Error>,
    mut commits: Option<u64>,
    on_interval: &mut dyn FnMut(&Interval, Option<&[Waits]>),
) -> Result<MeasuredLoads, RunError> {
    let mut loads = MeasuredLoads::default();
    let mut failed: Option<String> = None;
    // The time of all loads before, for those who follow the trial.
    let mut before_us = 0;
    for phase in trial.cell.phases() {
        let of_phase = trial.in_phase(&phase);
        if let Some(before) = &failed {
            if phase.is_judged {
                let why = format!("it did not run, because the phase \"{before}\" did not run to its end");
                loads.judged = Measured::without_load(&of_phase, why, None);
            }
            continue;
        }
        let mut ended_us = 0;
        let measured = measure(&of_phase, server, &connection, commits, &mut |interval, waits| {
            ended_us = interval.start_us + interval.width_us;
            match phase.name {
                None => on_interval(interval, waits),
                Some(_) => on_interval(&in_trial(interval, before_us, phase.is_judged), waits),
            }
        })?;
        before_us += ended_us;
        commits = measured.commits();
        let PhaseCell { name, is_judged, .. } = &phase;
        if measured.load.is_incomplete() {
            failed.clone_from(name);
        }
        loads.judged_is_last = *is_judged;
        match name {
            Some(name) if !is_judged => {
                loads.phases.push(MeasuredPhase { name: name.clone(), phase, measured });
            }
            _ => loads.judged = measured,
        }
    }
    loads.commits = commits;
    Ok(loads)
}

/// An interval of a phase among those of the whole trial: only the judged phase has a window.
fn in_trial(interval: &Interval, before_us: u64, is_judged: bool) -> Interval {
    let start_us = before_us + interval.start_us;
    let phase = if is_judged { interval.phase } else { Phase::Warmup };
    Interval { start_us, phase, ..interval.clone() }
}
