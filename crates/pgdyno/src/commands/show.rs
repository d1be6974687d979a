//! `pgdyno show`: what came of a trial, or of several cells, for a terminal.

use analysis::select::Selector;
use clap::Args;
use plaintext::table::Format;
use report::show::show;
use store::Store;

use crate::exit::Exit;
use crate::output::{FormatArg, print, print_json, terminal};
use crate::store_arg::{RunArg, StoreArg};

/// Show what came of a trial, or of several cells: the report's page for a terminal
///
/// Of one trial: whether it may be used, throughput over the window with stalls, checkpoints and vacuums below, latency,
/// where the time goes, what the clients' sessions waited for, the metrics that tell most, and events. Of several trials:
/// what they come to in a sentence, and a line for each cell with its median, range, change and verdict.
///
/// On a terminal there are charts, as wide as it is. Where several seconds share a column of a chart, both their least and
/// their greatest figure are shown, or the more unusual one: no spike is dropped. Elsewhere the same is told in figures.
/// `pgdyno store show` prints what is in a trial's bundle: settings, machine, accounting and all.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno show                                the cells of the latest run
  pgdyno show 01KAK3W8                       a trial, by the beginning of its id
  pgdyno show clients=8,server=18            a cell of the latest run, with its trials
  pgdyno show campaign:upgrade,workload=tpcb-like
  pgdyno show 01KAK3W8 --format json | jq -r '.trial.waits[] | [.what, .share] | @tsv'
  NO_COLOR=1 pgdyno show | less              as text in figures")]
pub(crate) struct ShowArgs {
    /// A trial's id, or the beginning of it; or trials as FACTOR=LEVEL, run:ID, campaign:NAME (its latest run), tag:NAME
    /// and latest, with commas between them [default: all trials of the latest run]
    #[arg(value_name = "SELECTOR")]
    what: Option<Selector>,

    #[command(flatten)]
    run: RunArg,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    store: StoreArg,
}

impl ShowArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let store = Store::existing(&self.store.root())?;
        let shown = show(&store, &self.what.unwrap_or_default(), &self.run.get())?;
        match self.format.get() {
            Format::Json => print_json(&shown.document())?,
            format => print(&shown.text(format, terminal()))?,
        }
        Ok(Exit::Ok)
    }
}
