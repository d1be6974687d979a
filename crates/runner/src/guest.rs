//! One trial in a guest: runs as on the machine itself, on the server that was packed into the guest.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use collect::Host;
use host::Cache;
use model::cell::Cell;
use model::message::Interval;
use model::plan::{Plan, PlannedTrial};
use model::record::{Trial, TrialRecord};

use crate::error::RunError;
use crate::rig::LiveRig;
use crate::schedule::NextTrial;
use crate::servers::Servers;
use crate::trial::{self, RunContext};

/// A guest's order: the trial to run.
pub struct Order<'a> {
    /// The trial without results: its run, repeat, attempt, position and reason.
    pub trial: &'a Trial,
    /// Its cell.
    pub cell: Cell,
    /// The plan of its campaign.
    pub plan: Plan,
    /// The cache with the server.
    pub cache: &'a Cache,
    /// The program that becomes a driver process if called with `driver`: pgdyno itself.
    pub program: &'a Path,
}

impl Order<'_> {
    /// Runs the trial. Calls `on_ready` when the server accepts connections, `on_interval` with each interval of the load.
    ///
    /// # Errors
    /// The server is missing; the driver process can't be started. Every other failure makes an invalid trial.
    pub fn run(
        mut self,
        on_ready: &dyn Fn(),
        mut on_interval: impl FnMut(&Interval),
    ) -> Result<TrialRecord, RunError> {
        let Trial { run, repeat, attempt, position, reason, .. } = self.trial;
        // The campaign's other cells may not be valid on this machine's processors.
        self.plan.cells = vec![self.cell.clone()];
        let progress = NoProgress;
        let server = server::guest::unpack(self.cache)?;
        let mut servers = Servers::from_guest(self.cache, &self.cell, server, &progress);
        let host = Host::look();
        let context = RunContext {
            run,
            plan: &self.plan,
            host: &host,
            perf: None,
            program: self.program,
            rig: &LiveRig,
            interrupt: &AtomicBool::new(false),
            on_ready,
        };
        let trial = PlannedTrial { position: *position, cell: 0, repeat: *repeat };
        let next = NextTrial { trial, attempt: *attempt, reason: reason.clone() };
        trial::run(&context, &mut servers, &next, |interval, _| on_interval(interval))
            .map(|ended| ended.record)
    }
}

/// Ignores progress: a guest has nothing to prepare.
struct NoProgress;

impl host::Progress for NoProgress {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}

    fn interrupted(&self) -> bool {
        false
    }
}
