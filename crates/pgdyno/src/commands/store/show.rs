//! `pgdyno store show`: a trial's bundle.

use clap::Args;
use plaintext::table::Format;
use report::bundles::{ShowDocument, record_table, record_text};
use store::Store;

use crate::completion;
use crate::exit::Exit;
use crate::output::{FormatArg, print, print_json};
use crate::store_arg::StoreArg;

/// Print a trial's bundle: its cell, results and validity
///
/// Prints the evidence of each validity gate, throughput, latency, the transaction counts of driver and server, the profile's
/// parameters, the machine, and settings other than the defaults. `--format json` prints the whole record, including the
/// histograms of every second and the server's log. `pgdyno show` has charts of the results.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno store show 01JD7P\n  \
                        pgdyno store show 01JD7P --format json | jq '.intervals[] | {start_us, busy}'\n  \
                        pgdyno store show 01JD7P --format json | jq -r '.logs[] | select(.name == \"server\") | .text'")]
pub(super) struct ShowArgs {
    /// The trial's id, or a unique beginning of it
    #[arg(value_name = "ID", add = completion::trials())]
    id: String,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl ShowArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let record = Store::existing(&self.store.root())?.load(&self.id)?;
        match self.format.get() {
            Format::Json => print_json(&ShowDocument::new(&record))?,
            Format::Table => print(&record_text(&record))?,
            format => print(&record_table(&record).render(format))?,
        }
        Ok(Exit::Ok)
    }
}
