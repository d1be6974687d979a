//! `pgdyno server stop`: stops a server that stays up.

use clap::Args;
use host::Cache;
use server::{StopMode, instance};

use crate::completion;
use crate::exit::Exit;
use crate::output::print;

/// Stop a server that `pgdyno server start` started
///
/// Disconnects its clients and writes everything to disk; its data are kept for the next start.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno server stop 18\n  pgdyno server stop 18 --immediate")]
pub(super) struct StopArgs {
    /// The version as it was started
    #[arg(id = "server", value_name = "VERSION", add = completion::servers())]
    version: String,

    /// Stop without a checkpoint; the next start has to recover
    #[arg(long)]
    immediate: bool,
}

impl StopArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let mode = if self.immediate { StopMode::Immediate } else { StopMode::Fast };
        let server = instance::stop(cache, &self.version, mode)?;
        let directory = server.data_directory();
        print(&format!(
            "PostgreSQL {} has stopped; its data are kept in {}\n",
            server.version(),
            directory.display()
        ))?;
        Ok(Exit::Ok)
    }
}
