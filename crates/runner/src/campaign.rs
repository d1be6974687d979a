//! Goes through a plan, trial after trial.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use model::plan::Plan;
use model::record::{Run, Status};
use model::units::Span;
use store::Store;
use target::{Cache, TargetError};

use crate::error::RunError;
use crate::progress::{Event, Observer};
use crate::servers::Servers;
use crate::trial::{self, Setup};

/// A run of a campaign: what, where and under whose eyes.
pub struct Campaign<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// The run that the trials will belong to.
    pub run: &'a Run,
    /// Where the bundles go.
    pub store: &'a Store,
    /// Where servers and data sets are.
    pub cache: &'a Cache,
    /// The program that, called with `driver`, is a driver process: pgdyno itself.
    pub program: &'a Path,
    /// Set when the user wants to stop: the running trial is ended and kept as invalid.
    pub interrupt: &'a AtomicBool,
    /// Who is told what happens.
    pub observer: &'a dyn Observer,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Trials in the store that may be used.
    pub usable: usize,
    /// Trials in the store that may not.
    pub invalid: usize,
    /// Whether the user ended the run.
    pub interrupted: bool,
}

/// A campaign gives up after this many trials in a row without a load.
const GIVE_UP_AFTER: u32 = 3;

impl Campaign<'_> {
    /// Prepares the servers and runs every trial, each into the store as soon as it has ended.
    ///
    /// # Errors
    /// A server that can't be prepared, a bundle that can't be written, or several trials in a row without a load.
    pub fn execute(&self) -> Result<Executed, RunError> {
        let mut servers = match Servers::prepare(self.cache, self.plan, &Preparation(self)) {
            Err(TargetError::Interrupted) => return Err(RunError::Interrupted),
            servers => servers?,
        };
        let setup = Setup {
            run: self.run,
            settings: self.plan.run,
            program: self.program,
            interrupt: self.interrupt,
        };
        let mut executed = Executed::default();
        let mut without_load = 0;
        let begun = Instant::now();
        for (done, planned) in self.plan.trials.iter().enumerate() {
            if self.interrupted() {
                executed.interrupted = true;
                break;
            }
            let cell = self.plan.cell(planned);
            self.observer.see(&Event::TrialBegins {
                trial: planned,
                cell,
                of: self.plan.trials.len(),
                remaining: self.remaining(done, begun),
            });
            let on_interval = |interval: &_| self.observer.see(&Event::Load(interval));
            let ended = trial::run(&setup, &mut servers, planned, cell, on_interval)?;
            self.store.write(&ended.record)?;
            let validity = &ended.record.trial.validity;
            match validity.status {
                Status::Invalid => executed.invalid += 1,
                Status::Valid | Status::Suspect => executed.usable += 1,
            }
            self.observer.see(&Event::TrialEnded(&ended.record.trial));
            without_load = if ended.loaded || self.interrupted() { 0 } else { without_load + 1 };
            if without_load == GIVE_UP_AFTER {
                let reason = validity.findings.first().map(|finding| finding.evidence.clone());
                return Err(RunError::GivingUp {
                    count: without_load,
                    cell: cell.to_string(),
                    reason: reason.unwrap_or_default(),
                });
            }
            executed.interrupted = self.interrupted();
        }
        Ok(executed)
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// The plan's own estimate, scaled by how long the trials so far took compared with theirs.
    fn remaining(&self, done: usize, begun: Instant) -> Span {
        let (behind, ahead) = self.plan.trials.split_at(done);
        let (behind, ahead) = (self.plan.estimate_of(behind).us(), self.plan.estimate_of(ahead).us());
        if behind == 0 {
            return Span::from_us(ahead);
        }
        let ratio = begun.elapsed().as_micros() as f64 / behind as f64;
        Span::from_us((ahead as f64 * ratio) as u64)
    }
}

/// Hands the target's progress on, and tells it when to stop.
struct Preparation<'a>(&'a Campaign<'a>);

impl target::Progress for Preparation<'_> {
    fn step(&self, what: &str, done: u64, total: Option<u64>) {
        self.0.observer.see(&Event::Preparing { what, done, total });
    }

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }

    fn notice(&self, text: &str) {
        self.0.observer.see(&Event::Notice(text));
    }
}
