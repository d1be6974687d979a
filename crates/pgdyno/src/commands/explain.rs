//! `pgdyno explain`: where the time of transactions goes.

use std::collections::BTreeMap;

use analysis::explain::explain_cell;
use analysis::phase::phase_of;
use analysis::select::{RunSelection, Selector, trials_of_one_cell};
use clap::Args;
use plaintext::table::Format;
use report::explain::{Document, difference_text, text};
use serde::Serialize;

use crate::completion;
use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, print, terminal};
use crate::reading::Reading;
use crate::store_arg::{RunArg, StoreArg};

/// Show where the time of transactions goes, and what limits throughput
///
/// Divides the mean latency of a trial's transactions into components: driver, network and wake-up, the server's sessions on
/// CPUs and waiting for them, locks, I/O, WAL flush, and an unexplained rest. The components add up to the measured latency.
/// Causes found from them, the server's log and the machine's metrics are reported with their evidence, what to try next,
/// and a confidence.
///
/// For a cell, the components of its trials are averaged, and the causes of most of them reported. For two, the difference
/// is divided into components.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno explain                                    the latest trial
  pgdyno explain 01KAK3W8                           a trial, by the beginning of its id
  pgdyno explain 01KAK3W8 --phase l.i1              a phase of a trial whose workload has several
  pgdyno explain clients=8,server=18                a cell of the latest run: all its usable trials
  pgdyno explain clients=8,server=13 clients=8,server=18
                                                    where the difference in time comes from
  pgdyno explain --timeline --format csv            the latest trial, second by second
  pgdyno explain --format json | jq -r '.explained[0].causes[] | [.name, .share] | @tsv'")]
pub(crate) struct ExplainArgs {
    /// A trial's id, or the beginning of it; or a cell, as FACTOR=LEVEL,…, of another run with run:ID or campaign:NAME
    /// [default: the latest trial]
    #[arg(value_name = "TRIAL|CELL", num_args = 0..=2, add = completion::selectors())]
    selectors: Vec<Selector>,

    /// Print a row for each second of one trial instead: transactions, CPU, checkpoints, buffers by writer, WAL, disks and
    /// events
    #[arg(long)]
    timeline: bool,

    /// Explain this phase of trials whose workload has several, as if it were all of the trial
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,

    #[command(flatten)]
    run: RunArg,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    store: StoreArg,
}

impl ExplainArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let mut selectors = self.selectors;
        if selectors.is_empty() {
            selectors.push(Selector::default());
        }
        let run = self.run.get();
        let reading = self.store.read()?;
        if self.timeline {
            return timeline(&reading, &run, &selectors, self.phase.as_deref(), self.format.get());
        }
        let cells: Vec<_> = selectors
            .iter()
            .map(|selector| explain_cell(&reading, &run, selector, self.phase.as_deref()))
            .collect::<Result<_, _>>()?;
        match (self.format.get(), cells.as_slice()) {
            (Format::Json, [first, rest @ ..]) => reading.print_json(&Document::new(first, rest.first()))?,
            (format, [first, second, ..]) => print(&difference_text(first, second, format, terminal()))?,
            (format, [only]) => print(&text(only, format, terminal()))?,
            (_, []) => {}
        }
        Ok(Exit::Ok)
    }
}

fn timeline(
    reading: &Reading,
    run: &RunSelection,
    selectors: &[Selector],
    phase: Option<&str>,
    format: Format,
) -> anyhow::Result<Exit> {
    let [selector] = selectors else {
        return Err(Usage("error: --timeline shows one trial".to_owned()).into());
    };
    let trials = trials_of_one_cell(reading, run, selector)?;
    let [trial] = trials.as_slice() else {
        let ids: Vec<&str> = trials.iter().map(String::as_str).collect();
        return Err(Usage(format!(
            "error: --timeline shows one trial, and these are {}: {}",
            ids.len(),
            ids.join(", ")
        ))
        .into());
    };
    let mut record = reading.load(trial).ok_or_else(|| reading.error(trial))?;
    if let Some(phase) = phase {
        record = phase_of(&record, phase)?;
    }
    let table = report::timeline(&record);
    match format {
        Format::Json => reading.print_json(&TimelineDocument { schema: 1, trial, rows: table.objects() })?,
        format => print(&table.render(format))?,
    }
    Ok(Exit::Ok)
}

/// `explain --timeline --format json`, schema 1.
#[derive(Serialize)]
struct TimelineDocument<'a> {
    schema: u32,
    trial: &'a str,
    /// Texts by column name.
    rows: Vec<BTreeMap<&'a str, &'a str>>,
}
