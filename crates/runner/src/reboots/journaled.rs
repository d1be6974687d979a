//! The run in the machine's journal, which continues after a boot.

use std::path::{Path, PathBuf};

use machine::reboot::{Journal, Machine, execute};
use model::record::{Run, Trial};

use crate::campaign_file::{CampaignFile, CampaignFileError, workloads_of};

/// A run that continues after boots of this machine.
#[derive(Clone, Debug)]
pub struct JournaledRun {
    /// The machine's journal.
    pub journal: Journal,
    /// The run.
    pub run: Run,
}

/// A machine restored to its state before the campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Name of the campaign.
    pub campaign: String,
    /// Its store.
    pub store: PathBuf,
    /// Release of the machine's own kernel, which the next boot starts; none if it is running.
    pub next_kernel: Option<String>,
}

impl JournaledRun {
    /// The run's campaign; `trials` are those in the store.
    ///
    /// # Errors
    /// A file of the campaign can't be read any more.
    pub fn campaign_file(&self, trials: &[Trial]) -> Result<CampaignFile, CampaignFileError> {
        let mut known = workloads_of(trials.iter().filter(|trial| trial.run.id == self.run.id));
        // Those that are stored without their secrets are read from their files again.
        known.0.retain(|_, workload| workload.custom().is_none_or(|custom| custom.masked_parts().is_empty()));
        let text = self.run.campaign_toml.clone();
        CampaignFile::parse_with(
            &self.journal.campaign.file,
            text,
            self.run.basis(),
            &known,
            &host::NoProgress,
        )
    }
}

/// The run in the machine's journal, if it is of this store, and `run` is its id or the beginning of it.
///
/// # Errors
/// The journal can't be read.
pub fn journaled_run(store: &Path, run: Option<&str>) -> Result<Option<JournaledRun>, machine::Error> {
    let Some(journal) = Machine::local().journal()? else { return Ok(None) };
    let campaign = &journal.campaign;
    let is_selected = store.canonicalize().is_ok_and(|store| store == campaign.store)
        && run.is_none_or(|id| campaign.run.starts_with(&id.to_uppercase()));
    let run = Run {
        id: campaign.run.clone(),
        campaign: campaign.name.clone(),
        campaign_toml: campaign.text.clone(),
        seed: campaign.seed,
        processors: campaign.processors,
        pgdyno_version: campaign.pgdyno_version.clone(),
        tags: campaign.tags.clone(),
        notes: campaign.notes.clone(),
    };
    Ok(is_selected.then_some(JournaledRun { journal, run }))
}

/// Restores the machine, regardless of the campaign that boots its kernels; none if no campaign does.
///
/// # Errors
/// The journal can't be read, or a step fails.
pub fn restore() -> Result<Option<Restored>, machine::Error> {
    let machine = Machine::local();
    let Some(journal) = machine.journal()? else { return Ok(None) };
    execute(&machine.restore(&journal)?)?;
    let next_kernel = (machine.running()? != journal.original).then(|| journal.original.release.clone());
    Ok(Some(Restored { campaign: journal.campaign.name, store: journal.campaign.store, next_kernel }))
}
