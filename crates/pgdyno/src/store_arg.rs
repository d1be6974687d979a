//! `--store`, `--run` and `--campaign`: the store and a run in it.

use std::path::{Path, PathBuf};

use analysis::select::RunSelection;
use clap::Args;
use clap_complete::engine::{ArgValueCompleter, PathCompleter};
use store::StoreError;

use crate::completion;
use crate::reading::Reading;

/// `--store`, for every command that reads or writes trials.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArg {
    /// Directory of the store [default: .pgdyno in the current directory; for `run` and `plan`, next to the campaign]
    #[arg(long, env = "PGDYNO_STORE", value_name = "DIR", hide_env_values = true, add = ArgValueCompleter::new(PathCompleter::dir()))]
    store: Option<PathBuf>,
}

impl StoreArg {
    /// The directory that was given, else `.pgdyno` in the current directory.
    pub(crate) fn root(&self) -> PathBuf {
        self.root_next_to(Path::new(""))
    }

    /// Reads the existing store in that directory.
    ///
    /// # Errors
    /// There is none, or none of its bundles can be read.
    pub(crate) fn read(&self) -> Result<Reading, StoreError> {
        Reading::open(&self.root())
    }

    /// The directory that was given, else `.pgdyno` in `directory`.
    pub(crate) fn root_next_to(&self, directory: &Path) -> PathBuf {
        self.store.clone().unwrap_or_else(|| directory.join(".pgdyno"))
    }
}

/// `--run` and `--campaign`, for every command that shows trials.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArg {
    /// Trials of this run, unless a selector names another: its id or the beginning of it [default: the latest run; for
    /// `power` without a selector, all runs of this host]
    #[arg(long, value_name = "ID", conflicts_with = "campaign", add = completion::runs())]
    run: Option<String>,

    /// As --run, the latest run of this campaign
    #[arg(long, value_name = "NAME", add = completion::campaigns())]
    campaign: Option<String>,
}

impl RunArg {
    /// The run that was named, if any.
    pub(crate) fn named(&self) -> Option<RunSelection> {
        let by_id = self.run.clone().map(RunSelection::Run);
        by_id.or_else(|| self.campaign.clone().map(RunSelection::Campaign))
    }

    /// The run that was named, else the latest.
    pub(crate) fn get(&self) -> RunSelection {
        self.named().unwrap_or_default()
    }
}
