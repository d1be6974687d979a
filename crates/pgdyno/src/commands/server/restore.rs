//! `pgdyno server restore`: restores settings of external servers.

use clap::Args;
use host::Cache;

use crate::exit::Exit;
use crate::output::{note, print};
use crate::progress::PreparationProgress;

/// Restore settings of servers that pgdyno does not own
///
/// A campaign that may change the settings of an external server restores them at its end. If it is killed before, the
/// settings are in a journal in the cache; the next run restores them, and so does this command. Settings that somebody
/// else has changed since are not touched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server restore\n  \
                        PGPASSWORD=... pgdyno server restore\n\n\
                        Exit codes: 0 nothing is left to restore, 1 a server could not be reached, or does not \
                        allow it; its journal is kept.")]
pub(super) struct RestoreArgs {}

impl RestoreArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let bar = PreparationProgress::new();
        let restored = server::restore_settings(cache, &bar)?;
        bar.clear();
        if restored.is_empty() {
            print("no settings to restore\n")?;
        }
        let mut exit = Exit::Ok;
        for server in &restored {
            match server.outcome {
                Ok(_) => print(&format!("{}\n", server.notice()))?,
                Err(_) => {
                    note(&format!("error: {}\n", server.notice()));
                    exit = Exit::Error;
                }
            }
        }
        Ok(exit)
    }
}
