//! `--store`: where the trials are; and which run of them is meant.

use std::path::{Path, PathBuf};

use clap::Args;
use report::Selection;

/// `--store`, for every command that reads or writes trials.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArg {
    /// Directory of the store [default: .pgdyno in the current directory; for `run` and `plan`, beside the campaign]
    #[arg(long, env = "PGDYNO_STORE", value_name = "DIR", hide_env_values = true)]
    store: Option<PathBuf>,
}

impl StoreArg {
    /// The store that was named, else `.pgdyno` in the current directory.
    pub(crate) fn root(&self) -> PathBuf {
        self.root_beside(Path::new(""))
    }

    /// The store that was named, else `.pgdyno` in `directory`.
    pub(crate) fn root_beside(&self, directory: &Path) -> PathBuf {
        self.store.clone().unwrap_or_else(|| directory.join(".pgdyno"))
    }
}

/// The run that `--run` or `--campaign` names; none where neither is given.
pub(crate) fn run_named(run: Option<&str>, campaign: Option<&str>) -> Option<Selection> {
    let by_id = run.map(|id| Selection::Run(id.to_owned()));
    by_id.or_else(|| Some(Selection::Campaign(campaign?.to_owned())))
}
