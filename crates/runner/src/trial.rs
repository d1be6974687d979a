//! The life of one trial: server, counts before, load, counts after, judgement, record.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use collect::postgres::LoadSessions;
use collect::{Collected, Collection, Host, Perf, Subject, Window, server_log};
use diagnose::{Observation, judge};
use jiff::Timestamp;
use model::cell::Cell;
use model::factor::cache::CacheState;
use model::factor::pin::cpu_list;
use model::limits::{LimitsInForce, MemoryLimit};
use model::message::{Connection, Interval, Load, Outcome};
use model::metrics::Metrics;
use model::plan::Plan;
use model::record::{
    Accounting, ClockReading, Clocks, Environment, Event, Log, RawRead, Run, Setting, Trial, TrialRecord,
    Validity,
};
use model::secret::mask;
use model::units::{Rate, Span};
use model::version::Major;
use model::waits::Waits;
use model::workload::Custom;
use server::RawReading;

use crate::error::RunError;
use crate::hooks::{self, HookEnv};
use crate::load::{self, LoadEvent, LoadResult, drive};
use crate::schedule::NextTrial;
use crate::server_handle::ServerHandle;
use crate::servers::{Running, Servers};
use crate::summary;

/// Length of one record of a load.
const INTERVAL_US: u64 = 1_000_000;

/// How long a server that does not answer has until it counts as ended.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Before PostgreSQL 15 statistics are files at most half a second old: so long after the end of the load the last reading
/// has all of it.
const REPORTED_WITHIN: Duration = Duration::from_millis(600);

/// What every trial of a run has in common.
pub(crate) struct RunContext<'a> {
    /// The run.
    pub(crate) run: &'a Run,
    /// What to run.
    pub(crate) plan: &'a Plan,
    /// The machine.
    pub(crate) host: &'a Host,
    /// What profiles, where the plan says so.
    pub(crate) perf: Option<&'a Perf>,
    /// The program that is started as driver process.
    pub(crate) program: &'a Path,
    /// Set when the user wants to stop.
    pub(crate) interrupt: &'a AtomicBool,
    /// Called when the server of a trial takes connections.
    pub(crate) on_ready: &'a dyn Fn(),
}

