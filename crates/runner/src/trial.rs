//! The life of one trial: server, counts before, load, counts after, judgement, record.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use diagnose::{Observation, judge};
use jiff::Timestamp;
use model::message::{Interval, Load, Outcome, Phase};
use model::plan::{Cell, PlannedTrial, RunSettings};
use model::record::{
    Accounting, Environment, Event, Log, Run, Setting, Summary, Trial, TrialRecord, Validity,
};
use target::{Server, TargetError};

use crate::error::RunError;
use crate::load::{Driven, drive};
use crate::servers::{Running, Servers};

/// Length of one record of a load.
const INTERVAL_US: u64 = 1_000_000;

/// How long a server that does not answer has until it counts as ended.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// What every trial of a run has in common.
pub(crate) struct Setup<'a> {
    /// The run.
    pub(crate) run: &'a Run,
    /// How each trial runs.
    pub(crate) settings: RunSettings,
    /// The program that is started as driver process.
    pub(crate) program: &'a Path,
    /// Set when the user wants to stop.
    pub(crate) interrupt: &'a AtomicBool,
}

/// A trial that has ended.
pub(crate) struct Ended {
    /// Everything that is known of it.
    pub(crate) record: TrialRecord,
    /// Whether its load began.
    pub(crate) loaded: bool,
}

/// What is known of the server before the load.
#[derive(Default)]
struct Before {
    version: Option<String>,
    banner: Option<String>,
    database_bytes: Option<u64>,
    settings: Vec<Setting>,
    commits: Option<u64>,
}

/// Runs one trial. What goes wrong with the server or the load makes an invalid trial, not an error.
///
/// # Errors
/// The driver process can't be started.
pub(crate) fn run(
    setup: &Setup,
    servers: &mut Servers,
    planned: &PlannedTrial,
    cell: &Cell,
    on_interval: impl FnMut(&Interval),
) -> Result<Ended, RunError> {
    let started = Timestamp::now();
    let mut environment = Environment::default();
    let mut before = Before::default();
    let mut driven = Driven::default();
    let mut accounting = Accounting::default();
    let mut server_exit = None;
    let mut logs = Vec::new();

    match servers.for_cell(cell) {
        Err(error) => driven.failure = Some(format!("the server could not be started: {error}")),
        Ok(running) => {
            environment = collect::environment(Some(running.server.data_directory()));
            match look(running) {
                Ok(seen) => before = seen,
                Err(error) => {
                    driven.failure = Some(format!("the server did not answer before the load: {error}"))
                }
            }
            if driven.failure.is_none() {
                driven = drive(
                    setup.program,
                    load(setup, planned, cell, &running.server),
                    setup.interrupt,
                    on_interval,
                )?;
                accounting = account(&running.server, before.commits, driven.outcome.as_ref());
            }
            server_exit = exit_of(&mut running.server, driven.leaves_server_in_doubt());
            if let Ok(text) = running.server.log() {
                logs.push(Log { name: "server".to_owned(), text });
            }
        }
    }

    let summary = driven.outcome.as_ref().map(|outcome| summarise(&driven, outcome));
    let validity = judge(&Observation {
        clients: cell.clients,
        load_failure: driven.failure.as_deref(),
        server_exit: server_exit.as_deref(),
        interrupted: driven.interrupted,
        deaths: &driven.deaths,
        accounting,
        autovacuum: setting(&before.settings, "autovacuum").map(|value| value == "on"),
        summary: summary.as_ref(),
        intervals: &driven.intervals,
    });
    let altered = cell.workload.writes() || server_exit.is_some() || driven.leaves_server_in_doubt();
    let commits = before.commits.zip(accounting.server_commits).map(|(before, more)| before + more);
    servers.ended(altered, commits);

    let ended = Timestamp::now();
    let loaded = driven.started.is_some();
    Ok(Ended {
        record: TrialRecord {
            events: events(&driven, server_exit.as_deref(), &validity, ended),
            trial: Trial {
                id: store::new_id(),
                run: setup.run.clone(),
                cell: cell.clone(),
                repeat: planned.repeat,
                attempt: 1,
                position: planned.position,
                started,
                load_started: driven.started,
                ended,
                server_version: before.version,
                server_banner: before.banner,
                database_bytes: before.database_bytes,
                validity,
                summary,
                accounting,
            },
            environment,
            settings: before.settings,
            intervals: driven.intervals,
            logs,
        },
        loaded,
    })
}

