//! `pgdyno store`: what is in the store, and whether it is whole.

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

/// List, show and check the trials that were kept
///
/// Each trial leaves a bundle: a directory `trials/<id>` in the store, with everything that was measured. Bundles are
/// never changed. The file `index.sqlite` beside them is a cache that makes itself anew: deleting it loses nothing.
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
/// One line a trial: its id, when it began, the campaign, the cell (server, settings, workload, scale, clients,
/// protocol, transport), throughput in transactions per second, and whether it may be used. Bundles that can't be
/// read are named on standard error.
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

/// Print what is in a trial's bundle: what was run, what came out, and whether it may be used
///
/// Gives the evidence of each validity gate, throughput, latency, the transactions as driver and server counted them,
/// how it was profiled, the machine, and the settings that were not at their default. `--format json` gives the whole
/// record, the histograms of every second and the server's log with it. What a trial comes to, with charts, is
/// `pgdyno show`'s.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno store show 01JD7P\n  \
                        pgdyno store show 01JD7P --format json | jq '.intervals[] | {start_us, busy}'\n  \
                        pgdyno store show 01JD7P --format json | jq -r '.logs[] | select(.name == \"server\") | .text'")]
struct ShowArgs {
    /// The trial's id, or as much of its beginning as no other trial has
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

/// Read every bundle whole and say what is wrong
///
/// Every file is compared with its SHA-256 and parsed, the transactions in the histograms are counted and compared with
/// the series and the summary, the index is compared with the bundles, and what does not belong in the store is named.
/// Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno store check\n  \
                        pgdyno store check --format json | jq '.problems'\n\n\
                        Exit codes: 0 all is well, 1 there are problems.")]
struct CheckArgs {
    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

/// Make the index anew from the bundles
///
/// Never needed to see new trials: the index follows the bundles by itself. For an index that `pgdyno store check`
/// calls wrong.
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
