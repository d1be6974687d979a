//! `pgdyno kernel list`: kernels of the cache.

use clap::Args;
use host::Cache;
use plaintext::table::Format;
use report::kernels::List;

use crate::exit::Exit;
use crate::output::{FormatArg, print, print_json, print_table, terminal};

/// List fetched and built kernels: labels, release, package or commit, size
///
/// A label is the name in a campaign or in `pgdyno kernel fetch`; it stands for the same kernel until it is fetched again.
/// Sizes are of the files, in units of 1000.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel list\n  \
                        pgdyno kernel list --format json | jq -r '.kernels[] | .release'")]
pub(super) struct ListArgs {
    #[command(flatten)]
    format: FormatArg,
}

impl ListArgs {
    pub(super) fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let document = List::read(cache)?;
        match (self.format.get(), terminal()) {
            (Format::Json, _) => print_json(&document)?,
            (Format::Table, Some(terminal)) => print(&document.fitted(terminal.width))?,
            (format, _) => print_table(&document.table(), format)?,
        }
        Ok(Exit::Ok)
    }
}
