//! `pgdyno store list`: the trials in the store.

use clap::Args;
use plaintext::table::Format;
use report::bundles::{ListDocument, list_table, problem_lines};
use store::Store;

use crate::exit::Exit;
use crate::output::{FormatArg, note, print_json, print_table};
use crate::store_arg::StoreArg;

/// List the trials, oldest first
///
/// One line a trial: its id, start, campaign, cell (server, settings, workload, scale, clients, protocol, transport),
/// throughput in transactions per second, and validity. Unreadable bundles are listed on standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno store list\n  \
                        pgdyno store list --store /var/lib/pgdyno --format csv > trials.csv")]
pub(super) struct ListArgs {
    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl ListArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let store = Store::existing(&self.store.root())?;
        let listing = store.list()?;
        match self.format.get() {
            Format::Json => print_json(&ListDocument::new(&listing))?,
            format => print_table(&list_table(&listing.trials), format)?,
        }
        note(&problem_lines(&listing.rejected));
        Ok(Exit::Ok)
    }
}
