//! `pgdyno store`: the bundles in the store, and whether they are intact.

use clap::{Args, Subcommand};
use store::Store;

use crate::exit::Exit;
use crate::output::{FormatArg, note, print, print_json};
use crate::store_arg::StoreArg;
use plaintext::table::Format;
use report::bundles::{
    CheckDocument, ListDocument, ReindexDocument, ShowDocument, counted_bundles, list_table, problem_lines,
    problem_table, record_table, record_text,
};

/// List, show and check stored trials
///
/// Each trial leaves a bundle: a directory `trials/<id>` in the store, with everything that was measured. Bundles are
/// never changed. The file `index.sqlite` next to them is a cache that is rebuilt when needed: deleting it loses nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno store list\n  \
                        pgdyno store list --format json | jq -r '.trials[] | select(.validity == \"valid\") | .id'\n  \
                        pgdyno store show 01JD7P\n  \
                        pgdyno store check && tar -czf trials.tar.gz .pgdyno/trials")]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(ListArgs),
    Show(ShowArgs),
    Check(CheckArgs),
    Reindex(ReindexArgs),
}

/// List the trials, oldest first
///
/// One line a trial: its id, start, campaign, cell (server, settings, workload, scale, clients, protocol, transport),
/// throughput in transactions per second, and validity. Unreadable bundles are listed on standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno store list\n  \
                        pgdyno store list --store /var/lib/pgdyno --format csv > trials.csv")]
struct ListArgs {
    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

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
struct ShowArgs {
    /// The trial's id, or a unique beginning of it
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

/// Check every bundle and list problems
///
/// Checks the SHA-256 of every file and parses it, compares the transactions in the histograms with the series and the
/// summary, and the index with the bundles, and lists files that do not belong in the store. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno store check\n  \
                        pgdyno store check --format json | jq '.problems'\n\n\
                        Exit codes: 0 no problems, 1 there are problems.")]
struct CheckArgs {
    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

/// Rebuild the index from the bundles
///
/// Not needed for new trials: the index follows the bundles automatically. For an index that `pgdyno store check`
/// reports as wrong.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pgdyno store reindex --store /var/lib/pgdyno")]
struct ReindexArgs {
    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl StoreArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::List(args) => args.run(),
            Command::Show(args) => args.run(),
            Command::Check(args) => args.run(),
            Command::Reindex(args) => args.run(),
        }
    }
}

impl ListArgs {
    fn run(self) -> anyhow::Result<Exit> {
        let store = Store::existing(&self.store.root())?;
        let listing = store.list()?;
        match self.format.get() {
            Format::Json => print_json(&ListDocument::new(&listing))?,
            format => print(&list_table(&listing.trials).render(format))?,
        }
        note(&problem_lines(&listing.rejected));
        Ok(Exit::Ok)
    }
}

impl ShowArgs {
    fn run(self) -> anyhow::Result<Exit> {
        let record = Store::existing(&self.store.root())?.load(&self.id)?;
        match self.format.get() {
            Format::Json => print_json(&ShowDocument::new(&record))?,
            Format::Table => print(&record_text(&record))?,
            format => print(&record_table(&record).render(format))?,
        }
        Ok(Exit::Ok)
    }
}

impl CheckArgs {
    fn run(self) -> anyhow::Result<Exit> {
        let store = Store::existing(&self.store.root())?;
        let check = store.check()?;
        let found = check.problems.len();
        match self.format.get() {
            Format::Json => print_json(&CheckDocument::new(&check))?,
            Format::Table if found == 0 => {
                print(&format!("{}: all is well\n", counted_bundles(check.bundles)))?
            }
            Format::Table => print(&problem_lines(&check.problems))?,
            format => print(&problem_table(&check.problems).render(format))?,
        }
        match found {
            0 => Ok(Exit::Ok),
            1 => anyhow::bail!("there is 1 problem in {}", store.root().display()),
            _ => anyhow::bail!("there are {found} problems in {}", store.root().display()),
        }
    }
}

impl ReindexArgs {
    fn run(self) -> anyhow::Result<Exit> {
        let reindexed = Store::existing(&self.store.root())?.reindex()?;
        match self.format.get() {
            Format::Json => print_json(&ReindexDocument::new(&reindexed))?,
            Format::Table => print(&format!("{} in the index\n", counted_bundles(reindexed.bundles)))?,
            format => print(&problem_table(&reindexed.rejected).render(format))?,
        }
        note(&problem_lines(&reindexed.rejected));
        Ok(Exit::Ok)
    }
}
