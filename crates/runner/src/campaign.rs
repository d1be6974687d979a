//! Goes through a plan, trial after trial.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use collect::{Host, Perf};
use diagnose::confounds;
use host::Cache;
use model::cell::Cell;
use model::plan::Plan;
use model::record::{Run, Trial};
use model::units::Span;
use store::Store;

use crate::error::RunError;
use crate::hooks::{self, Told};
use crate::machines::Machines;
use crate::progress::{Event, Observer};
use crate::schedule::{Here, Schedule, Standing};
use crate::servers::Servers;
use crate::trial::{self, Setup};

/// A run of a campaign: what, where and under whose eyes.
pub struct Campaign<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// The run that the trials will belong to.
    pub run: &'a Run,
    /// Those of its trials that have been run already.
    pub trials: &'a [Trial],
    /// Where pgdyno is.
    pub here: &'a Here,
    /// Whether nothing is to be measured where there are confounds.
    pub strict: bool,
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
    /// How far the campaign is.
    pub standing: Standing,
    /// Whether the user ended the run.
    pub interrupted: bool,
}

/// A campaign gives up after this many trials in a row without a load.
const GIVE_UP_AFTER: u32 = 3;

impl Campaign<'_> {
    /// Prepares the servers and runs every trial that is still to be run, each into the store as soon as it has ended.
    ///
    /// # Errors
    /// A server that can't be prepared, a hook that fails before the first trial, a bundle that can't be written, or
    /// several trials in a row without a load.
    pub fn execute(&self) -> Result<Executed, RunError> {
        let mut schedule = Schedule::new(self.plan, self.here, self.trials);
        if schedule.next().is_none() {
            return Ok(Executed { standing: schedule.standing(), interrupted: false });
        }
        let hooks = &self.plan.hooks;
        let told = Told::campaign(&self.plan.campaign, &self.run.id);
        if let Some(hook) = &hooks.before_campaign {
            hooks::run(hook, &told, self.interrupt).map_err(RunError::Hook)?;
        }
        let outcome = self.trials(&mut schedule);
        if let Some(hook) = &hooks.after_campaign
            && let Err(why) = hooks::run(hook, &told, &AtomicBool::new(false))
        {
            self.observer.see(&Event::Notice(&why));
        }
        outcome?;
        Ok(Executed { standing: schedule.standing(), interrupted: self.interrupted() })
    }

    fn trials(&self, schedule: &mut Schedule) -> Result<(), RunError> {
        // Known in a moment, and so before servers are fetched and filled.
        let perf = self.plan.profile.as_ref().map(Perf::find).transpose().map_err(RunError::Profile)?;
        let preparation = Preparation(self);
        let cells: Vec<&Cell> = self.plan.cells.iter().filter(|cell| self.here.runs(cell)).collect();
        let machines = match Machines::prepare(self.cache, self.plan, &cells, &preparation) {
            Err(error) if error.is_interrupted() => return Err(RunError::Interrupted),
            machines => machines?,
        };
        let mut servers = match Servers::prepare(self.cache, self.plan, &cells, &preparation) {
            Err(error) if error.is_interrupted() => return Err(RunError::Interrupted),
            servers => servers?,
        };
        self.guard(&servers)?;
        let host = Host::look();
        let setup = Setup {
            run: self.run,
            plan: self.plan,
            host: &host,
            perf: perf.as_ref(),
            program: self.program,
            interrupt: self.interrupt,
            ready: &|| (),
        };
        let mut without_load = 0;
        let mut some_loaded = false;
        let mut pace = Pace { begun: Instant::now(), estimated: 0 };
        while let Some(next) = schedule.next() {
            if self.interrupted() {
                break;
            }
            let cell = self.plan.cell(&next.trial);
            self.observer.see(&Event::TrialBegins {
                trial: &next.trial,
                cell,
                attempt: next.attempt,
                reason: next.reason.as_deref(),
                of: self.plan.trials.len().max(next.trial.position as usize),
                remaining: pace.remaining(self.plan.estimate_of(&schedule.ahead())),
            });
            let on_interval =
                |interval: &_, waits: Option<&_>| self.observer.see(&Event::Load { interval, waits });
            let ended = match &machines {
                Some(machines) if cell.acceleration.is_virtual() => {
                    machines.run(&setup, self.cache, &servers, &next, on_interval)?
                }
                _ => trial::run(&setup, &mut servers, &next, on_interval)?,
            };
            self.store.write(&ended.record)?;
            schedule.note(&ended.record.trial);
            pace.estimated += self.plan.estimate_of(&[next.trial]).us();
            let validity = &ended.record.trial.validity;
            self.observer.see(&Event::TrialEnded(&ended.record.trial));
            without_load = if ended.loaded || self.interrupted() { 0 } else { without_load + 1 };
            some_loaded |= ended.loaded;
            // A kernel that does not come up is no reason to leave out the others.
            let is_the_kernels = cell.acceleration.is_virtual()
                && (some_loaded
                    || schedule.ahead().iter().any(|ahead| self.plan.cell(ahead).kernel != cell.kernel));
            if without_load >= GIVE_UP_AFTER && !is_the_kernels {
                let reason = validity.findings.first().map(|finding| finding.evidence.clone());
                return Err(RunError::GivingUp {
                    count: without_load,
                    cell: cell.to_string(),
                    reason: reason.unwrap_or_default(),
                });
            }
        }
        Ok(())
    }

    /// Tells of what differs between cells that are to be compared, beside what they are compared by.
    fn guard(&self, servers: &Servers) -> Result<(), RunError> {
        let confounds = confounds(self.plan, |cell| servers.facts(cell));
        if confounds.is_empty() {
            return Ok(());
        }
        let text = diagnose::in_words(&confounds);
        if self.strict {
            return Err(RunError::Confounded { text });
        }
        self.observer.see(&Event::Notice(&text));
        Ok(())
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// How long trials take beside what the plan estimates.
struct Pace {
    begun: Instant,
    /// What the trials since then should have taken, in microseconds.
    estimated: u64,
}

impl Pace {
    fn remaining(&self, estimate: Span) -> Span {
        if self.estimated == 0 {
            return estimate;
        }
        let ratio = self.begun.elapsed().as_micros() as f64 / self.estimated as f64;
        Span::from_us((estimate.us() as f64 * ratio) as u64)
    }
}

/// Hands the target's progress on, and tells it when to stop.
struct Preparation<'a>(&'a Campaign<'a>);

impl host::Progress for Preparation<'_> {
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
