//! One trial in a guest: runs as on the machine itself, on the server that was packed into the guest.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use collect::{Host, Perf};
use host::{Cache, NoProgress};
use machine::vm::Frame;
use machine::vm::guest::{Guest, PROGRAM};
use model::cell::Cell;
use model::message::Interval;
use model::plan::{Plan, PlannedTrial};
use model::record::{Trial, TrialRecord};
use store::{Store, StoreError};

use crate::campaign_file::{CampaignFile, CampaignFileError, workloads_of};
use crate::error::RunError;
use crate::machines::{JOB, RESULT};
use crate::rig::LiveRig;
use crate::schedule::NextTrial;
use crate::servers::Servers;
use crate::trial::{self, RunContext};

/// Error of a guest's job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The job can't be read, or the bundle can't be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The campaign is invalid.
    #[error(transparent)]
    Campaign(#[from] CampaignFileError),
    /// A level of the cell is unknown.
    #[error("the job does not have every level of its cell")]
    UnknownLevel,
    /// The trial could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The bundle could not be sent to the host.
    #[error("the bundle can't be read: {0}")]
    Send(#[from] io::Error),
}

/// Runs the trial of the job with this id, and sends its bundle to the host.
///
/// # Errors
/// The job can't be read, the server is missing, or the bundle can't be written. Every other failure makes an invalid
/// trial.
pub fn run_job(guest: &Guest, id: &str, cache: &Cache) -> Result<(), JobError> {
    let jobs = Store::existing(Path::new(JOB))?.with_secrets();
    let trial = jobs.head(id)?;
    let known = workloads_of(jobs.trials()?.iter());
    let text = trial.run.campaign_toml.clone();
    let file =
        CampaignFile::parse_with(Path::new("campaign.toml"), text, trial.run.basis(), &known, &NoProgress)?;
    let cell = trial.cell.to_cell().ok_or(JobError::UnknownLevel)?;
    let job = TrialJob { trial: &trial, cell, plan: file.plan, cache, program: Path::new(PROGRAM) };
    let record = job.run(&|| guest.send_frame(&Frame::Ready), |interval| {
        // Without an interval, the host shows less progress.
        guest.send_frame(&Frame::Interval(serde_json::to_vec(interval).unwrap_or_default()));
    })?;
    let result = Path::new("/").join(RESULT);
    Store::open(&result)?.write(&record)?;
    Ok(guest.send(&result, RESULT)?)
}

/// A guest's job: the trial to run.
struct TrialJob<'a> {
    /// The trial without results: its run, repeat, attempt, position and reason.
    trial: &'a Trial,
    /// Its cell.
    cell: Cell,
    /// The plan of its campaign.
    plan: Plan,
    /// The cache with the server.
    cache: &'a Cache,
    /// The program that becomes a driver process if called with `driver`: pgdyno itself.
    program: &'a Path,
}

impl TrialJob<'_> {
    /// Runs the trial. Calls `on_ready` when the server accepts connections, `on_interval` with each interval of the load.
    ///
    /// # Errors
    /// The server is missing; the driver process can't be started. Every other failure makes an invalid trial.
    fn run(
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
        let host = Host::read();
        // Packed only for profiles.
        let perf = self.plan.profile.and_then(|_| Perf::counting());
        let context = RunContext {
            side: None,
            run,
            plan: &self.plan,
            host: &host,
            perf: perf.as_ref(),
            program: self.program,
            rig: &LiveRig::LOCAL,
            interrupt: &AtomicBool::new(false),
            on_ready,
        };
        let trial = PlannedTrial { position: *position, cell: 0, repeat: *repeat };
        let next = NextTrial { trial, attempt: *attempt, reason: reason.clone() };
        trial::run(&context, &mut servers, &next, |interval, _| on_interval(interval))
            .map(|ended| ended.record)
    }
}
