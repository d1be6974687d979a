//! Kernels of a campaign, booted on the machine itself one after the other (`--kernels-by-reboot`). The outcome of each boot
//! is in the store as trials; the state of the machine is in its journal ([`machine::reboot`]).

mod boots;
mod error;
mod journaled;
mod preparation;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use host::Cache;
use machine::reboot::{Boot, BootRequest, CrashLog, Journal, Loader, Machine, Step, execute};
use model::cell::Cell;
use model::plan::Plan;
use model::record::{Run, Trial};
use model::secret::mask;
use store::Store;

use crate::campaign::{Campaign, RunOutcome};
use crate::error::RunError;
use crate::host_context::HostContext;
use crate::observer::{Event, Observer};
use crate::run::run;
use crate::without_kernel::{OpenTrial, open_trials};
use boots::{boot_of, is_under, waiting};
pub use error::RebootError;
pub use journaled::{JournaledRun, Restored, journaled_run, restore};
pub use preparation::{PlannedBoot, Preparation};

/// Time after which trials begin even if the boot has not completed.
const BOOT_TIMEOUT: Duration = Duration::from_secs(300);

/// A run whose kernels are booted.
#[derive(Clone, Copy)]
pub struct Reboots<'a> {
    /// Its plan.
    pub plan: &'a Plan,
    /// The run.
    pub run: &'a Run,
    /// Directory of its store.
    pub root: &'a Path,
    /// Whether confounds are an error, before anything is measured.
    pub strict: bool,
    /// Whether to measure at the same time as other pgdynos on this host, instead of waiting for them.
    pub allow_concurrent: bool,
    /// The cache of servers and data sets.
    pub cache: &'a Cache,
    /// pgdyno itself.
    pub program: &'a Path,
    /// Set when the user wants to stop.
    pub interrupt: &'a AtomicBool,
    /// The receiver of events.
    pub observer: &'a dyn Observer,
}

/// Outcome of a run up to the next boot, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebootOutcome {
    /// The user interrupted it.
    Interrupted {
        /// Whether the machine is restored; otherwise the run continues after the next boot.
        is_restored: bool,
    },
    /// The machine is about to boot the next kernel.
    Booting,
    /// All trials have been run, and the machine is restored.
    Finished {
        /// Outcome of the run.
        outcome: RunOutcome,
        /// The boot of the machine's own kernel; none if it is running.
        boot: Option<Step>,
    },
}

