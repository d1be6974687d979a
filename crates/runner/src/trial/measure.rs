//! The measurement: the server's state, the load with its collectors, and the transactions as both sides counted them.

use std::time::Duration;

use collect::postgres::LoadSessions;
use collect::{Collected, MarkerTable, ServerCpu, ServerInstructions, Subject, Window};
use model::cell::Cell;
use model::factor::pin::cpu_list;
use model::message::{Connection, Interval, Load, Outcome, Slices};
use model::metrics::Metrics;
use model::outage::Outage;
use model::record::{Accounting, ClockReading, Setting};
use model::topology::Companion;
use model::units::Span;
use model::version::Major;
use model::waits::Waits;
use model::workload::Custom;
use workload::StreamsFile;

use super::ActiveTrial;
use crate::error::RunError;
use crate::load::{LoadEvent, LoadResult, drive};
use crate::rig::{ServerUnderTest, StartError};
use crate::sliced_load::{ServerCounts, SlicedLoad};

/// Length of one interval of a load.
const INTERVAL_US: u64 = 1_000_000;

/// Age of the statistics that a server before PostgreSQL 15 reports, at most 0.5 s; after this time the last reading includes the
/// end of the load.
const STATISTICS_DELAY: Duration = Duration::from_millis(600);

/// Results of the measurement.
#[derive(Default)]
pub(super) struct Measured {
    /// The server right before the load; empty if there was no load.
    pub(super) before: ServerState,
    pub(super) load: LoadResult,
    pub(super) collected: Collected,
    pub(super) accounting: Accounting,
    /// Messages about commits that may have been lost on their way to the server's statistics.
    pub(super) lost_statistics: u64,
}

/// State of a server.
#[derive(Default)]
pub(super) struct ServerState {
    pub(super) version: Option<String>,
    pub(super) banner: Option<String>,
    pub(super) database_bytes: Option<u64>,
    pub(super) settings: Vec<Setting>,
    /// The count of commits in the tested database.
    pub(super) commits: Option<u64>,
}

/// Measures the load of a trial, or of a phase of it, on a prepared server. If the server does not answer, the load has failed.
///
/// # Errors
/// The driver process can't be started.
pub(super) fn measure(
    trial: &ActiveTrial,
    server: &dyn ServerUnderTest,
    connection: &Result<Connection, server::Error>,
    commits: Option<u64>,
    on_interval: &mut dyn FnMut(&Interval, Option<&[Waits]>),
) -> Result<Measured, RunError> {
    let (context, cell) = (trial.context, trial.cell);
    let before = match ServerState::read(server, commits) {
        Ok(state) => state,
        Err(error) => {
            let why = format!("the server did not answer before the load: {error}");
            return Ok(Measured::without_load(trial, why, error.outage()));
        }
    };
    let connection = match connection {
        Ok(connection) => connection.clone(),
        Err(error) => {
            let why = format!("clients can't connect: {error}");
            return Ok(Measured::without_load(trial, why, None));
        }
    };
    let streams = match StreamsFile::new(&cell.workload) {
        Ok(streams) => streams,
        Err(error) => return Ok(Measured::without_load(trial, error.to_string(), None)),
    };
    let driver = match context.rig.start_driver(context.program) {
        Ok(driver) => driver,
        Err(StartError::Driver(error)) => return Err(error.into()),
        // Another trial may find them.
        Err(error @ StartError::LoadHosts(_)) => {
            return Ok(Measured::without_load(trial, error.to_string(), None));
        }
    };
    let connect = |database: &str| driver::connect_params(&server.own_connection(database));
    let companion = server.companion();
    let connect_companion = |database: &str| {
        let connection = companion.map(|companion| companion.own_connection(database));
        driver::connect_params(&connection.unwrap_or_else(|| server.own_connection(database)))
    };
    let collectors = context.rig.start_collectors(Subject {
        collect: context.plan.collect,
        profile: context.plan.profile.zip(context.perf).filter(|_| trial.is_profiled),
        connect: &connect,
        load: load_sessions(cell),
        plays_trace: cell.workload.trace().is_some(),
        data_directory: server.data_directory(),
        driver: driver.pid(),
        postmaster: server.pid(),
        has_hidden_processes: server.has_hidden_processes(),
        has_other_side: context.side.is_some(),
        companion: companion.map(|companion| collect::Companion {
            kind: companion.kind(),
            pid: companion.pid(),
            connect: &connect_companion,
            marker: companion
                .marker_database()
                .map(|database| MarkerTable { database, table: server::MARKER }),
        }),
    });
    // Sessions of such a server send their statistics in datagrams.
    let dropped = || collect::dropped_datagrams().filter(|_| before.has_delayed_statistics());
    let dropped_before = dropped();
    let postmaster = server.pid().filter(|_| context.side.is_some());
    let mut server_cpu = postmaster.and_then(ServerCpu::new);
    let mut server_instructions = postmaster.and_then(ServerInstructions::new);
    let mut server_counts = || ServerCounts {
        cpu_us: server_cpu.as_mut().and_then(ServerCpu::read),
        instructions: server_instructions.as_mut().and_then(ServerInstructions::read),
    };
    let slices = context.side.map(|side| SlicedLoad::new(side, &mut server_counts));
    let replica = companion.filter(|companion| companion.kind().is_replica());
    let replica = replica.map(|replica| replica.own_connection(server::DATABASE));
    let connections = (connection, replica);
    let load = drive(
        context.rig,
        driver,
        trial.load(connections, streams.as_ref()),
        slices,
        context.interrupt,
        |event| match event {
            LoadEvent::Paused(is_paused) => collectors.set_paused(is_paused),
            LoadEvent::Connected { background } => collectors.add_background_backends(background),
            LoadEvent::Started(at) => collectors.load_started(trial.window(at)),
            LoadEvent::Interval(interval) => {
                on_interval(interval, collectors.waits_at(interval.start_us).as_deref());
            }
            LoadEvent::Samples(samples) => *samples = collectors.take_session_samples(),
        },
    );
    if cell.workload.custom().is_some() && before.has_delayed_statistics() {
        context.rig.pause(STATISTICS_DELAY, context.interrupt);
    }
    let collected = collectors.finish(context.interrupt);
    let accounting = account(server, cell, &before, &collected, load.outcome.as_ref());
    let lost = dropped_before.zip(dropped()).map(|(before, after)| after.saturating_sub(before));
    let lost_statistics = lost.unwrap_or_default();
    Ok(Measured { before, load, collected, accounting, lost_statistics })
}