/// A trial that has ended.
pub(crate) struct FinishedTrial {
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

impl Before {
    /// Whether what sessions did is seen some time after they have ended: before PostgreSQL 15.
    fn reports_late(&self) -> bool {
        let major = self.version.as_deref().and_then(Major::from_reported);
        major.is_some_and(|major| major < Major::new(15))
    }
}

/// What has been gathered of a trial when it has ended.
#[derive(Default)]
struct Gathered {
    environment: Environment,
    before: Before,
    driven: LoadResult,
    accounting: Accounting,
    collected: Collected,
    settings_after: Vec<Setting>,
    log_was_read: bool,
    server_exit: Option<String>,
    server_build: Option<String>,
    limits: Option<LimitsInForce>,
    raw_read: Option<RawRead>,
    logs: Vec<Log>,
    notes: Vec<String>,
    server_events: Vec<Event>,
}

/// Runs one trial. What goes wrong with the server or the load makes an invalid trial, not an error.
///
/// # Errors
/// The driver process can't be started.
pub(crate) fn run(
    setup: &RunContext,
    servers: &mut Servers,
    next: &NextTrial,
    mut on_interval: impl FnMut(&Interval, Option<&[Waits]>),
) -> Result<FinishedTrial, RunError> {
    let started = Timestamp::now();
    let cell = setup.plan.cell(&next.trial);
    let mut environment;
    let mut before = Before::default();
    let mut driven = LoadResult::default();
    let mut accounting = Accounting::default();
    let mut collected = Collected::default();
    let mut settings_after = Vec::new();
    let mut log_was_read = false;
    let mut server_exit = None;
    let mut server_build = None;
    let mut limits = None;
    let mut raw_read = None;
    let mut logs = Vec::new();
    let mut notes = Vec::new();
    let mut server_events = Vec::new();

    match servers.for_cell(cell) {
        Err(error) => {
            environment = setup.host.environment(None);
            driven.failure = Some(format!("the server could not be started: {error}"));
            driven.interrupted = setup.interrupt.load(Ordering::Relaxed);
        }
        Ok(running) => {
            (setup.on_ready)();
            environment = setup.host.environment(running.server.data_directory());
            server_build = running.build().map(str::to_owned);
            let connection = running.server.connection(cell.transport);
            let told = told(setup, next, connection.as_ref().ok());
            let ready = prepare(setup, cell, running, &told).and_then(|prepared| {
                (notes, raw_read) = (prepared.notes, prepared.raw_read);
                look(running).map_err(|error| format!("the server did not answer before the load: {error}"))
            });
            driven.interrupted = setup.interrupt.load(Ordering::Relaxed);
            match (ready, connection) {
                (Err(why), _) => driven.failure = Some(why),
                (Ok(_), Err(error)) => driven.failure = Some(format!("clients can't connect: {error}")),
                (Ok(seen), Ok(connection)) => {
                    before = seen;
                    let driver = load::start(setup.program)?;
                    let server = &running.server;
                    let connect = |database: &str| {
                        let params = driver::connect_params(&server.own_connection(database));
                        params.map_err(|error| error.to_string())
                    };
                    let collection = Collection::start(Subject {
                        collect: setup.plan.collect,
                        profile: setup.plan.profile.zip(setup.perf),
                        connect: &connect,
                        load: load_sessions(cell),
                        data_directory: server.data_directory(),
                        driver: driver.id(),
                        postmaster: server.pid(),
                    });
                    let load = load(setup, next.trial.repeat, cell, connection);
                    driven = drive(driver, load, setup.interrupt, |heard| match heard {
                        LoadEvent::Connected { background } => collection.add_background_backends(background),
                        LoadEvent::Started(at) => collection.load_started(window(at, cell)),
                        LoadEvent::Interval(interval) => {
                            on_interval(interval, collection.waits_at(interval.start_us).as_deref());
                        }
                    })?;
                    if cell.workload.custom().is_some() && before.reports_late() {
                        pause(REPORTED_WITHIN, setup.interrupt);
                    }
                    collected = collection.finish(setup.interrupt);
                    notes.append(&mut collected.notes);
                    accounting = account(&running.server, cell, &before, &collected, driven.outcome.as_ref());
                }
            }
            limits = running.server.limits();
            server_exit = exit_of(&mut running.server, driven.leaves_server_in_doubt());
            if server_exit.is_none() && driven.started.is_some() {
                settings_after = running.server.settings().unwrap_or_default();
                notes.extend(tear_down(&running.server, cell));
            }
            if let (None, Some(hook)) = (&server_exit, &setup.plan.hooks.after_trial)
                && let Err(why) = hooks::run(hook, &told, setup.interrupt)
            {
                notes.push(why.to_string());
            }
            server_events.append(&mut collected.events);
            if let Some(text) = running.server.take_log() {
                let log = Log { name: "server".to_owned(), text: mask(&text) };
                let told = server_log::events(&log.text);
                if told.unparsed > 0 {
                    notes.push(format!(
                        "{} lines of the server's log are not in pgdyno's form: what they tell is not among the events \
                         (log_line_prefix, log_timezone and lc_messages are best left to pgdyno)",
                        told.unparsed
                    ));
                }
                log_was_read = told.unparsed == 0;
                // A server that was kept has written between the trials, too.
                server_events.extend(told.events.into_iter().filter(|event| event.at >= started));
                logs.push(log);
            }
            environment.server = servers.server_facts(cell);
        }
    }
    // Not before the load, so that the kernel's log has what happened during it.
    logs.extend(setup.host.logs());
    let altered = cell.workload.writes()
        || cell.workload.custom().is_some_and(has_teardown)
        || setup.plan.alters_data()
        || server_exit.is_some()
        || driven.leaves_server_in_doubt();
    let commits = before.commits.zip(accounting.server_commits).map(|(before, more)| before + more);
    servers.ended(altered, commits);
    let gathered = Gathered {
        environment,
        before,
        driven,
        accounting,
        collected,
        settings_after,
        log_was_read,
        server_exit,
        server_build,
        limits,
        raw_read,
        logs,
        notes,
        server_events,
    };
    Ok(conclude(setup, next, started, gathered))
}

/// A trial for which there was no place to run it at: why, whether the user ended it, and what has been logged.
pub(crate) fn failed(
    setup: &RunContext,
    next: &NextTrial,
    started: Timestamp,
    environment: Environment,
    why: String,
    logs: Vec<Log>,
) -> FinishedTrial {
    let interrupted = setup.interrupt.load(Ordering::Relaxed);
    let driven = LoadResult { failure: Some(why), interrupted, ..LoadResult::default() };
    conclude(setup, next, started, Gathered { environment, driven, logs, ..Gathered::default() })
}

/// Judges what has been gathered, and puts it together.
fn conclude(setup: &RunContext, next: &NextTrial, started: Timestamp, gathered: Gathered) -> FinishedTrial {
    let cell = setup.plan.cell(&next.trial);
    let Gathered {
        environment,
        before,
        mut driven,
        accounting,
        collected,
        settings_after,
        log_was_read,
        server_exit,
        server_build,
        limits,
        raw_read,
        logs,
        notes,
        server_events,
    } = gathered;
    let summary =
        driven.outcome.as_ref().map(|outcome| summary::summarize(&driven, outcome, cell, &collected.metrics));
    let in_time = driven.outcome.as_ref().is_none_or(|outcome| !outcome.stopped_early);
    if let (Some(iterations), false) = (cell.workload.iterations(), in_time || driven.interrupted)
        && driven.failure.is_none()
        && driven.deaths.is_empty()
    {
        driven.failure = Some(format!(
            "not every client had done its iterations ({iterations}) after {}: give the workload a longer `duration`",
            cell.duration
        ));
    }
    let clocks = driven.started.zip(driven.ended).map(|(started, ended)| Clocks { started, ended });
    let ended = Timestamp::now();
    let mut events =
        in_order(server_events, happened(&driven, server_exit.as_deref(), notes, started, ended));
    let validity = judge(&Observation {
        thresholds: setup.plan.validity,
        acceleration: cell.acceleration,
        clients: cell.clients,
        open_loop: cell.rate != Rate::MAX,
        idle_at_times: !cell.workload.is_steady(),
        writes: cell.workload.writes(),
        memory_is_limited: cell.memory != MemoryLimit::NONE,
        load_failure: driven.failure.as_deref(),
        server_exit: server_exit.as_deref(),
        interrupted: driven.interrupted,
        deaths: &driven.deaths,
        accounting,
        autovacuum: setting(&before.settings, "autovacuum").map(|value| value == "on"),
        summary: summary.as_ref(),
        intervals: &driven.intervals,
        window: summary
            .as_ref()
            .and_then(|summary| summary.window_us)
            .map(|window_us| summary::window_of(cell, window_us)),
        clocks,
        metrics: &collected.metrics,
        events: &events,
        log_was_read,
        settings: &before.settings,
        settings_after: &settings_after,
    });
    events.extend(judged(&validity, ended));

    let loaded = driven.started.is_some();
    FinishedTrial {
        record: TrialRecord {
            events,
            trial: Trial {
                id: store::new_id(),
                run: setup.run.clone(),
                cell: cell.clone().into(),
                repeat: next.trial.repeat,
                attempt: next.attempt,
                position: next.trial.position,
                reason: next.reason.clone(),
                started: Some(started),
                load_started: driven.load_started(),
                clocks,
                ended: Some(ended),
                server_version: before.version,
                server_banner: before.banner,
                server_build,
                limits,
                profile: collected.profile,
                database_bytes: before.database_bytes,
                raw_read,
                validity,
                summary,
                accounting,
                imported: None,
            },
            environment,
            settings: before.settings,
            intervals: driven.intervals,
            spans: driven.spans,
            metrics: collected.metrics,
            waits: collected.waits,
            statements: collected.statements,
            stacks: collected.stacks,
            off_cpu: collected.off_cpu,
            logs,
        },
        loaded,
    }
}

fn look(running: &Running) -> Result<Before, server::Error> {
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

/// What hooks are told of a trial.
fn told(setup: &RunContext, next: &NextTrial, connection: Option<&Connection>) -> HookEnv {
    let told = HookEnv::new(&setup.plan.campaign, &setup.run.id)
        .with_cell(setup.plan.cell(&next.trial))
        .with("TRIAL", next.trial.position)
        .with("REPEAT", next.trial.repeat)
        .with("ATTEMPT", next.attempt);
    match connection {
        Some(connection) => told.with_connection(connection),
        None => told,
    }
}

/// What came of preparing a trial.
#[derive(Default)]
struct Prepared {
    /// What is worth remembering.
    notes: Vec<String>,
    raw_read: Option<RawRead>,
}

/// Brings the server into the state in which the load is to begin.
fn prepare(
    setup: &RunContext,
    cell: &Cell,
    running: &mut Running,
    told: &HookEnv,
) -> Result<Prepared, String> {
    let run = &setup.plan.run;
    let Prepared { mut notes, mut raw_read } = Prepared::default();
    if let Some(hook) = &setup.plan.hooks.before_trial {
        hooks::run(hook, told, setup.interrupt).map_err(|error| error.to_string())?;
        running.forget_commits();
    }
    let failed = |error: server::Error| format!("the server could not be prepared: {error}");
    if let Some(statement) = run.vacuum.statement() {
        let commits = running.server.run(statement).map_err(failed)?;
        running.add_commits(commits);
    }
    if run.checkpoint && !running.server.checkpoint().map_err(failed)? {
        notes.push("there was no checkpoint: the role may not ask for one".to_owned());
    }
    if cell.cache == CacheState::Warm {
        let warmed = running.server.warm().map_err(failed)?;
        running.add_commits(warmed.commits);
        if !warmed.prewarmed {
            notes.push("without pg_prewarm, tables were read by scans, and indexes not at all".to_owned());
        }
    }
    let relation = cell.workload.custom().and_then(|custom| custom.raw_read.as_deref());
    if let (CacheState::Cold, Some(relation)) = (cell.cache, relation) {
        match running.server.raw_read(relation, setup.program, setup.interrupt).map_err(failed)? {
            None => {
                notes.push(format!("\"{relation}\" was not read past the server, whose files are not here"))
            }
            Some(RawReading { outcome, commits }) => {
                running.add_commits(commits);
                match outcome {
                    Ok(read) => raw_read = Some(read),
                    Err(why) => notes.push(format!("\"{relation}\" was not read past the server: {why}")),
                }
            }
        }
    }
    if !run.settle.is_zero() {
        pause(run.settle.duration(), setup.interrupt);
    }
    Ok(Prepared { notes, raw_read })
}

fn pause(length: Duration, interrupt: &AtomicBool) {
    const STEP: Duration = Duration::from_millis(100);
    let end = Instant::now() + length;
    while !interrupt.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(STEP));
    }
}

