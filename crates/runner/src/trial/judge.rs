//! One load that has ended: its summary, and whether its results may be used.

use model::cell::Cell;
use model::factor::pin::cpu_list;
use model::limits::MemoryLimit;
use model::paired::PairedTrial;
use model::record::{Clocks, Event, Setting, Summary, Validity};
use model::units::Rate;

use diagnose::{Observation, judge};

use super::ActiveTrial;
use super::measure::Measured;
use crate::load::LoadResult;
use crate::summary;

/// What is known of a load from elsewhere.
pub(super) struct Ending<'a> {
    /// The slices, if it is one side of a session.
    pub(super) paired: Option<&'a PairedTrial>,
    /// How the server ended, if the load did with it.
    pub(super) server_exit: Option<&'a str>,
    /// Why what is next to the server no longer works after all loads; none if it does.
    pub(super) companion_failure: Option<&'a str>,
    /// Settings after the load; empty if not known.
    pub(super) settings: &'a [Setting],
    /// Why the data are inconsistent after all loads; none if they are not, or were not checked.
    pub(super) inconsistency: Option<&'a str>,
    /// Events during the trial.
    pub(super) events: &'a [Event],
    /// Whether all of the server's log was understood.
    pub(super) log_was_read: bool,
}

/// A load that has been judged.
pub(super) struct JudgedLoad {
    /// Its figures; none if it did not run to an end.
    pub(super) summary: Option<Summary>,
    pub(super) clocks: Option<Clocks>,
    pub(super) validity: Validity,
}

/// Judges the load of a trial or of one of its phases; clients that did not complete their iterations are a failure of it.
pub(super) fn judge_load(trial: &ActiveTrial, measured: &mut Measured, ending: &Ending) -> JudgedLoad {
    let (plan, cell) = (trial.context.plan, trial.cell);
    let Measured { before, load, collected, accounting, lost_statistics } = measured;
    let summary = load.outcome.as_ref().map(|outcome| {
        summary::summarize(
            load,
            outcome,
            cell,
            trial.lead(),
            &collected.metrics,
            ending.paired.and_then(|paired| paired.tps(cell.clients)),
        )
    });
    load.failure = load.failure.take().or_else(|| missed_iterations(load, cell));
    let clocks = load.started.zip(load.ended).map(|(started, ended)| Clocks { started, ended });
    let processors = plan.run.processors.unwrap_or(1);
    let driver_cpus = cell.pin.driver.as_deref().and_then(cpu_list).unwrap_or_default();
    let validity = judge(&Observation {
        thresholds: plan.validity,
        acceleration: cell.acceleration,
        clients: cell.clients,
        // CPUs that idle here are of no use to drivers elsewhere.
        driver_threads: load.hosts.is_empty().then(|| cell.driver_threads(processors)),
        default_driver_threads: Some(cell.default_driver_threads(processors)),
        load_hosts: &load.hosts,
        driver_cpus: &driver_cpus,
        open_loop: cell.rate != Rate::MAX || cell.workload.has_schedule(),
        paired: ending.paired,
        idle_at_times: !cell.workload.is_steady(),
        writes: cell.workload.writes(),
        memory_is_limited: cell.memory != MemoryLimit::NONE,
        load_failure: load.failure.as_deref(),
        server_exit: ending.server_exit,
        companion_failure: ending.companion_failure,
        interrupted: load.interrupted,
        inconsistency: ending.inconsistency,
        deaths: &load.deaths,
        accounting: *accounting,
        autovacuum: before.setting("autovacuum").map(|value| value == "on"),
        lost_statistics: *lost_statistics,
        summary: summary.as_ref(),
        intervals: &load.intervals,
        window: summary
            .as_ref()
            .and_then(|summary| summary.window_us)
            .map(|window_us| summary::window_after(trial.lead(), window_us)),
        clocks,
        metrics: &collected.metrics,
        waits: &collected.waits,
        events: ending.events,
        log_was_read: ending.log_was_read,
        settings: &before.settings,
        settings_after: ending.settings,
    });
    JudgedLoad { summary, clocks, validity }
}

/// Reason why a load that ends by itself had to be stopped; none if it had not, or ended for another reason.
fn missed_iterations(load: &LoadResult, cell: &Cell) -> Option<String> {
    let stopped_early = load.outcome.as_ref().is_some_and(|outcome| outcome.stopped_early);
    let missed = match cell.workload.iterations() {
        _ if cell.workload.trace().is_some() => "the trace had not been played to its end".to_owned(),
        Some(iterations) => format!("some clients had not completed their iterations ({iterations})"),
        None => return None,
    };
    (stopped_early && !load.interrupted && load.deaths.is_empty())
        .then(|| format!("{missed} after {}: set a longer `duration` for the workload", cell.duration))
}
