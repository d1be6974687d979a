//! `pgdyno export`: trials as flat tables, or as metrics, in files.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use analysis::select::{Selector, trials_of_any};
use clap::{Args, ValueEnum};
use report::export_files::{BundleExport, Export, ExportOutcome, FileFormat, MetricsExport, MetricsFormat};
use report::export_tables::Table;

use crate::completion;
use crate::exit::{Exit, Usage};
use crate::interrupt;
use crate::output::note;
use crate::store_arg::StoreArg;

/// Write trials as tables (Parquet, CSV, JSON) or metrics (OpenMetrics, OTLP)
///
/// The tables: runs, trials (one row a trial with the levels of all factors, figures and validity), cells (summaries of
/// their trials), intervals (each second of the load), scripts (each second by script), series (readings of metrics),
/// waits, events and statements. docs/export.md has every column; names include units, and do not change.
///
/// Without a selector, all trials are exported; `latest` is the latest run. Invalid trials are included: filter by the
/// column `validity`. Files are written under temporary names and renamed when all are complete.
///
/// The formats openmetrics and otlp are one file with the metrics of all trials over time, with their original times. --bundle
/// writes everything that the store has of the trials.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno export -o tables                             all trials: tables/trials.parquet and eight more
  pgdyno export latest --table trials -o trials.csv   one table of the latest run; format by the extension
  pgdyno export campaign:upgrade --table cells --table intervals --format csv -o upgrade
  pgdyno export latest --table trials --format json -o - | jq .tps
  pgdyno export latest --format openmetrics -o latest.om
  pgdyno export latest --bundle run.tar.zst --redact  the bundles, for another store

Exit codes: 0 all is written, 1 error, 130 interrupted; no incomplete file is left.")]
pub(crate) struct ExportArgs {
    /// Trials, as FACTOR=LEVEL, run:ID, campaign:NAME (all its runs), tag:NAME or latest, separated by commas, or as ids;
    /// the union of all selectors [default: all trials in the store]
    #[arg(value_name = "SELECTOR", add = completion::selectors())]
    selectors: Vec<Selector>,

    /// Directory for the tables, created if needed; with one --table, or for metrics, the file (- is standard output)
    #[arg(short, long, value_name = "DIR|FILE", required_unless_present = "bundle")]
    output: Option<PathBuf>,

    /// Format of the files [default: by the file's extension, else parquet]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<FormatName>,

    /// Table to write; may be repeated [default: all]
    #[arg(long = "table", value_enum, value_name = "TABLE")]
    tables: Vec<TableName>,

    /// Write the whole bundles to this file (run.tar.zst; - is standard output), for `pgdyno import bundle`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "format", "tables"])]
    bundle: Option<PathBuf>,

    /// With --bundle: replace the names of hosts and users, and list what was replaced
    #[arg(long, requires = "bundle")]
    redact: bool,

    #[command(flatten)]
    store: StoreArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// Apache Parquet
    Parquet,
    /// Comma-separated values, RFC 4180; null is an empty field, empty text is ""
    Csv,
    /// JSON, one object a line
    Json,
    /// Metrics as OpenMetrics text, for `promtool tsdb create-blocks-from openmetrics`
    Openmetrics,
    /// Metrics as OTLP/JSON lines, for the OpenTelemetry Collector's otlpjsonfile receiver
    Otlp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TableName {
    Runs,
    Trials,
    Cells,
    Phases,
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
            Self::Phases => Table::Phases,
            Self::Intervals => Table::Intervals,
            Self::Scripts => Table::Scripts,
            Self::Series => Table::Series,
            Self::Waits => Table::Waits,
            Self::Events => Table::Events,
            Self::Statements => Table::Statements,
        }
    }
}

impl FormatName {
    fn of_tables(self) -> Option<FileFormat> {
        match self {
            Self::Parquet => Some(FileFormat::Parquet),
            Self::Csv => Some(FileFormat::Csv),
            Self::Json => Some(FileFormat::Json),
            Self::Openmetrics | Self::Otlp => None,
        }
    }

    fn of_metrics(self) -> Option<MetricsFormat> {
        match self {
            Self::Openmetrics => Some(MetricsFormat::OpenMetrics),
            Self::Otlp => Some(MetricsFormat::Otlp),
            Self::Parquet | Self::Csv | Self::Json => None,
        }
    }
}

impl ExportArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let reading = self.store.read()?;
        let trials = trials_of_any(&reading, &self.selectors)?;
        let interrupt = interrupt::flag()?;
        let is_interrupted = || interrupt.load(Ordering::Relaxed);
        let written = match (&self.bundle, self.format.and_then(FormatName::of_metrics)) {
            (Some(output), _) => {
                let export = BundleExport { output: output.clone(), redacts: self.redact };
                let written = export.write(&reading, &trials, &is_interrupted);
                written.map(|written| written.map(|written| vec![written.to_string()]))
            }
            (None, Some(format)) => {
                let written = self.metrics(format)?.write(&reading, &trials, &is_interrupted);
                written.map(|written| written.map(|written| vec![written.to_string()]))
            }
            (None, None) => {
                let written = self.export()?.write(&reading, &trials, &is_interrupted);
                written.map(|outcome| match outcome {
                    ExportOutcome::Complete(files) => Some(files.iter().map(ToString::to_string).collect()),
                    ExportOutcome::Interrupted => None,
                })
            }
        };
        match written {
            Ok(Some(files)) => {
                for file in files {
                    note(&format!("{file}\n"));
                }
                Ok(Exit::Ok)
            }
            Ok(None) => {
                note("interrupted: nothing was written\n");
                Ok(Exit::Interrupted)
            }
            // A reader of standard output that closes it (`| head`) is not an error.
            Err(error) if error.is_broken_pipe() => Ok(Exit::Ok),
            Err(error) => Err(error.into()),
        }
    }

    /// The file or directory of tables or metrics.
    fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new("-"))
    }

    /// Format and destination of an export of metrics.
    fn metrics(&self, format: MetricsFormat) -> Result<MetricsExport, Usage> {
        if !self.tables.is_empty() {
            return Err(Usage(
                "error: --table is for the formats of tables: openmetrics and otlp have the metrics of all of them".to_owned(),
            ));
        }
        Ok(MetricsExport { format, output: self.output().to_owned() })
    }

    /// Tables, format and destination of the export.
    fn export(&self) -> Result<Export, Usage> {
        let mut tables: Vec<Table> = self.tables.iter().map(|name| name.table()).collect();
        tables.sort_unstable();
        tables.dedup();
        if tables.is_empty() {
            tables = Table::ALL.to_vec();
        }
        let output = self.output();
        let from_extension = FileFormat::from_extension(output);
        let format =
            self.format.and_then(FormatName::of_tables).or(from_extension).unwrap_or(FileFormat::Parquet);
        let is_file =
            output == Path::new("-") || (!output.is_dir() && (from_extension.is_some() || output.exists()));
        if let (true, [first, second, ..]) = (is_file, tables.as_slice()) {
            return Err(Usage(format!(
                "error: {} is one file, and there are several tables ({}, {}, …): name one with --table, or a directory",
                output.display(),
                first.name(),
                second.name()
            )));
        }
        Ok(Export { tables, format, output: output.to_owned(), is_file })
    }
}
