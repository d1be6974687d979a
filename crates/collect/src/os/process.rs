//! One process with a role.

use std::os::fd::OwnedFd;

use model::metric;
use model::metrics::Metric;
use strum::VariantArray;

use super::proc_files::{Proc, Schedule};
use super::role::Role;
use super::threads::{Threads, figures};

/// Counters of each process.
pub(super) const FIGURES: [&Metric; 8] = [
    metric!("role.user_us"),
    metric!("role.system_us"),
    metric!("role.run_us"),
    metric!("role.wait_us"),
    metric!("role.switches_voluntary"),
    metric!("role.switches_involuntary"),
    metric!("role.read_bytes"),
    metric!("role.write_bytes"),
];
/// Indices in [`FIGURES`].
pub(super) const USER: usize = 0;
pub(super) const SYSTEM: usize = 1;
pub(super) const RUN: usize = 2;

/// In the order of [`FIGURES`]; none if the kernel does not report it, or not to us.
pub(super) type Figures = [Option<f64>; FIGURES.len()];

/// By role, totals of processes that have ended or changed their role.
pub(super) type EndedTotals = [[f64; FIGURES.len()]; Role::VARIANTS.len()];

#[derive(Debug)]
pub(super) struct Process {
    /// None while a process of the server has no title yet.
    pub(super) role: Option<Role>,
    pub(super) figures: Figures,
    /// Its counters when it got its role.
    before: [f64; FIGURES.len()],
    started: u64,
    schedule: Option<Schedule>,
    files: OpenFiles,
    /// Only of the driver and pgdyno.
    pub(super) threads: Option<Threads>,
}

/// Its open files: most processes are idle, and only their `schedstat` is read.
#[derive(Debug, Default)]
struct OpenFiles {
    schedstat: Option<OwnedFd>,
    stat: Option<OwnedFd>,
    status: Option<OwnedFd>,
    io: Option<OwnedFd>,
}

/// Result of reading a process again.
pub(super) enum ReadOutcome {
    Same,
    Ended,
    /// Its id was reused.
    Replaced,
}

impl Process {
    pub(super) fn new(role: Option<Role>, started: u64, threads: Option<Threads>) -> Self {
        let before = [0.0; FIGURES.len()];
        let files = OpenFiles::default();
        Self { role, figures: [None; FIGURES.len()], before, started, schedule: None, files, threads }
    }

    /// Reads its counters. Those that vanish meanwhile keep their values.
    pub(super) fn read(&mut self, proc: &mut Proc, pid: u32) -> ReadOutcome {
        let schedule = proc.schedule(pid, None, &mut self.files.schedstat);
        // If it has not run, nothing else has changed. That is the usual case, and costs reading one file.
        if self.threads.is_none() && schedule.is_some() && schedule == self.schedule {
            return ReadOutcome::Same;
        }
        let Some(stat) = proc.held_stat(pid, &mut self.files.stat) else { return ReadOutcome::Ended };
        if stat.started != self.started {
            return ReadOutcome::Replaced;
        }
        self.schedule = schedule;
        let [run, wait, voluntary, involuntary] = match &mut self.threads {
            Some(threads) => {
                threads.read(proc, pid);
                threads.sums()
            }
            None => figures(schedule, proc.switches(pid, None, &mut self.files.status)),
        };
        let [read, written] = proc.io_bytes(pid, &mut self.files.io);
        let [user, system] = stat.cpu_us.map(Some);
        let now = [user, system, run, wait, voluntary, involuntary, read, written];
        self.figures = std::array::from_fn(|figure| now[figure].or(self.figures[figure]));
        ReadOutcome::Same
    }

    /// Its counters since it got its role.
    pub(super) fn in_role(&self) -> Figures {
        std::array::from_fn(|figure| Some(self.figures[figure]? - self.before[figure]))
    }

    /// Sets its current role. Its counters in an earlier role remain with that.
    pub(super) fn update_role(
        &mut self,
        proc: &mut Proc,
        pid: u32,
        own: Option<Role>,
        ended: &mut EndedTotals,
    ) {
        if self.role.is_none() {
            self.role = proc.title(pid).and_then(|title| Role::by_title(&title));
        }
        if self.role == Some(Role::ReplicaOther)
            && proc.title(pid).is_some_and(|title| Role::is_replay(&title))
        {
            self.role = Some(Role::ReplicaReplay);
        }
        let role = own.unwrap_or(Role::Load);
        let is_backend = matches!(self.role, Some(Role::Load | Role::Background | Role::Collector));
        if !is_backend || self.role == Some(role) {
            return;
        }
        self.leave_role(ended);
        self.before = self.figures.map(Option::unwrap_or_default);
        self.role = Some(role);
    }

    /// Adds its counters in its role to those of others that have left it.
    pub(super) fn leave_role(&self, ended: &mut EndedTotals) {
        if let Some(role) = self.role {
            for (sum, figure) in ended[role as usize].iter_mut().zip(self.in_role()) {
                *sum += figure.unwrap_or_default();
            }
        }
    }
}