impl Measured {
    /// The results of a trial whose load did not begin.
    pub(super) fn without_load(trial: &ActiveTrial, why: String, outage: Option<Outage>) -> Self {
        let interrupted = trial.is_interrupted();
        Self {
            load: LoadResult { failure: Some(why), outage, interrupted, ..LoadResult::default() },
            ..Self::default()
        }
    }

    /// The count of commits in the tested database after the load, if known.
    pub(super) fn commits(&self) -> Option<u64> {
        Some(self.before.commits? + self.accounting.server_commits?)
    }
}

impl ServerState {
    /// The state of a server whose tested database should have counted `commits`, if known.
    fn read(server: &dyn ServerUnderTest, commits: Option<u64>) -> Result<Self, server::Error> {
        let (version, banner) = server.version()?;
        Ok(Self {
            version: Some(version),
            banner: Some(banner),
            database_bytes: Some(server.database_bytes()?),
            settings: server.settings()?,
            commits: Some(server.commits(commits)?),
        })
    }

    /// The value of a setting.
    pub(super) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
    }

    /// Whether the server reports statistics some time after a session has ended: before PostgreSQL 15.
    fn has_delayed_statistics(&self) -> bool {
        let major = self.version.as_deref().and_then(Major::from_reported);
        major.is_some_and(|major| major < Major::new(15))
    }
}

impl ActiveTrial<'_> {
    /// The load of the trial.
    fn load(
        &self,
        (connection, replica): (Connection, Option<Connection>),
        streams: Option<&StreamsFile>,
    ) -> Load {
        let cell = self.cell;
        let recorded = || cell.workload.trace().map(|trace| self.context.plan.directory.join(&trace.file));
        Load {
            connection,
            replica,
            workload: cell.workload.clone(),
            scale: cell.scale,
            trace: streams.map(StreamsFile::path).or_else(recorded),
            protocol: cell.protocol,
            clients: cell.clients,
            threads: self.driver_threads(),
            rate: cell.rate,
            cpus: cell.pin.driver.as_deref().and_then(cpu_list),
            // All cells of a block have the same seed, and so the same keys.
            seed: self.context.plan.run.seed.wrapping_add(u64::from(self.next.trial.repeat)),
            warmup_us: self.lead().us(),
            duration_us: cell.duration.us(),
            interval_us: INTERVAL_US,
            slices: self.context.side.map(|side| Slices { guard_us: side.guard_us() }),
            part: None,
        }
    }

    /// Number of threads of the driver; of several together.
    fn driver_threads(&self) -> u32 {
        let plan = self.context.plan;
        let processors = plan.run.processors.unwrap_or(1);
        match &plan.load_hosts {
            None => self.cell.driver_threads(processors),
            Some(hosts) => self.cell.driver_threads_on_hosts(hosts.count(), processors),
        }
    }

    /// The measured window of a load that started at this time.
    fn window(&self, started: ClockReading) -> Window {
        let us = |span: Span| i64::try_from(span.us()).unwrap_or(i64::MAX / 4);
        let from_us = us(self.lead());
        let length_us = match self.context.side {
            None => us(self.cell.duration),
            // With the warm-up, and pauses of the same length.
            Some(_) => 2 * (us(self.cell.warmup) + us(self.cell.duration)),
        };
        let to_us = from_us.saturating_add(length_us);
        Window { origin_us: started.monotonic_us, from_us, to_us }
    }
}

