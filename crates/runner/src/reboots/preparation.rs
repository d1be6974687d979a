//! Preparation: the boots of a run and the steps of each, before anything is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use machine::reboot::{Boot, Loader, Machine, Prepared, Step};
use model::plan::Plan;
use model::record::{Run, Status, Trial};
use model::secret::secrets;

use super::boots::{boot_of, waiting};
use super::{RebootError, Reboots};
use crate::host_context::HostContext;
use crate::without_kernel::{OpenTrial, open_trials};

/// Environment variables that pgdyno needs after a boot, besides the directory of the cache.
const KEPT_VARIABLES: [&str; 7] = [
    "HOME",
    "PATH",
    "PGDYNO_BUILDS_MAX",
    "PGDYNO_DATASETS_MAX",
    "PGDYNO_MIRROR",
    "PGDYNO_QUEUE",
    "PGDYNO_SERVER_USER",
];

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
        let environment = environment(|name| std::env::var(name).ok(), self.cache.directory())?;
        let prepared = machine
            .prepare(campaign, &wanted, by, self.program, &environment)
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
        let Run { id, campaign, campaign_toml, seed, processors, pgdyno_version, tags, notes } =
            self.run.clone();
        Ok(machine::reboot::Campaign {
            store: absolute(self.root)?,
            run: id,
            name: campaign,
            file: absolute(file)?,
            text: campaign_toml,
            seed,
            processors,
            tags,
            notes,
            pgdyno_version,
            strict: self.strict,
            allow_concurrent: self.allow_concurrent,
            insecure_mirror: server::insecure_mirror_is_allowed(),
            earlier,
        })
    }
}

/// The environment that pgdyno needs after a boot, from the present one: variables of a fixed list, since all users can read
/// the unit, in which they are.
fn environment(
    variable: impl Fn(&str) -> Option<String>,
    cache: &Path,
) -> Result<BTreeMap<String, String>, RebootError> {
    let mut kept = BTreeMap::new();
    for name in KEPT_VARIABLES {
        let Some(value) = variable(name) else { continue };
        if !secrets(&value).is_empty() {
            return Err(RebootError::SecretVariable { name });
        }
        kept.insert(name.to_owned(), value);
    }
    // The default location depends on the home directory.
    kept.insert("PGDYNO_CACHE".to_owned(), cache.display().to_string());
    Ok(kept)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_and_no_secret_is_kept_for_the_next_boot() {
        let given = |mirror: &'static str| {
            move |name: &str| match name {
                "PGDYNO_MIRROR" => Some(mirror.to_owned()),
                "PGDYNO_TOKEN" | "PGDYNO_STORE" | "PGPASSWORD" | "HOME" => Some("x".to_owned()),
                _ => None,
            }
        };
        let kept = environment(given("https://mirror/maven2"), Path::new("/cache")).unwrap();
        let kept: Vec<(&str, &str)> =
            kept.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            kept,
            [("HOME", "x"), ("PGDYNO_CACHE", "/cache"), ("PGDYNO_MIRROR", "https://mirror/maven2")]
        );
        let error = environment(given("https://me:hunter2@mirror/"), Path::new("/cache")).unwrap_err();
        assert!(
            error.to_string().contains("PGDYNO_MIRROR") && !error.to_string().contains("hunter2"),
            "{error}"
        );
        assert!(error.is_usage());
    }
}