fn load(setup: &RunContext, repeat: u32, cell: &Cell, connection: Connection) -> Load {
    Load {
        connection,
        workload: cell.workload.clone(),
        scale: cell.scale,
        protocol: cell.protocol,
        clients: cell.clients,
        threads: cell.threads.min(cell.clients),
        rate: cell.rate,
        cpus: cell.pin.driver.as_deref().and_then(cpu_list),
        // The same in every cell of a block, so that the cells of a block see the same keys.
        seed: setup.plan.run.seed.wrapping_add(u64::from(repeat)),
        warmup_us: cell.warmup.us(),
        duration_us: cell.duration.us(),
        interval_us: INTERVAL_US,
    }
}

/// The sessions that collectors count as the load's.
fn load_sessions(cell: &Cell) -> LoadSessions {
    let has_background = cell.workload.custom().is_some_and(|custom| !custom.background.is_empty());
    LoadSessions {
        database: server::DATABASE.to_owned(),
        application_name: Some(driver::APPLICATION_NAME.to_owned()),
        background: has_background.then(|| driver::BACKGROUND_APPLICATION_NAME.to_owned()),
    }
}

/// The measured part of a load that started then.
fn window(started: ClockReading, cell: &Cell) -> Window {
    let us = |span: Span| i64::try_from(span.us()).unwrap_or(i64::MAX / 4);
    let from_us = us(cell.warmup);
    Window { origin_us: started.monotonic_us, from_us, to_us: from_us.saturating_add(us(cell.duration)) }
}

