//! One trial, in three phases on its server: [`prepare`](mod@prepare) brings the server into the state in which the
//! load begins, [`measure`](mod@measure) runs the load and collects ([`phases`](mod@phases) does so for each phase of a workload
//! that has several), [`conclude`](mod@conclude) runs the steps after
//! the load. [`record`](mod@record) then judges the results ([`judge`](mod@judge)) and makes the trial's record, without the server.

mod conclude;
mod judge;
mod measure;
mod phases;
mod prepare;
mod record;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use collect::{Host, Perf};
use jiff::Timestamp;
use model::cell::Cell;
use model::message::{Connection, Interval};
use model::outage::Outage;
use model::phase::PhaseCell;
use model::plan::Plan;
use model::record::{Environment, Finding, Log, Run, Status, TrialRecord, Validity};
use model::server::Source;
use model::units::Span;
use model::waits::Waits;
use model::workload::{Custom, ScriptText};

use crate::alternation::AlternatingSide;
use crate::error::RunError;
use crate::hooks::HookEnv;
use crate::outage::TrialOutage;
use crate::rig::{Rig, ServerPool, StartedServer};
use crate::schedule::NextTrial;
use conclude::{Concluded, conclude};
use measure::Measured;
use phases::{MeasuredLoads, MeasuredPhase, measure_phases};
use prepare::{Prepared, prepare};
pub(crate) use record::add_finding;
use record::record;

/// Context shared by all trials of a run.
pub(crate) struct RunContext<'a> {
    /// The run.
    pub(crate) run: &'a Run,
    /// Its plan.
    pub(crate) plan: &'a Plan,
    /// The host.
    pub(crate) host: &'a Host,
    /// The trial's side of a session; none if it is not paired.
    pub(crate) side: Option<&'a AlternatingSide<'a>>,
    /// The profiler, if the plan asks for profiles.
    pub(crate) perf: Option<&'a Perf>,
    /// pgdyno itself, which is the program of the driver process.
    pub(crate) program: &'a Path,
    /// The rig of the trials.
    pub(crate) rig: &'a dyn Rig,
    /// Set when the user wants to stop.
    pub(crate) interrupt: &'a AtomicBool,
    /// Called when the server of a trial accepts connections.
    pub(crate) on_ready: &'a dyn Fn(),
}

/// A trial that has ended.
pub(crate) struct FinishedTrial {
    /// Its record.
    pub(crate) record: TrialRecord,
    /// Whether its load began.
    pub(crate) loaded: bool,
    /// The outage that kept its load from running to the end, if it is one.
    pub(crate) outage: Option<TrialOutage>,
    /// Why the server refuses a statement of its load, if it does.
    pub(crate) refusal: Option<String>,
}

/// A running trial, or one phase of it.
#[derive(Clone, Copy)]
struct ActiveTrial<'a> {
    context: &'a RunContext<'a>,
    next: &'a NextTrial,
    /// Its cell; that of the phase.
    cell: &'a Cell,
    /// Whether its load is profiled: that of the judged phase.
    is_profiled: bool,
    started: Timestamp,
}

/// Results of a trial, of each phase as far as it ran.
#[derive(Default)]
struct Results {
    environment: Environment,
    server_build: Option<String>,
    prepared: Prepared,
    /// Of the judged phase.
    measured: Measured,
    /// Of the other phases that ran, in their order.
    phases: Vec<MeasuredPhase>,
    /// The count of commits in the tested database after the last load, if known.
    commits: Option<u64>,
    concluded: Concluded,
    /// Logs of the host.
    logs: Vec<Log>,
}

/// Runs one trial. A failure of the server or the load makes an invalid trial.
///
/// # Errors
/// The driver process can't be started.
pub(crate) fn run(
    context: &RunContext,
    servers: &mut dyn ServerPool,
    next: &NextTrial,
    mut on_interval: impl FnMut(&Interval, Option<&[Waits]>),
) -> Result<FinishedTrial, RunError> {
    let trial = ActiveTrial::new(context, next, Timestamp::now());
    let mut results = match servers.start(trial.cell) {
        Ok(started) => trial.run_on(started, &mut on_interval)?,
        Err(error) => {
            let why = format!("the server could not be started: {error}");
            Results {
                environment: context.host.environment(None),
                measured: Measured::without_load(&trial, why, error.outage()),
                ..Results::default()
            }
        }
    };
    // After the load, so that the kernel's log includes it.
    results.logs = context.host.logs();
    servers.end_trial(trial.alters_data(&results), results.commits);
    Ok(record(&trial, results))
}

/// The record of a trial that had no machine to run on, with the reason and the logs.
pub(crate) fn failed(
    context: &RunContext,
    next: &NextTrial,
    started: Timestamp,
    environment: Environment,
    (why, outage): (String, Option<Outage>),
    logs: Vec<Log>,
) -> FinishedTrial {
    let trial = ActiveTrial::new(context, next, started);
    let measured = Measured::without_load(&trial, why, outage);
    record(&trial, Results { environment, measured, logs, ..Results::default() })
}

