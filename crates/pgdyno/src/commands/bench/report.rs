//! Options of the report.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub(super) struct ReportArgs {
    /// Measure each statement of the scripts
    #[arg(short = 'r', long)]
    pub(super) per_statement: bool,

    /// Length of the intervals in JSON and the interval log; may be below a second
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = bench::interval)]
    pub(super) interval: Duration,

    /// How to print the report
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    pub(super) format: FormatName,

    /// File for the report, in place of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// File for the histograms of every interval, as an HdrHistogram interval log
    #[arg(long, value_name = "FILE")]
    pub(super) hlog: Option<PathBuf>,

    /// No live view
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// Print help
    #[arg(short = '?', long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatName {
    Table,
    Json,
}