/// The sessions that collectors count as the load's.
fn load_sessions(cell: &Cell) -> LoadSessions {
    let has_background = cell.workload.custom().is_some_and(|custom| !custom.background.is_empty());
    LoadSessions {
        database: server::DATABASE.to_owned(),
        // Sessions of a trace have the names that were recorded.
        application_name: cell.workload.trace().is_none().then(|| driver::APPLICATION_NAME.to_owned()),
        background: has_background.then(|| driver::BACKGROUND_APPLICATION_NAME.to_owned()),
    }
}

/// The transactions as both sides counted them. The count of a server that does not answer is unknown.
fn account(
    server: &dyn ServerUnderTest,
    cell: &Cell,
    before: &ServerState,
    collected: &Collected,
    outcome: Option<&Outcome>,
) -> Accounting {
    let driver_transactions = outcome.map(|outcome| {
        let planned = cell.workload.custom().map_or(&[][..], |custom| &custom.background);
        let is_elsewhere =
            |number: usize| cell.topology.has_replica() && planned.get(number).is_some_and(|one| one.replica);
        let background = outcome.background.iter().enumerate();
        let background = background.filter(|(number, _)| !is_elsewhere(*number));
        let background: u64 = background.map(|(_, background)| background.transactions).sum();
        outcome.warmup_transactions + outcome.window_transactions + outcome.drain_transactions + background
    });
    let driver_commits = outcome.map(|outcome| outcome.commits);
    // Clients of a pooler begin no sessions of the server: those that the pooler begins are not reported.
    let is_pooled = cell.topology.companion() == Some(Companion::Pgbouncer);
    let begun = |outcome: &Outcome| if is_pooled { 0 } else { outcome.other_commits };
    let other_commits = outcome.map(|outcome| begun(outcome) + collected.commits);
    let expected = || Some(before.commits? + driver_commits? + other_commits?);
    let after = outcome.and_then(|_| server.commits(expected()).ok());
    let server_commits = before.commits.zip(after).and_then(|(before, after)| after.checked_sub(before));
    // Parallel workers have transactions of their own. No statement of pgbench's scripts uses them.
    let may_launch = |custom: &Custom| {
        let mut scripts = custom.with_background().flat_map(|custom| &custom.scripts);
        before.setting(PARALLEL_WORKERS) != Some("0") || scripts.any(|script| allows_workers(&script.text))
    };
    let workers =
        cell.workload.custom().is_some_and(may_launch) && workers_launched(&collected.metrics) != Some(0.0);
    let has_unreported_commits =
        workers || is_pooled || outcome.is_some_and(|outcome| outcome.has_unreported_commits);
    Accounting { driver_transactions, driver_commits, has_unreported_commits, other_commits, server_commits }
}

/// The setting that allows parallel workers, also within a session.
const PARALLEL_WORKERS: &str = "max_parallel_workers_per_gather";

/// Whether a script sets it to another number than 0.
fn allows_workers(script: &str) -> bool {
    let mut digits =
        script.split(PARALLEL_WORKERS).skip(1).map(|rest| rest.chars().find(char::is_ascii_digit));
    digits.any(|digit| digit != Some('0'))
}

/// Parallel workers launched between the first and the last reading; none before PostgreSQL 18, which does not report them.
fn workers_launched(metrics: &Metrics) -> Option<f64> {
    let points = &metrics.get("pg.database.parallel_workers_launched", None)?.points;
    Some(points.last()?.value? - points.first()?.value?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_allows_workers_unless_it_sets_their_number_to_none() {
        assert!(allows_workers("set max_parallel_workers_per_gather = 2;\nselect 1;"));
        assert!(allows_workers(
            "set max_parallel_workers_per_gather to 0; set max_parallel_workers_per_gather to 4"
        ));
        assert!(!allows_workers("set max_parallel_workers_per_gather = 0;\nselect 2;"));
        assert!(!allows_workers("select 2;"));
    }
}
