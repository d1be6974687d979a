//! `pgdyno store reindex`: rebuilds the index.

use clap::Args;
use plaintext::table::Format;
use report::bundles::{ReindexDocument, counted_bundles, problem_lines, problem_table};
use store::Store;

use crate::exit::Exit;
use crate::output::{FormatArg, note, print, print_json, print_table};
use crate::store_arg::StoreArg;

/// Rebuild the index from the bundles
///
/// Not needed for new trials: the index follows the bundles automatically. For an index that `pgdyno store check`
/// reports as wrong.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pgdyno store reindex --store /var/lib/pgdyno")]
pub(super) struct ReindexArgs {
    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl ReindexArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let reindexed = Store::existing(&self.store.root())?.reindex()?;
        match self.format.get() {
            Format::Json => print_json(&ReindexDocument::new(&reindexed))?,
            Format::Table => print(&format!("{} in the index\n", counted_bundles(reindexed.bundles)))?,
            format => print_table(&problem_table(&reindexed.rejected), format)?,
        }
        note(&problem_lines(&reindexed.rejected));
        Ok(Exit::Ok)
    }
}
