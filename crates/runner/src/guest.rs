//! One trial in a guest: the same life as on the machine itself, on the server that the guest was given.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use collect::Host;
use host::Cache;
use model::cell::Cell;
use model::message::Interval;
use model::plan::{Plan, PlannedTrial};
use model::record::{Trial, TrialRecord};

use crate::error::RunError;
use crate::schedule::Next;
use crate::servers::Servers;
use crate::trial::{self, Setup};

/// The order that a guest has: which trial of which run, as the head of a trial that has not been run.
pub struct Order<'a> {
    /// Its run, cell, repeat, attempt, position and reason.
    pub trial: &'a Trial,
    /// Its cell.
    pub cell: Cell,
    /// What its campaign says.
    pub plan: Plan,
    /// Where the server is.
    pub cache: &'a Cache,
    /// The program that, called with `driver`, is a driver process: pgdyno itself.
    pub program: &'a Path,
}

impl Order<'_> {
    /// Runs it. `ready` is called when the server takes connections, `hear` with each interval of the load.
    ///
    /// # Errors
    /// The server is not there; the driver process can't be started. What goes wrong otherwise makes an invalid trial.
    pub fn run(mut self, ready: &dyn Fn(), mut hear: impl FnMut(&Interval)) -> Result<TrialRecord, RunError> {
        let Trial { run, repeat, attempt, position, reason, .. } = self.trial;
        // What the cells of the campaign come to on other processors is not asked: this is the one.
        self.plan.cells = vec![self.cell.clone()];
        let progress = Quiet;
        let server = server::guest::unpack(self.cache)?;
        let mut servers = Servers::of_guest(self.cache, &self.cell, server, &progress);
        let host = Host::look();
        let setup = Setup {
            run,
            plan: &self.plan,
            host: &host,
            perf: None,
            program: self.program,
            interrupt: &AtomicBool::new(false),
            ready,
        };
        let trial = PlannedTrial { position: *position, cell: 0, repeat: *repeat };
        let next = Next { trial, attempt: *attempt, reason: reason.clone() };
        trial::run(&setup, &mut servers, &next, |interval, _| hear(interval)).map(|ended| ended.record)
    }
}

/// There is nothing to prepare that somebody would want to hear of.
struct Quiet;

impl host::Progress for Quiet {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}

    fn interrupted(&self) -> bool {
        false
    }
}
