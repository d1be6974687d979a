//! The phase after the load: whether the server survived, its settings, the workload's own figures, the consistency of the data, the teardown, the hook and the log.

use std::collections::BTreeMap;
use std::time::Duration;

use collect::server_log;
use model::limits::LimitsInForce;
use model::record::{Event, Log, Setting};
use model::secret::mask;
use model::workload::Statement;
use workload::WorkloadError;

use super::ActiveTrial;
use crate::hooks::HookEnv;
use crate::load::LoadResult;
use crate::rig::ServerUnderTest;

/// Time limit for a server that does not answer to exit: clients notice a crash before the process has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Results of the conclusion.
#[derive(Default)]
pub(super) struct Concluded {
    /// How the server ended; none if it runs.
    pub(super) server_exit: Option<String>,
    /// Why what is next to it no longer works; none if it does, or there is nothing.
    pub(super) companion_failure: Option<String>,
    pub(super) limits: Option<LimitsInForce>,
    /// Settings in force after the load; empty if not known.
    pub(super) settings: Vec<Setting>,
    /// Results of the workload's own queries, by the names of their metrics.
    pub(super) figures: BTreeMap<String, f64>,
    /// Why the data are inconsistent; none if they are not, or were not checked.
    pub(super) inconsistency: Option<String>,
    pub(super) server_log: Option<Log>,
    /// The log of what is next to the server.
    pub(super) companion_log: Option<Log>,
    /// The line of the server's log that shows an exhausted host.
    pub(super) exhaustion: Option<String>,
    /// Whether all of the server's log was understood.
    pub(super) log_was_read: bool,
    /// Events of the server's log since the trial's start.
    pub(super) events: Vec<Event>,
    /// Notes for the record.
    pub(super) notes: Vec<String>,
}

/// Concludes a trial on its server. A failure becomes a note.
pub(super) fn conclude(
    trial: &ActiveTrial,
    server: &mut dyn ServerUnderTest,
    load: &LoadResult,
    env: &HookEnv,
) -> Concluded {
    let context = trial.context;
    let limits = server.limits();
    let server_exit = exit_status(server, load.leaves_server_in_doubt());
    let mut concluded = Concluded { server_exit, limits, ..Concluded::default() };
    if concluded.server_exit.is_none() && load.started.is_some() {
        concluded.companion_failure = server.companion_failure();
        concluded.settings = server.settings().unwrap_or_default();
        concluded.determine_figures(trial, server);
        concluded.inconsistency = inconsistency(trial, server);
        concluded.notes.extend(tear_down(trial, server));
    }
    if let (None, Some(hook)) = (&concluded.server_exit, &context.plan.hooks.after_trial)
        && let Err(error) = context.rig.run_hook(hook, env, context.interrupt)
    {
        concluded.notes.push(error.to_string());
    }
    concluded.companion_log = server.take_companion_log();
    concluded.read_log(trial, server);
    concluded
}

impl Concluded {
    /// Determines the own figures of the trial's workload. One that can't be determined is a note.
    fn determine_figures(&mut self, trial: &ActiveTrial, server: &dyn ServerUnderTest) {
        let Some(custom) = trial.cell.workload.custom() else { return };
        let queries = match workload::figures(custom, trial.cell.scale) {
            Ok(queries) => queries,
            Err(error) => return self.notes.push(error.to_string()),
        };
        for (metric, statements) in queries {
            match server.figure(&statements) {
                Ok(figure) => drop(self.figures.insert(metric, figure)),
                Err(error) => self.notes.push(format!("{metric} is not known: {error}")),
            }
        }
    }

    fn read_log(&mut self, trial: &ActiveTrial, server: &mut dyn ServerUnderTest) {
        let Some(text) = server.take_log() else { return };
        let log = Log { name: "server".to_owned(), text: mask(&text) };
        self.exhaustion = server::exhaustion_in(&log.text).map(str::to_owned);
        let parsed = server_log::events(&log.text);
        if parsed.unparsed > 0 {
            self.notes.push(format!(
                "{} lines of the server's log have an unexpected format: their events are missing \
                 (leave log_line_prefix, log_timezone and lc_messages to pgdyno)",
                parsed.unparsed
            ));
        }
        self.log_was_read = parsed.unparsed == 0;
        // A server that was running before has also logged events between the trials.
        self.events = parsed.events.into_iter().filter(|event| event.at >= trial.started).collect();
        self.server_log = Some(log);
    }
}

/// How the server ended; none if it runs.
fn exit_status(server: &mut dyn ServerUnderTest, in_doubt: bool) -> Option<String> {
    if in_doubt && server.version().is_err() {
        let status = server.exit_status(EXIT_TIMEOUT);
        return Some(status.unwrap_or_else(|| "it no longer answers".to_owned()));
    }
    server.exit_status(Duration::ZERO)
}

/// Checks the data of the trial's workload; returns why they are inconsistent, if they are.
fn inconsistency(trial: &ActiveTrial, server: &dyn ServerUnderTest) -> Option<String> {
    let custom = trial.workload_with(|workload| &workload.consistency)?;
    run(server, workload::consistency(custom, trial.cell.scale))
}

/// Runs the teardown of the trial's workload; returns a note if it fails.
fn tear_down(trial: &ActiveTrial, server: &dyn ServerUnderTest) -> Option<String> {
    let custom = trial.workload_with(|workload| &workload.teardown)?;
    let why = run(server, workload::teardown(custom, trial.cell.scale))?;
    Some(format!("the teardown failed: {why}"))
}

/// Runs statements up to the first that fails; returns why it did.
fn run(server: &dyn ServerUnderTest, statements: Result<Vec<Statement>, WorkloadError>) -> Option<String> {
    match statements {
        Ok(statements) => server.run_all(&statements).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}
