//! `pgdyno kernel remove`: removes kernels of the cache.

use anyhow::Context;
use clap::Args;
use host::Cache;
use report::kernels::size;

use crate::exit::Exit;
use crate::output::print;

/// Remove fetched and built kernels
///
/// By a label or a package's name; all labels of a removed kernel are removed, too. Of built kernels, REPOSITORY@COMMIT is
/// that of a commit, and REPOSITORY all of a repository, with the build directory. Kernels in use are not removed. Trials are in
/// the store and are not touched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel remove 6.1\n  \
                        pgdyno kernel remove linux-image-6.12.9-cloud-amd64\n  \
                        pgdyno kernel remove ./linux\n\n\
                        Exit codes: 0 removed, 1 one is in use or could not be removed, 2 there is no such kernel.")]
pub(super) struct RemoveArgs {
    /// Labels, packages, commits or repositories
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,
}

impl RemoveArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let directory = std::env::current_dir().context("could not find the working directory")?;
        for label in &self.labels {
            for removed in machine::remove_kernel(cache, label, &directory)? {
                let labels = match &removed.labels[..] {
                    [] => String::new(),
                    labels => format!(", labelled {}", labels.join(", ")),
                };
                print(&format!("removed {}{labels} ({})\n", removed.kernel.origin, size(removed.bytes)))?;
            }
        }
        Ok(Exit::Ok)
    }
}
