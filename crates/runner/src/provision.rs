//! The levels of a bisection are provided when a session needs them: most are never measured.

use host::Cache;
use jiff::Timestamp;
use model::cell::Cell;
use model::plan::PlannedTrial;

use crate::error::RunError;
use crate::machines::Machines;
use crate::schedule::NextTrial;
use crate::servers::Servers;
use crate::trial::{self, FinishedTrial, RunContext};

/// What the trials of a session run on.
pub(crate) struct Provision<'p, 's> {
    /// The servers, those of the baseline if sessions are in slices.
    pub(crate) servers: &'p mut Servers<'s>,
    /// Those of the other side; none unless sessions are in slices.
    pub(crate) second: Option<&'p mut Servers<'s>>,
    /// The kernels; none without virtual machines.
    pub(crate) machines: Option<&'p mut Machines>,
}

impl Provision<'_, '_> {
    /// Provides servers and kernels of a session, or of what is left of it. Returns an invalid trial if a level's own server or
    /// kernel is the reason that this fails: other levels can be measured.
    ///
    /// # Errors
    /// Something fails for another reason; interrupted.
    pub(crate) fn provide(
        mut self,
        context: &RunContext,
        cache: &Cache,
        session: &[PlannedTrial],
        progress: &dyn host::Progress,
    ) -> Result<Option<FinishedTrial>, RunError> {
        if let (Some(second), [a, b]) = (&mut self.second, session) {
            self.servers.keep_copies_of(context.plan.cell(a));
            second.keep_copies_of(context.plan.cell(b));
        }
        for trial in session {
            let cell = context.plan.cell(trial);
            let next = NextTrial { trial: *trial, attempt: 1, reason: None };
            let failed = match self.provide_server(context, cell)? {
                None => self.provide_kernel(context, cache, &next, progress)?,
                Some(reason) => Some(trial::not_provided(context, &next, diagnose::no_server(reason))),
            };
            if failed.is_some() {
                return Ok(failed);
            }
        }
        Ok(None)
    }

    /// Provides the server of a cell; returns the reason if the server itself is the reason that it can't.
    fn provide_server(&mut self, context: &RunContext, cell: &Cell) -> Result<Option<String>, RunError> {
        if self.servers.has(cell) {
            return Ok(None);
        }
        match self.servers.provide(context.plan, &[cell]) {
            Err(error) if error.is_of_server() => return Ok(Some(error.to_string())),
            provided => provided?,
        }
        if let Some(second) = &mut self.second {
            second.adopt(self.servers);
        }
        Ok(None)
    }

    fn provide_kernel(
        &mut self,
        context: &RunContext,
        cache: &Cache,
        next: &NextTrial,
        progress: &dyn host::Progress,
    ) -> Result<Option<FinishedTrial>, RunError> {
        let cell = context.plan.cell(&next.trial);
        let Some(machines) = self.machines.as_mut().filter(|_| cell.acceleration.is_virtual()) else {
            return Ok(None);
        };
        let Err(error) = machines.provide(cache, context.plan, cell, progress) else { return Ok(None) };
        let reason = error.to_string();
        match error {
            machine::Error::KernelPackage { .. } => {
                // A later command may find the package, or a network.
                let environment = context.host.environment(None);
                let why = (reason, None);
                Ok(Some(trial::failed(context, next, Timestamp::now(), environment, why, Vec::new())))
            }
            error if error.is_of_kernel() => {
                Ok(Some(trial::not_provided(context, next, diagnose::no_kernel(reason))))
            }
            error => Err(error.into()),
        }
    }
}
