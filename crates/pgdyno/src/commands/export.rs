//! `pgdyno export`: the store as flat tables in files.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use analysis::select::{Selector, trials_of_any};
use clap::{Args, ValueEnum};
use report::export_files::{Export, FileFormat, Written};
use report::export_tables::Table;
use store::Store;

use crate::exit::{Exit, Usage};
use crate::interrupt;
use crate::output::note;
use crate::store_arg::StoreArg;

/// Write trials as flat tables: Parquet, CSV or JSON, for DuckDB, pandas and the like
///
/// The tables: runs, trials (one row a trial with the levels of all factors, figures and validity), cells (what their
/// trials come to), intervals (each second of the load), scripts (each second by script), series (readings of metrics),
/// waits, events and statements. docs/export.md has every column; names carry units, and do not change.
///
/// Without a selector it is all of the store; `latest` is the latest run. Invalid trials are among them: filter by the
/// column `validity`. Files are written under temporary names, and are there when all of them are whole.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno export -o tables                             all of the store: tables/trials.parquet and eight more
  pgdyno export latest --table trials -o trials.csv   one table of the latest run; the format is the file's
  pgdyno export campaign:upgrade --table cells --table intervals --format csv -o upgrade
  pgdyno export latest --table trials --format json -o - | jq .tps

Exit codes: 0 all is written, 1 error, 130 interrupted; nothing is left of files that are not whole.")]
pub(crate) struct ExportArgs {
    /// Trials, as FACTOR=LEVEL, run:ID, campaign:NAME (all its runs), tag:NAME or latest with commas between them, or as
    /// ids; those that any selector selects [default: all of the store]
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<Selector>,

    /// Directory for the tables, which is made where there is none; with one --table, the file (- is standard output)
    #[arg(short, long, value_name = "DIR|FILE")]
    output: PathBuf,

    /// Format of the files [default: by the file's ending, else parquet]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<FormatName>,

    /// Write this table; may be given several times [default: all]
    #[arg(long = "table", value_enum, value_name = "TABLE")]
    tables: Vec<TableName>,

    #[command(flatten)]
    store: StoreArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// Apache Parquet
    Parquet,
    /// Comma-separated values, RFC 4180; null is nothing, empty text is ""
    Csv,
    /// JSON, an object a line
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TableName {
    Runs,
    Trials,
    Cells,
    Intervals,
    Scripts,
    Series,
    Waits,
    Events,
    Statements,
}

impl TableName {
    fn table(self) -> Table {
        match self {
            Self::Runs => Table::Runs,
            Self::Trials => Table::Trials,
            Self::Cells => Table::Cells,
            Self::Intervals => Table::Intervals,
            Self::Scripts => Table::Scripts,
            Self::Series => Table::Series,
            Self::Waits => Table::Waits,
            Self::Events => Table::Events,
            Self::Statements => Table::Statements,
        }
    }
}

impl From<FormatName> for FileFormat {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Parquet => Self::Parquet,
            FormatName::Csv => Self::Csv,
            FormatName::Json => Self::Json,
        }
    }
}

impl ExportArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let store = Store::existing(&self.store.root())?;
        let all = store.trials()?;
        let trials = trials_of_any(&store, &all, &self.selectors)?;
        let interrupt = interrupt::flag()?;
        let export = self.export()?;
        match export.write(&store, &trials, &|| interrupt.load(Ordering::Relaxed)) {
            Ok(Written::Whole(files)) => {
                for file in files {
                    note(&format!("{}: {} rows of {}\n", file.path, file.rows, file.table.name()));
                }
                Ok(Exit::Ok)
            }
            Ok(Written::Interrupted) => {
                note("interrupted: nothing was written\n");
                Ok(Exit::Interrupted)
            }
            // A reader of standard output that goes away (`| head`) is not an error.
            Err(error) if error.is_broken_pipe() => Ok(Exit::Ok),
            Err(error) => Err(error.into()),
        }
    }

    /// The tables, their format and their place.
    fn export(&self) -> Result<Export, Usage> {
        let mut tables: Vec<Table> = self.tables.iter().map(|name| name.table()).collect();
        tables.sort_unstable();
        tables.dedup();
        if tables.is_empty() {
            tables = Table::ALL.to_vec();
        }
        let by_ending = FileFormat::by_ending(&self.output);
        let format = self.format.map(FileFormat::from).or(by_ending).unwrap_or(FileFormat::Parquet);
        let is_file = self.output == Path::new("-")
            || (!self.output.is_dir() && (by_ending.is_some() || self.output.exists()));
        if let (true, [first, second, ..]) = (is_file, tables.as_slice()) {
            return Err(Usage(format!(
                "error: {} is one file, and there are several tables ({}, {}, …): name one by --table, or a directory",
                self.output.display(),
                first.name(),
                second.name()
            )));
        }
        Ok(Export { tables, format, output: self.output.clone(), is_file })
    }
}
