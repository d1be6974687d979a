//! `pgdyno report`: the results of a run.

use std::path::{Path, PathBuf};

use analysis::overview::view::View;
use clap::Args;
use report::ReportFile;

use crate::exit::Exit;
use crate::output::{FormatArg, command_line, note, print, terminal};
use crate::store_arg::{RunArg, StoreArg};

/// Show the results of a run: tables, data, or a page for the browser
///
/// Prints one table for each workload, with a row for each number of clients and a column for each server: the median of
/// the runs, their range, and the change from the first server. Invalid runs are listed with the reason and not used;
/// suspect ones are marked.
///
/// With -o, writes one HTML file instead, with charts of every run, the tables, the validity of the trials and their
/// environment. The file is self-contained.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno report                              tables of the latest run
  pgdyno report -o report.html               the same and more, for the browser
  pgdyno report --campaign upgrade           the latest run of a campaign
  pgdyno report --run 01KAK3 --format csv    every trial of a run in full precision
  pgdyno report --format json | jq '.panels[].rows[] | {clients, figure: [.points[]?.mean]}'
  pgdyno report --format markdown >> notes.md")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    run: RunArg,

    /// Write the page to this file (- is standard output) instead of printing tables
    #[arg(short, long, value_name = "FILE", conflicts_with = "format")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    store: StoreArg,
}

impl ReportArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let reading = self.store.read()?;
        let mut view = analysis::overview::read(&reading, &self.run.get())?;
        note(&headline(&view));
        let Some(path) = self.output.as_deref() else {
            print(&report::tables(&view, self.format.get(), terminal()))?;
            return Ok(Exit::Ok);
        };
        view.made_by = Some(command_line(&[]));
        let file = report::file(&reading, view, report::MAX_DETAIL_BYTES)?;
        if path == Path::new("-") {
            print(&file.html)?;
        } else {
            file.write(path)?;
            note(&format!("wrote {}\n", path.display()));
        }
        note(&omissions(&file));
        Ok(Exit::Ok)
    }
}

/// Names the run and its campaign, since the default is the latest run.
fn headline(view: &View) -> String {
    let line = |run: &analysis::overview::view::Run| {
        let started = run.started.map(|started| started.strftime(", %Y-%m-%d %H:%M UTC").to_string());
        format!("run {} of campaign {}{}\n", run.id, run.campaign, started.unwrap_or_default())
    };
    view.runs.iter().map(line).collect()
}

/// Data of the store that the file omits.
fn omissions(file: &ReportFile) -> String {
    let mut text = String::new();
    if let Some(points) = file.thinned_to {
        text += &format!(
            "its series have at most {points} points each, with the smallest and largest value of merged points\n"
        );
    }
    if file.left_out > 0 {
        text += &format!(
            "{} of the trials are in the tables and charts, but not in detail: `pgdyno serve` shows these\n",
            file.left_out
        );
    }
    text
}
