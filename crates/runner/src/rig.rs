//! The rig of a trial: the server under test, the driver, the collectors and the clock, each with the operations that a
//! trial needs. [`LiveRig`] is the real one; tests of a trial's order use one that records what the trial does.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use collect::{Collected, Collection, Subject, Window};
use driver::{DriverError, Process};
use model::cell::Cell;
use model::environment::ServerFacts;
use model::limits::LimitsInForce;
use model::load_hosts::RequestedHosts;
use model::message::{Connection, SessionSamples};
use model::record::{Log, Setting};
use model::waits::Waits;
use model::workload::{Statement, Transport};
use server::{Companion, RawReading, Warmed};

use crate::driver_handle::Driver;
use crate::hooks::{self, HookEnv, HookError};
use crate::load_hosts::{JoinedDriver, LoadHosts};

/// The argument that makes pgdyno a driver process.
pub const DRIVER_COMMAND: &str = "driver";

/// The servers that trials run on.
pub(crate) trait ServerPool {
    /// The server of a cell, running in the state that the cell asks for.
    ///
    /// # Errors
    /// The server does not start, or not in that state.
    fn start(&mut self, cell: &Cell) -> Result<StartedServer<'_>, server::Error>;

    /// Records the end of a trial: whether it wrote or its server may have failed, and the count of commits in the tested
    /// database, if known.
    fn end_trial(&mut self, altered: bool, commits: Option<u64>);
}

/// A server that is ready for a trial.
pub(crate) struct StartedServer<'a> {
    /// The server.
    pub(crate) server: &'a mut dyn ServerUnderTest,
    /// Identity of its programs; none for an external server.
    pub(crate) build: Option<String>,
    /// Facts that it reports about itself.
    pub(crate) facts: ServerFacts,
    /// The count of commits in the tested database, if known.
    pub(crate) commits: Option<u64>,
}

/// The server under test.
pub(crate) trait ServerUnderTest {
    /// Connection of the clients.
    fn connection(&self, transport: Transport) -> Result<Connection, server::Error>;

    /// Connection of pgdyno's own sessions with a database. The tested database counts their transactions with the load's.
    fn own_connection(&self, database: &str) -> Connection;

    /// Process id of the postmaster; none if it runs elsewhere, or is not known.
    fn pid(&self) -> Option<u32>;

    /// Whether it may run on this machine with processes that are not known.
    fn has_hidden_processes(&self) -> bool;

    /// Its data directory; none for an external server.
    fn data_directory(&self) -> Option<&Path>;

    /// Runs a statement in the tested database. Returns the number of commits that the database counts for it.
    fn run(&self, statement: &str) -> Result<u64, server::Error>;

    /// Runs statements in the tested database, in one session; stops at the first that fails.
    fn run_all(&self, statements: &[Statement]) -> Result<(), server::Error>;

    /// Runs statements that only read in the tested database, in one session; returns the number that the last one returns.
    fn figure(&self, statements: &[Statement]) -> Result<f64, server::Error>;

    /// Requests a checkpoint; false if the role lacks the privilege.
    fn checkpoint(&self) -> Result<bool, server::Error>;

    /// Reads the tested database into the server's buffers.
    fn warm(&self) -> Result<Warmed, server::Error>;

    /// Reads a relation's files, bypassing the server; none for an external server.
    fn raw_read(
        &self,
        relation: &str,
        program: &Path,
        interrupt: &AtomicBool,
    ) -> Result<Option<RawReading>, server::Error>;

    /// Its `server_version`, and what `version()` returns.
    fn version(&self) -> Result<(String, String), server::Error>;

    /// Size of the tested database in bytes.
    fn database_bytes(&self) -> Result<u64, server::Error>;

    /// Every setting in force.
    fn settings(&self) -> Result<Vec<Setting>, server::Error>;

    /// The count of commits in the tested database; known at once if it is `expected`.
    fn commits(&self, expected: Option<u64>) -> Result<u64, server::Error>;

    /// Its limits and their effect so far; none without limits.
    fn limits(&self) -> Option<LimitsInForce>;

    /// Its exit status if it has ended or ends within this time; always none for an external server.
    fn exit_status(&mut self, within: Duration) -> Option<String>;

    /// Its log since the last call; none for an external server.
    fn take_log(&mut self) -> Option<String>;

    /// What its topology has next to it.
    fn companion(&self) -> Option<&Companion> {
        None
    }

    /// Waits until its replica has received everything, at most this long. Returns whether it has, or there is none.
    fn catch_up(&self, _within: Duration) -> Result<bool, server::Error> {
        Ok(true)
    }

