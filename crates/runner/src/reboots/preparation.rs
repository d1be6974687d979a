//! Preparation: the boots of a run and the steps of each, before anything is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use machine::reboot::{Boot, Loader, Machine, Prepared, Step};
use model::plan::Plan;
use model::record::{Run, Status, Trial};

use super::boots::{boot_of, waiting};
use super::{RebootError, Reboots};
use crate::host_context::HostContext;
use crate::without_kernel::{OpenTrial, open_trials};

/// A machine that can boot the kernels of a run.
#[derive(Clone, Debug)]
pub struct Preparation {
    pub(super) prepared: Prepared,
    /// The boots, in the order of the campaign.
    pub boots: Vec<PlannedBoot>,
    /// Number of trials under the running kernel.
    trials_here: usize,
    /// Largest number of times that each kernel is booted.
    attempts: u32,
}

/// A boot that trials wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedBoot {
    /// The boot.
    pub boot: Boot,
    /// Number of its trials.
    pub trials: usize,
}

impl Reboots<'_> {
    /// Checks that the machine can boot the kernels that trials wait for; none if no trial waits for another kernel.
    /// `file` is the campaign's. Nothing is changed.
    ///
    /// # Errors
    /// A kernel is not installed, or the machine can't boot it once.
    pub fn prepare(&self, file: &Path, by: Option<Loader>) -> Result<Option<Preparation>, RebootError> {
        let machine = Machine::local();
        let trials = if self.root.is_dir() { self.trials()? } else { Vec::new() };
        let earlier = invalid_ids(&trials);
        let open = open_trials(self.plan, &trials, &earlier);
        let boots = boots(self.plan, &open, &machine)?;
        if boots.is_empty() {
            return Ok(None);
        }
        let campaign = self.journal_entry(file, earlier)?;
        let wanted: Vec<Boot> = boots.iter().map(|planned| planned.boot.clone()).collect();
        let prepared = machine
            .prepare(campaign, &wanted, by, self.program, &self.environment())
            .map_err(RebootError::Unsupported)?;
        let host = HostContext::detect();
        Ok(Some(Preparation {
            prepared,
            boots,
            trials_here: open.iter().filter(|trial| host.runs(trial.cell)).count(),
            attempts: 1 + self.plan.run.retries,
        }))
    }

    /// The campaign in the machine's journal.
    fn journal_entry(
        &self,
        file: &Path,
        earlier: BTreeSet<String>,
    ) -> Result<machine::reboot::Campaign, RebootError> {
        let absolute = |path: &Path| -> std::io::Result<PathBuf> {
            let path = std::path::absolute(path)?;
            Ok(path.canonicalize().unwrap_or(path))
        };
        let Run { id, campaign, campaign_toml, seed, pgdyno_version, tags, notes } = self.run.clone();
        Ok(machine::reboot::Campaign {
            store: absolute(self.root)?,
            run: id,
            name: campaign,
            file: absolute(file)?,
            text: campaign_toml,
            seed,
            tags,
            notes,
            pgdyno_version,
            strict: self.strict,
            allow_concurrent: self.allow_concurrent,
            earlier,
        })
    }

    /// The environment that pgdyno needs after a boot.
    fn environment(&self) -> BTreeMap<String, String> {
        let is_kept = |name: &str| ["PATH", "HOME"].contains(&name) || name.starts_with("PGDYNO_");
        let mut kept: BTreeMap<String, String> = std::env::vars().filter(|(name, _)| is_kept(name)).collect();
        // The default location depends on the home directory.
        kept.insert("PGDYNO_CACHE".to_owned(), self.cache.directory().display().to_string());
        kept
    }
}

impl Preparation {
    /// Name of the loader that boots the kernels.
    pub fn loader(&self) -> &'static str {
        self.prepared.journal.loader.name()
    }

    /// Every step, for a dry run.
    ///
    /// # Errors
    /// A kernel can't be booted.
    pub fn steps(&self) -> Result<String, RebootError> {
        let machine = Machine::local();
        let Prepared { journal, steps } = &self.prepared;
        let list = |steps: &[Step]| steps.iter().map(|step| format!("  {step}\n")).collect::<String>();
        let running = machine.running()?.release;
        let mut text = format!("{running}, which runs: {} trials\n", self.trials_here);
        text += &format!("\nbefore the first boot:\n{}", list(steps));
        for PlannedBoot { boot, trials } in &self.boots {
            let mut journal = journal.clone();
            journal.request(boot);
            let Self { attempts, .. } = self;
            text += &format!("\n{boot}, by {}, {attempts} times at most: {trials} trials\n", self.loader());
            text += &list(&machine.boot(&journal, boot)?);
        }
        text += &format!("\nat the end:\n{}", list(&machine.restore(journal)?));
        text += &format!("  {}, if another kernel is running\n", machine.reboot());
        Ok(text)
    }
}

fn invalid_ids(trials: &[Trial]) -> BTreeSet<String> {
    let invalid = trials.iter().filter(|trial| trial.validity.status == Status::Invalid);
    invalid.map(|trial| trial.id.clone()).collect()
}

/// The boots that open trials wait for, in the order of the campaign.
fn boots(plan: &Plan, open: &[OpenTrial], machine: &Machine) -> Result<Vec<PlannedBoot>, RebootError> {
    let mut boots: Vec<PlannedBoot> = Vec::new();
    for cell in waiting(plan, open) {
        let boot = boot_of(cell, machine).map_err(|error| match error {
            RebootError::Step(error) => RebootError::Unsupported(error),
            error => error,
        })?;
        let trials = open.iter().filter(|trial| trial.cell == cell).count();
        match boots.iter_mut().find(|known| known.boot == boot) {
            Some(known) => known.trials += trials,
            None => boots.push(PlannedBoot { boot, trials }),
        }
    }
    Ok(boots)
}