/// Both sides' counts. A server that can't be asked any more leaves its count unknown.
fn account(
    server: &ServerHandle,
    cell: &Cell,
    before: &Before,
    collected: &Collected,
    outcome: Option<&Outcome>,
) -> Accounting {
    let driver_transactions = outcome.map(|o| {
        let background: u64 = o.background.iter().map(|background| background.transactions).sum();
        o.warmup_transactions + o.window_transactions + o.drain_transactions + background
    });
    let driver_commits = outcome.map(|outcome| outcome.commits);
    let other_commits = outcome.map(|o| o.other_commits + collected.commits);
    let expected = || Some(before.commits? + driver_commits? + other_commits?);
    let after = outcome.and_then(|_| server.commits(expected()).ok());
    let server_commits = before.commits.zip(after).and_then(|(before, after)| after.checked_sub(before));
    // pgbench's scripts have no statement for parallel workers, whose own transactions are counted, too.
    let workers = cell.workload.custom().is_some()
        && setting(&before.settings, "max_parallel_workers_per_gather") != Some("0")
        && workers_launched(&collected.metrics) != Some(0.0);
    let untold_commits = workers || outcome.is_some_and(|outcome| outcome.silent_commits);
    Accounting { driver_transactions, driver_commits, untold_commits, other_commits, server_commits }
}

