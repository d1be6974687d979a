//! `pgdyno kernel fetch`: fetches and builds kernels.

use std::path::Path;

use anyhow::Context;
use clap::Args;
use host::Cache;
use machine::Fetched;

use crate::exit::Exit;
use crate::output::print;
use crate::progress::PreparationProgress;

/// Fetch the newest kernels, and build those of commits
///
/// Asks apt for the newest kernel of each label and assigns it to the label; older kernels stay until they are removed.
/// Without apt, fetched kernels are used. Paths are only checked: such kernels are used in place. The kernel of a commit
/// (./linux@v6.6) is built, unless it was built before. An interrupted fetch leaves nothing behind, and several may run at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel fetch 6.1 6.12\n  \
                        pgdyno kernel fetch linux-image-cloud-amd64\n  \
                        apt-get update && pgdyno kernel fetch 6.12\n  \
                        pgdyno kernel fetch ./linux@v6.6\n\n\
                        Exit codes: 0 all are fetched, 1 one could not be fetched or built, 2 there is no such kernel.")]
pub(super) struct FetchArgs {
    /// Version, Debian package, glob of packages, path, or commit of a git repository
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,
}

impl FetchArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let directory = std::env::current_dir().context("could not find the working directory")?;
        let bar = PreparationProgress::new();
        for label in &self.labels {
            let fetched = machine::fetch_kernel(cache, label, &directory, &bar)?;
            bar.clear();
            print(&outcome(cache, label, &fetched))?;
        }
        Ok(Exit::Ok)
    }
}

/// Reports the kernel that a label stands for, and the previous one.
fn outcome(cache: &Cache, label: &str, fetched: &Fetched) -> String {
    let Fetched { kernel, before } = fetched;
    if !kernel.image.starts_with(cache.kernels()) {
        return format!("{label}: Linux {}, used in place: {}\n", kernel.release, kernel.image.display());
    }
    let before = before.as_ref().map(|before| format!(", previously {before}")).unwrap_or_default();
    let directory = kernel.image.parent().unwrap_or_else(|| Path::new("/")).display();
    format!("{label}: Linux {} ({}){before}; in {directory}\n", kernel.release, kernel.origin)
}
