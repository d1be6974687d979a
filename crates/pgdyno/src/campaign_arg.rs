//! The campaign file on a command line, with overrides.

use std::path::{Path, PathBuf};

use clap::Args;
use model::secret::{MASK, campaign_secrets};
use model::spec::deprecated_keys;
use model::workload::Workloads;
use runner::campaign_file::{self, CampaignFile, CampaignFileError, overrides};

use crate::completion;
use crate::output::note;
use crate::progress::PreparationProgress;

/// A campaign file and overrides of it.
#[derive(Clone, Debug, Args)]
pub(crate) struct CampaignArg {
    /// The campaign: a TOML file
    #[arg(value_name = "FILE", add = completion::campaign_files())]
    pub(crate) path: PathBuf,

    /// Override the levels of a factor (separated by commas), a key of [run], or a dotted key [example: --set
    /// scale=100,1000 --set duration=60s]
    #[arg(long, value_name = "NAME=VALUE", add = completion::overrides())]
    set: Vec<String>,
}

impl CampaignArg {
    /// Reads and plans the campaign.
    ///
    /// # Errors
    /// The file can't be read, or is not a campaign.
    pub(crate) fn read(&self) -> Result<CampaignFile, CampaignFileError> {
        self.parse(text(&self.path, &self.set)?)
    }

    /// As [`CampaignArg::read`], with kernels that run on the machine itself unless the campaign names an acceleration.
    ///
    /// # Errors
    /// As [`CampaignArg::read`].
    pub(crate) fn read_for_reboots(&self) -> Result<CampaignFile, CampaignFileError> {
        let text = overrides::without_virtual_machines(&text(&self.path, &self.set)?);
        self.parse(text)
    }

    /// Plans the campaign; secrets in scripts are noted on standard error.
    fn parse(&self, text: String) -> Result<CampaignFile, CampaignFileError> {
        let progress = PreparationProgress::new();
        let file = CampaignFile::parse_with(&self.path, text, None, &Workloads::default(), &progress);
        progress.clear();
        let file = file?;
        file.check_datasets(&progress)?;
        for workload in file.plan.custom_workloads() {
            for place in workload.secret_places() {
                note_secret(&format!("{}: workload {}: {place}", self.path.display(), workload.name));
            }
        }
        Ok(file)
    }

    /// The directory of the file.
    pub(crate) fn directory(&self) -> &Path {
        campaign_file::directory(&self.path)
    }
}

/// A campaign's text with overrides; outdated keys and secrets are noted on standard error.
///
/// # Errors
/// The file can't be read, or an override is malformed.
pub(crate) fn text(path: &Path, overrides: &[String]) -> Result<String, CampaignFileError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| CampaignFileError::Read { path: path.to_owned(), source })?;
    let text = overrides::apply(&text, overrides)?;
    for outdated in deprecated_keys(&text) {
        note(&format!("{}: {outdated}\n", path.display()));
    }
    for place in campaign_secrets(&text) {
        note_secret(&format!("{}:{}: {place}", path.display(), place.line));
    }
    Ok(text)
}

fn note_secret(place: &str) {
    note(&format!("{place} contains a secret: in results it is {MASK}\n"));
}
