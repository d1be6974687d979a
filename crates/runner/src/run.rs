//! A run under its claim and with its live file.

use std::fmt::Display;

use model::plan::Plan;
use model::record::{Run, Trial};
use store::{Store, StoreError};

use crate::campaign::{Campaign, RunOutcome};
use crate::error::RunError;
use crate::live_file::LiveFile;
use crate::observer::Observer;

/// Claims the run, so that no other pgdyno runs it at the same time, executes it, and reports its progress to its live file
/// in the store as well.
///
/// # Errors
/// As [`Campaign::execute`]; another pgdyno has claimed the run.
pub fn run(campaign: &Campaign) -> Result<RunOutcome, RunError> {
    let Campaign { plan, run, trials, store, observer, .. } = *campaign;
    let claimed = Claimed { store, plan, run, trials };
    let execute = |live: &dyn Observer| Campaign { observer: live, ..*campaign }.execute();
    claimed.execute(observer, execute, |error| matches!(error, RunError::Interrupted))
}

/// A run that one pgdyno at a time executes or collects.
#[derive(Clone, Copy)]
pub struct Claimed<'a> {
    /// The store of its trials.
    pub store: &'a Store,
    /// Its plan.
    pub plan: &'a Plan,
    /// The run.
    pub run: &'a Run,
    /// Its trials in the store.
    pub trials: &'a [Trial],
}

impl Claimed<'_> {
    /// Executes the run with an observer that also writes its live file.
    ///
    /// # Errors
    /// Another pgdyno has claimed the run; that of `execute`, which may be an interrupt.
    pub fn execute<E: Display + From<StoreError>>(
        self,
        observer: &dyn Observer,
        execute: impl FnOnce(&dyn Observer) -> Result<RunOutcome, E>,
        is_interrupt: impl FnOnce(&E) -> bool,
    ) -> Result<RunOutcome, E> {
        let _claim = self.store.claim(&self.run.id)?;
        let live = LiveFile::begin(self.store, self.plan, self.run, self.trials, observer);
        let outcome = execute(&live);
        let interrupted = match &outcome {
            Ok(outcome) => outcome.interrupted,
            Err(error) => is_interrupt(error),
        };
        live.end(interrupted, outcome.as_ref().err().map(ToString::to_string));
        outcome
    }
}
