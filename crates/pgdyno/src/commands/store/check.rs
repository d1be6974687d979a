//! `pgdyno store check`: whether all bundles are intact.

use clap::Args;
use plaintext::table::Format;
use report::bundles::{CheckDocument, counted_bundles, problem_lines, problem_table};
use store::Store;

use crate::exit::Exit;
use crate::output::{FormatArg, fitted, print, print_json, print_table};
use crate::store_arg::StoreArg;

/// Check every bundle and list problems
///
/// Checks the SHA-256 of every file and parses it, compares the transactions in the histograms with the series and the
/// summary, and the index with the bundles, and lists files that do not belong in the store. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno store check\n  \
                        pgdyno store check --format json | jq '.problems'\n\n\
                        Exit codes: 0 no problems, 1 there are problems.")]
pub(super) struct CheckArgs {
    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl CheckArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let store = Store::existing(&self.store.root())?;
        let check = store.check()?;
        let found = check.problems.len();
        match self.format.get() {
            Format::Json => print_json(&CheckDocument::new(&check))?,
            Format::Table if found == 0 => {
                print(&format!("{}: no problems\n", counted_bundles(check.bundles)))?
            }
            Format::Table => print(&fitted(&problem_lines(&check.problems)))?,
            format => print_table(&problem_table(&check.problems), format)?,
        }
        match found {
            0 => Ok(Exit::Ok),
            1 => anyhow::bail!("found 1 problem in {}", store.root().display()),
            _ => anyhow::bail!("found {found} problems in {}", store.root().display()),
        }
    }
}
