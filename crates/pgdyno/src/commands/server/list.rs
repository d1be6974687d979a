//! `pgdyno server list`: versions, templates and servers.

use clap::Args;
use host::Cache;
use plaintext::table::Format;
use report::servers::List;

use crate::exit::Exit;
use crate::output::{FormatArg, print, print_json, print_table, terminal};

/// List installed and built versions, templates and servers
///
/// A template is a data directory with pgbench's tables, filled once, and copied for each trial.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server list\n  \
                        pgdyno server list --format json | jq -r '.servers[] | select(.pid) | .uri'")]
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