/// Parallel workers that were launched over all readings; none where the server does not tell (before PostgreSQL 18).
fn workers_launched(metrics: &Metrics) -> Option<f64> {
    let points = &metrics.get("pg.database.parallel_workers_launched", None)?.points;
    Some(points.last()?.value? - points.first()?.value?)
}

/// How the server ended; none where it is up. One in doubt is asked, and where it does not answer it is given the time
/// to be gone: clients notice a crash before the process has ended.
fn exit_of(server: &mut ServerHandle, in_doubt: bool) -> Option<String> {
    if in_doubt && server.version().is_err() {
        let end = Instant::now() + GONE_WITHIN;
        while server.exited().is_none() {
            if Instant::now() > end {
                return Some("it no longer answers".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    server.exited()
}

fn has_teardown(custom: &Custom) -> bool {
    custom.with_background().any(|workload| !workload.teardown.is_empty())
}

/// Runs the teardown of a trial's workload, up to a statement that is refused; what is worth remembering of it.
fn tear_down(server: &ServerHandle, cell: &Cell) -> Option<String> {
    let custom = cell.workload.custom().filter(|custom| has_teardown(custom))?;
    let statements = workload::teardown(custom, cell.scale).map_err(|error| error.to_string());
    let torn_down =
        statements.and_then(|statements| server.run_all(&statements).map_err(|error| error.to_string()));
    torn_down.err().map(|why| format!("the teardown failed: {why}"))
}

fn setting<'a>(settings: &'a [Setting], name: &str) -> Option<&'a str> {
    settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
}

/// All by their time: what the server tells goes before what is made of it.
fn in_order(server: Vec<Event>, ours: Vec<Event>) -> Vec<Event> {
    let mut events = server;
    events.extend(ours);
    events.sort_by_key(|event| event.at);
    events
}

fn event(at: Timestamp, kind: &str, message: String) -> Event {
    Event { at, kind: kind.to_owned(), message, ..Event::default() }
}

/// What pgdyno itself has seen happen.
fn happened(
    driven: &LoadResult,
    server_exit: Option<&str>,
    notes: Vec<String>,
    started: Timestamp,
    ended: Timestamp,
) -> Vec<Event> {
    let mut events: Vec<Event> = notes.into_iter().map(|note| event(started, "note", note)).collect();
    for death in &driven.deaths {
        let after = jiff::SignedDuration::from_micros(i64::try_from(death.at_us).unwrap_or(i64::MAX));
        let at = driven.load_started().and_then(|start| start.checked_add(after).ok()).unwrap_or(ended);
        let message = format!("client {}: {}", death.client, death.message);
        events.push(event(at, "client-died", message));
    }
    if let Some(exit) = server_exit {
        events.push(event(ended, "server-exited", exit.to_owned()));
    }
    events
}

/// What the gates found.
fn judged(validity: &Validity, at: Timestamp) -> impl Iterator<Item = Event> {
    validity.findings.iter().map(move |finding| {
        let kind = format!("judged-{}", finding.status.as_str());
        event(at, &kind, format!("{}: {}", finding.gate, finding.evidence))
    })
}