impl Reboots<'_> {
    /// Changes the machine as prepared, runs the trials of the running kernel, and boots the first other one.
    ///
    /// # Errors
    /// A step fails, or a trial can't be run or stored; the machine is then restored.
    pub fn begin(&self, preparation: Preparation) -> Result<RebootOutcome, RebootError> {
        // Before the machine is changed.
        let store = Store::open(self.root)?;
        execute(&preparation.prepared.steps)?;
        self.continue_run(&Machine::local(), preparation.prepared.journal, &store, true)
    }

    /// Continues after a boot.
    ///
    /// # Errors
    /// As [`Reboots::begin`].
    pub fn continue_after_boot(&self, mut journal: Journal) -> Result<RebootOutcome, RebootError> {
        let machine = Machine::local();
        let store = Store::open(self.root)?;
        wait_for_boot();
        self.check_last_boot(&machine, &mut journal, &store)?;
        self.continue_run(&machine, journal, &store, false)
    }

    /// Checks the outcome of the last boot. A kernel that failed to boot, or crashed, costs each trial that waits for
    /// it an attempt.
    fn check_last_boot(
        &self,
        machine: &Machine,
        journal: &mut Journal,
        store: &Store,
    ) -> Result<(), RebootError> {
        let Some(last) = &mut journal.last else { return Ok(()) };
        let running = machine.running()?;
        if last.boot.is_up(&running) {
            self.notice(&format!("{} came up", last.boot));
            match machine.set_parameters(&last.boot) {
                Ok(()) => last.came_up = true,
                Err(error) => {
                    let boot = last.boot.clone();
                    journal.last = None;
                    machine.write_journal(journal)?;
                    return self.invalidate(store, journal, &boot, &format!("under {boot}: {error}"), None);
                }
            }
        } else {
            let last = last.clone();
            let crash_log = CrashLog::find(&last.boot.release, last.at);
            let evidence = evidence(&last, journal.loader, &running.release, crash_log.as_ref());
            let log = crash_log.as_ref().map(|log| log.text.as_str());
            self.invalidate(store, journal, &last.boot, &evidence, log)?;
            journal.last = None;
        }
        Ok(machine.write_journal(journal)?)
    }

    /// Runs the trials of the running kernel, and boots the next one.
    fn continue_run(
        &self,
        machine: &Machine,
        mut journal: Journal,
        store: &Store,
        is_first: bool,
    ) -> Result<RebootOutcome, RebootError> {
        match self.measure(store, &journal) {
            Ok(RunOutcome { interrupted: true, .. }) | Err(RunError::Interrupted) => {
                if is_first {
                    execute(&machine.restore(&journal)?)?;
                } else {
                    journal.withdraw();
                    machine.write_journal(&journal)?;
                }
                return Ok(RebootOutcome::Interrupted { is_restored: is_first });
            }
            Ok(_) => {}
            // An outage is not the kernel's fault.
            Err(error) => match journal.last.take().filter(|last| last.came_up && error.outage().is_none()) {
                Some(last) => {
                    let evidence = format!("under {}: {}", last.boot, with_sources(&error));
                    self.invalidate(store, &journal, &last.boot, &evidence, None)?;
                }
                None => {
                    execute(&machine.restore(&journal)?)?;
                    return Err(error.into());
                }
            },
        }
        journal.last = None;
        self.boot_next(machine, journal, store)
    }

    /// Boots the next kernel that trials wait for; without one, restores the machine.
    fn boot_next(
        &self,
        machine: &Machine,
        mut journal: Journal,
        store: &Store,
    ) -> Result<RebootOutcome, RebootError> {
        loop {
            let trials = self.trials()?;
            let open = open_trials(self.plan, &trials, &journal.campaign.earlier);
            let Some(cell) = waiting(self.plan, &open).next() else {
                return self.finish(machine, &journal, store);
            };
            // The trials of a kernel removed since the beginning are lost; the others continue.
            let boot = match boot_of(cell, machine) {
                Ok(boot) => boot,
                Err(error) => {
                    let is_lost = |open: &Cell| !open.acceleration.is_virtual() && open.kernel == cell.kernel;
                    self.invalidate_where(store, &journal, is_lost, &error.to_string(), None)?;
                    continue;
                }
            };
            if journal.times_requested(&boot) > self.plan.run.retries {
                let evidence =
                    format!("{boot} has already been booted {} times", journal.times_requested(&boot));
                self.invalidate(store, &journal, &boot, &evidence, None)?;
                continue;
            }
            journal.request(&boot);
            let steps = match machine.boot(&journal, &boot) {
                Ok(steps) => steps,
                Err(error) => {
                    self.invalidate(store, &journal, &boot, &error.to_string(), None)?;
                    continue;
                }
            };
            self.notice(&format!("booting {boot}; its output goes to {}", journal.campaign.log().display()));
            if let Err(error) = execute(&steps) {
                execute(&machine.restore(&journal)?)?;
                return Err(error.into());
            }
            return Ok(RebootOutcome::Booting);
        }
    }

    fn finish(
        &self,
        machine: &Machine,
        journal: &Journal,
        store: &Store,
    ) -> Result<RebootOutcome, RebootError> {
        execute(&machine.restore(journal)?)?;
        // No trial is left to run: this only returns the outcome.
        let outcome = self.measure(store, journal)?;
        let boot = (machine.running()? != journal.original).then(|| machine.reboot());
        Ok(RebootOutcome::Finished { outcome, boot })
    }

    fn measure(&self, store: &Store, journal: &Journal) -> Result<RunOutcome, RunError> {
        run(&Campaign {
            plan: self.plan,
            run: self.run,
            trials: &self.trials()?,
            earlier: &journal.campaign.earlier,
            block: None,
            more_blocks: None,
            host: &HostContext::detect(),
            strict: self.strict,
            allow_concurrent: self.allow_concurrent,
            store,
            cache: self.cache,
            program: self.program,
            // Kernels of this machine have a server on it.
            load_hosts: None,
            interrupt: self.interrupt,
            observer: self.observer,
        })
    }

    /// Stores the open trials of a boot as invalid.
    fn invalidate(
        &self,
        store: &Store,
        journal: &Journal,
        boot: &Boot,
        evidence: &str,
        log: Option<&str>,
    ) -> Result<(), RebootError> {
        self.invalidate_where(store, journal, |cell| is_under(cell, boot), evidence, log)
    }

    fn invalidate_where(
        &self,
        store: &Store,
        journal: &Journal,
        is_lost: impl Fn(&Cell) -> bool,
        evidence: &str,
        log: Option<&str>,
    ) -> Result<(), RebootError> {
        let trials = self.trials()?;
        let host = HostContext::detect();
        let open = open_trials(self.plan, &trials, &journal.campaign.earlier);
        let lost: Vec<&OpenTrial> =
            open.iter().filter(|trial| is_lost(trial.cell) && host.is_host(trial.cell)).collect();
        for trial in &lost {
            store.write(&trial.without_kernel(self.run, evidence, log))?;
        }
        self.notice(&format!("{evidence}\n{} trials are therefore invalid", lost.len()));
        Ok(())
    }

    /// The run's trials in the store.
    fn trials(&self) -> Result<Vec<Trial>, store::StoreError> {
        let all = Store::existing(self.root)?.trials()?;
        Ok(all.into_iter().filter(|trial| trial.run.id == self.run.id).collect())
    }

    fn notice(&self, text: &str) {
        self.observer.on_event(&Event::Notice(&mask(text)));
    }
}

/// Reason why the trials of a kernel are lost.
fn evidence(last: &BootRequest, loader: Loader, running: &str, crash_log: Option<&CrashLog>) -> String {
    let event = if last.came_up {
        format!("the kernel {} crashed during its trials", last.boot)
    } else {
        format!("the kernel {} was booted by {} and did not come up", last.boot, loader.name())
    };
    let cause = match crash_log {
        Some(log) => format!("\"{}\" ({})", log.headline(), log.source),
        None => "pstore and the journal have no messages from it".to_owned(),
    };
    format!("{event}: {cause}; now running: {running}")
}

/// An error with the causes that its text does not contain.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Waits until the units of a boot have started, which would otherwise disturb the first trial.
fn wait_for_boot() {
    let waits = Command::new("systemctl").args(["is-system-running", "--wait"]).stdout(Stdio::null()).spawn();
    let Ok(mut waits) = waits else { return };
    let end = Instant::now() + BOOT_TIMEOUT;
    while matches!(waits.try_wait(), Ok(None)) {
        if Instant::now() > end {
            let _ = waits.kill();
            let _ = waits.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