    /// Why what is next to it no longer works, if so.
    fn companion_failure(&mut self) -> Option<String> {
        None
    }

    /// The log of what is next to it, since the last call.
    fn take_companion_log(&mut self) -> Option<Log> {
        None
    }
}

/// The parts of a trial other than its server: hooks, driver, collectors and clock.
pub(crate) trait Rig {
    /// Runs a hook to its end; an interrupt kills it.
    fn run_hook(&self, command: &str, env: &HookEnv, interrupt: &AtomicBool) -> Result<(), HookError>;

    /// Starts a driver: a process, or one on each load host.
    fn start_driver(&self, program: &Path) -> Result<Box<dyn Driver>, StartError>;

    /// Starts the collectors. One that can't be started is a note in the results.
    fn start_collectors<'a>(&self, subject: Subject<'a>) -> Box<dyn Collectors + 'a>;

    /// The current time, for time limits.
    fn now(&self) -> Instant;

    /// Waits this long, or until an interrupt.
    fn pause(&self, length: Duration, interrupt: &AtomicBool);
}

/// Error of the start of a driver.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The driver process can't be started.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The load hosts can't be used, and why.
    #[error("the load hosts can't be used: {0}")]
    LoadHosts(String),
}

/// Running collectors.
pub(crate) trait Collectors {
    /// Adds the backends that serve background workloads.
    fn add_background_backends(&self, pids: Vec<i32>);

    /// Reports that the load has started.
    fn load_started(&self, window: Window);

    /// Reports that the load pauses or goes on.
    fn set_paused(&self, is_paused: bool);

    /// Activity of the server's sessions in the second of the load that includes this moment; none if it was not sampled.
    fn waits_at(&self, load_us: u64) -> Option<Vec<Waits>>;

    /// The sessions of a trace in the samples since the last call; none if sessions are not sampled.
    fn take_session_samples(&self) -> Option<SessionSamples>;

    /// Takes the last readings and returns everything collected. An interrupt shortens long operations.
    fn finish(self: Box<Self>, interrupt: &AtomicBool) -> Collected;
}

/// The rig of trials on real servers.
pub(crate) struct LiveRig<'a> {
    /// The load hosts to use, and where they come from; none for a driver on this host.
    pub(crate) load_hosts: Option<(&'a dyn LoadHosts, &'a RequestedHosts)>,
}

impl LiveRig<'static> {
    /// With the driver on this host.
    pub(crate) const LOCAL: Self = Self { load_hosts: None };
}

impl Rig for LiveRig<'_> {
    fn run_hook(&self, command: &str, env: &HookEnv, interrupt: &AtomicBool) -> Result<(), HookError> {
        hooks::run(command, env, interrupt)
    }

    fn start_driver(&self, program: &Path) -> Result<Box<dyn Driver>, StartError> {
        let Some((source, requested)) = self.load_hosts else {
            return Ok(Box::new(Process::spawn(program, &[DRIVER_COMMAND])?));
        };
        let drivers = source.start(requested).map_err(|error| StartError::LoadHosts(error.to_string()))?;
        let (asked, got) = (requested.count(), drivers.len());
        if asked as usize != got {
            return Err(StartError::LoadHosts(format!("{asked} were asked for, {got} came")));
        }
        Ok(Box::new(JoinedDriver::new(drivers, Box::new(collect::now))))
    }

    fn start_collectors<'a>(&self, subject: Subject<'a>) -> Box<dyn Collectors + 'a> {
        Box::new(Collection::start(subject))
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn pause(&self, length: Duration, interrupt: &AtomicBool) {
        const POLL_INTERVAL: Duration = Duration::from_millis(100);
        let end = Instant::now() + length;
        while !interrupt.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(POLL_INTERVAL));
        }
    }
}

impl Collectors for Collection<'_> {
    fn add_background_backends(&self, pids: Vec<i32>) {
        self.add_background_backends(pids);
    }

    fn load_started(&self, window: Window) {
        self.load_started(window);
    }

    fn set_paused(&self, is_paused: bool) {
        self.set_paused(is_paused);
    }

    fn waits_at(&self, load_us: u64) -> Option<Vec<Waits>> {
        self.waits_at(load_us)
    }

    fn take_session_samples(&self) -> Option<SessionSamples> {
        self.take_session_samples()
    }

    fn finish(self: Box<Self>, interrupt: &AtomicBool) -> Collected {
        (*self).finish(interrupt)
    }
}