fn look(running: &Running) -> Result<Before, TargetError> {
    let server = &running.server;
    let (version, banner) = server.version()?;
    Ok(Before {
        version: Some(version),
        banner: Some(banner),
        database_bytes: Some(server.database_bytes()?),
        settings: server.settings()?,
        commits: Some(server.commits(running.expected_commits())?),
    })
}

fn load(setup: &Setup, planned: &PlannedTrial, cell: &Cell, server: &Server) -> Load {
    Load {
        connection: server.connection(cell.transport),
        workload: cell.workload,
        scale: cell.scale,
        protocol: cell.protocol,
        clients: cell.clients,
        threads: setup.settings.threads.min(cell.clients),
        // The same in every cell of a block, so that the cells of a block see the same keys.
        seed: setup.run.seed.wrapping_add(u64::from(planned.repeat)),
        warmup_us: setup.settings.warmup.us(),
        duration_us: setup.settings.duration.us(),
        interval_us: INTERVAL_US,
    }
}

/// Both sides' counts. A server that can't be asked any more leaves its count unknown.
fn account(server: &Server, before: Option<u64>, outcome: Option<&Outcome>) -> Accounting {
    let driver_transactions =
        outcome.map(|o| o.warmup_transactions + o.window_transactions + o.drain_transactions);
    let other_commits = outcome.map(|o| o.other_commits);
    let expected = || Some(before? + driver_transactions? + other_commits?);
    let after = outcome.and_then(|_| server.commits(expected()).ok());
    let server_commits = before.zip(after).and_then(|(before, after)| after.checked_sub(before));
    Accounting { driver_transactions, other_commits, server_commits }
}

fn summarise(driven: &Driven, outcome: &Outcome) -> Summary {
    let window = || driven.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    let seconds = outcome.window_us as f64 / 1e6;
    Summary {
        window_us: outcome.window_us,
        transactions: outcome.window_transactions,
        failed: outcome.failed_transactions,
        tps: if seconds > 0.0 { outcome.window_transactions as f64 / seconds } else { 0.0 },
        latency: outcome.latency.clone(),
        connect_us: driven.connect_us,
        driver_cpu_us: outcome.cpu_us,
        driver_busy_max: window().map(|interval| interval.busy).fold(0.0, f64::max),
        driver_lag_max_us: window().map(|interval| interval.lag_max_us).fold(0.0, f64::max),
    }
}

/// How the server ended; none where it is up. One in doubt is asked, and where it does not answer it is given the time
/// to be gone: clients notice a crash before the process has ended.
fn exit_of(server: &mut Server, in_doubt: bool) -> Option<String> {
    if in_doubt && server.version().is_err() {
        let end = Instant::now() + GONE_WITHIN;
        while server.exited().is_none() {
            if Instant::now() > end {
                return Some("it no longer answers".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    server.exited().map(|status| status.to_string())
}

fn setting<'a>(settings: &'a [Setting], name: &str) -> Option<&'a str> {
    settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
}

fn events(driven: &Driven, server_exit: Option<&str>, validity: &Validity, ended: Timestamp) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for death in &driven.deaths {
        let after = jiff::SignedDuration::from_micros(i64::try_from(death.at_us).unwrap_or(i64::MAX));
        let at = driven.started.and_then(|start| start.checked_add(after).ok()).unwrap_or(ended);
        let message = format!("client {}: {}", death.client, death.message);
        events.push(Event { at, kind: "client-died".to_owned(), message });
    }
    if let Some(exit) = server_exit {
        events.push(Event { at: ended, kind: "server-exited".to_owned(), message: exit.to_owned() });
    }
    for finding in &validity.findings {
        let message = format!("{}: {}", finding.gate, finding.evidence);
        events.push(Event { at: ended, kind: format!("judged-{}", finding.status.name()), message });
    }
    events
}
