//! `pgdyno show`: results of a trial or of several cells, for a terminal.

use analysis::select::Selector;
use clap::Args;
use plaintext::table::Format;
use report::show::{show, show_phase};

use crate::completion;
use crate::exit::Exit;
use crate::output::{FormatArg, print, terminal};
use crate::store_arg::{RunArg, StoreArg};

/// Show the results of a trial or of several cells: the report's page for a terminal
///
/// For one trial: validity, throughput over the window with stalls, checkpoints and vacuums below, latency, where the time
/// goes, wait events of the clients' sessions, the most informative metrics, and events. For several trials: the
/// answer (what changed by how much, with what confidence, why and at what risk, or what would decide it), and a line for each cell with
/// its mean, range, change and verdict.
///
/// On a terminal, charts have its width. If several seconds share a column of a chart, their smallest and largest values are
/// shown, or the more unusual one: no spike is lost. Elsewhere, figures replace the charts. `pgdyno store show` prints a
/// trial's whole bundle: settings, machine, accounting and more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno show                                the cells of the latest run
  pgdyno show 01KAK3W8                       a trial, by the beginning of its id
  pgdyno show 01KAK3W8 --phase l.i0          one phase of a trial whose workload has several
  pgdyno show clients=8,server=18            a cell of the latest run, with its trials
  pgdyno show campaign:upgrade,workload=tpcb-like
  pgdyno show 01KAK3W8 --format json | jq -r '.trial.waits[] | [.what, .share] | @tsv'
  NO_COLOR=1 pgdyno show | less              as text in figures")]
pub(crate) struct ShowArgs {
    /// A trial's id, or the beginning of it; or trials as FACTOR=LEVEL, run:ID, campaign:NAME (its latest run), tag:NAME
    /// and latest, separated by commas [default: all trials of the latest run]
    #[arg(value_name = "SELECTOR", add = completion::selectors())]
    what: Option<Selector>,

    /// Show this phase of one trial, as a trial of its own
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,

    #[command(flatten)]
    run: RunArg,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    store: StoreArg,
}

impl ShowArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let reading = self.store.read()?;
        let what = self.what.unwrap_or_default();
        let shown = match &self.phase {
            Some(phase) => show_phase(&reading, &what, &self.run.get(), phase)?,
            None => show(&reading, &what, &self.run.get())?,
        };
        match self.format.get() {
            Format::Json => reading.print_json(&shown.document())?,
            format => print(&shown.text(format, terminal()))?,
        }
        Ok(Exit::Ok)
    }
}