/// The record of a trial whose server or kernel can't be provided, with this finding.
pub(crate) fn not_provided(context: &RunContext, next: &NextTrial, finding: Finding) -> FinishedTrial {
    let environment = context.host.environment(None);
    let why = (finding.evidence.clone(), None);
    let mut finished = failed(context, next, Timestamp::now(), environment, why, Vec::new());
    finished.record.trial.validity = Validity { status: Status::Invalid, findings: vec![finding] };
    finished
}

impl<'a> ActiveTrial<'a> {
    fn new(context: &'a RunContext<'a>, next: &'a NextTrial, started: Timestamp) -> Self {
        Self { context, next, cell: context.plan.cell(&next.trial), is_profiled: true, started }
    }

    /// One of its phases.
    fn in_phase(&self, phase: &'a PhaseCell) -> Self {
        Self { cell: &phase.cell, is_profiled: phase.is_judged, ..*self }
    }

    /// Load before the measured window: the warm-up, and where instructions are counted the profile, whose cost must not
    /// be in the window. The window of a paired trial is its whole load.
    fn lead(&self) -> Span {
        if self.context.side.is_some() {
            return Span::default();
        }
        let counting = self.context.perf.filter(|perf| perf.counts());
        let profile = self.context.plan.profile.filter(|_| counting.is_some() && self.is_profiled);
        Span::from_us(self.cell.warmup.us() + profile.map_or(0, |profile| profile.counted_lead_us()))
    }

    /// Runs the trial's phases on its server. If the preparation fails, only the load is skipped.
    fn run_on(
        &self,
        started: StartedServer,
        on_interval: &mut dyn FnMut(&Interval, Option<&[Waits]>),
    ) -> Result<Results, RunError> {
        let StartedServer { server, build, facts, commits } = started;
        (self.context.on_ready)();
        let mut environment = self.context.host.environment(server.data_directory());
        environment.server = facts;
        let connection = server.connection(self.cell.transport);
        let env = self.hook_env(connection.as_ref().ok());
        let replica = server.companion().filter(|companion| companion.kind().is_replica());
        let env = match replica {
            Some(replica) => env.with_replica(&replica.own_connection(server::DATABASE)),
            None => env,
        };
        let (prepared, loads) = match prepare(self, server, commits, &env) {
            Ok(prepared) => {
                let loads = measure_phases(self, server, connection, prepared.commits, on_interval)?;
                (prepared, loads)
            }
            Err(error) => {
                let judged = Measured::without_load(self, error.to_string(), error.outage());
                (Prepared::default(), MeasuredLoads { judged, ..MeasuredLoads::default() })
            }
        };
        let concluded = conclude(self, server, loads.last(), &env);
        let logs = Vec::new();
        let MeasuredLoads { judged: measured, phases, commits, .. } = loads;
        Ok(Results { environment, server_build: build, prepared, measured, phases, commits, concluded, logs })
    }

    /// The environment of the trial's hooks.
    fn hook_env(&self, connection: Option<&Connection>) -> HookEnv {
        let env = HookEnv::new(&self.context.plan.campaign, &self.context.run.id)
            .with_cell(self.cell)
            .with("TRIAL", self.next.trial.position)
            .with("REPEAT", self.next.trial.repeat)
            .with("ATTEMPT", self.next.attempt);
        match connection {
            Some(connection) => env.with_connection(connection),
            None => env,
        }
    }

    /// Whether the next trial needs a new copy of the data set.
    fn alters_data(&self, results: &Results) -> bool {
        self.cell.workload.writes()
            || self.workload_with(|workload| &workload.consistency).is_some()
            || self.workload_with(|workload| &workload.teardown).is_some()
            || self.cell.workload.custom().is_some_and(|workload| !workload.figures.is_empty())
            || self.context.plan.alters_data()
            || results.concluded.server_exit.is_some()
            || results.concluded.companion_failure.is_some()
            || results.measured.load.leaves_server_in_doubt()
            || results.phases.iter().any(|phase| phase.measured.load.leaves_server_in_doubt())
    }

    /// The cell's workload, if it or one of its background workloads has such texts.
    fn workload_with(&self, texts: fn(&Custom) -> &Vec<ScriptText>) -> Option<&Custom> {
        let has_texts =
            |custom: &&Custom| custom.with_background().any(|workload| !texts(workload).is_empty());
        self.cell.workload.custom().filter(has_texts)
    }

    /// Whether pgdyno does not own the server.
    fn has_external_server(&self) -> bool {
        let server = self.context.plan.server(self.cell);
        server.is_some_and(|server| matches!(server.source, Source::Dsn(_)))
    }

    fn is_interrupted(&self) -> bool {
        self.context.interrupt.load(Ordering::Relaxed)
    }
}
