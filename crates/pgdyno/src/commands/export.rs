//! `pgdyno export`: the store as flat tables in files.

mod csv;
mod file;
mod jsonl;
mod parquet;

use std::io;
use std::path::{Path, PathBuf};

use analysis::select::Selector;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use report::export_tables::{Table, Value};
use store::Store;

use crate::chosen::{Interrupt, chosen};
use crate::exit::{Exit, Usage};
use crate::output::note;
use crate::store_arg::StoreArg;
use file::Pending;

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
    what: Vec<Selector>,

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

impl FormatName {
    /// Endings of files, the usual one first.
    const fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Parquet => &["parquet"],
            Self::Csv => &["csv"],
            Self::Json => &["jsonl", "ndjson", "json"],
        }
    }

    fn by_ending(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        Self::value_variants().iter().copied().find(|format| format.endings().contains(&ending.as_str()))
    }
}

/// A file that takes rows.
trait Rows {
    fn add(&mut self, values: &[Value<'_>]) -> io::Result<()>;
    /// Writes what is left, and makes the file whole.
    fn end(self: Box<Self>) -> io::Result<()>;
}

/// A table with its file.
struct Output {
    table: Table,
    pending: Pending,
    rows: Box<dyn Rows>,
    count: u64,
}

impl ExportArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let store = Store::existing(&self.store.root())?;
        let all = store.trials()?;
        let trials = chosen(&store, &all, &self.what)?;
        let interrupt = Interrupt::watch()?;
        let mut outputs = self.outputs()?;
        let is_stopped = || if interrupt.came() { Err(io::ErrorKind::Interrupted) } else { Ok(()) };
        let written = (|| -> anyhow::Result<()> {
            for output in &mut outputs {
                let failed = output.pending.failed();
                output.table.of_heads(&trials, &mut output.adding(&is_stopped)).with_context(|| failed)?;
            }
            if outputs.iter().all(|output| matches!(output.table, Table::Runs | Table::Cells)) {
                return Ok(());
            }
            for trial in &trials {
                let record = store.load(&trial.id)?;
                for output in &mut outputs {
                    let failed = output.pending.failed();
                    output
                        .table
                        .of_trial(&record, &mut output.adding(&is_stopped))
                        .with_context(|| failed)?;
                }
            }
            Ok(())
        })();
        if interrupt.came() {
            note("interrupted: nothing was written\n");
            return Ok(Exit::Interrupted);
        }
        if let Err(error) = written {
            // A reader of standard output that goes away (`| head`) is not an error.
            let is_gone = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
            let gone = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(is_gone);
            return if gone { Ok(Exit::Ok) } else { Err(error) };
        }
        // Only when all are whole do they get their names.
        let mut whole = Vec::new();
        for Output { table, pending, rows, count } in outputs {
            rows.end().with_context(|| pending.failed())?;
            whole.push((table, pending, count));
        }
        for (table, pending, count) in whole {
            let path = pending.publish()?;
            note(&format!("{path}: {count} rows of {}\n", table.name()));
        }
        Ok(Exit::Ok)
    }

    /// Each table with the file that it goes to.
    fn outputs(&self) -> anyhow::Result<Vec<Output>> {
        let mut tables: Vec<Table> = self.tables.iter().map(|name| name.table()).collect();
        tables.sort_unstable();
        tables.dedup();
        if tables.is_empty() {
            tables = Table::ALL.to_vec();
        }
        let by_ending = FormatName::by_ending(&self.output);
        let format = self.format.or(by_ending).unwrap_or(FormatName::Parquet);
        let is_stdout = self.output == Path::new("-");
        let is_file = is_stdout || (!self.output.is_dir() && (by_ending.is_some() || self.output.exists()));
        if let (true, [first, second, ..]) = (is_file, tables.as_slice()) {
            return Err(Usage(format!(
                "error: {} is one file, and there are several tables ({}, {}, …): name one by --table, or a directory",
                self.output.display(),
                first.name(),
                second.name()
            ))
            .into());
        }
        let open = |table: Table| -> anyhow::Result<Output> {
            let pending = match is_stdout {
                true => Pending::stdout(),
                false if is_file => Pending::file(&self.output)?,
                false => {
                    let ending = format.endings().first().unwrap_or(&"");
                    Pending::file(&self.output.join(format!("{}.{ending}", table.name())))?
                }
            };
            let out = pending.writer()?;
            let rows: io::Result<Box<dyn Rows>> = match format {
                FormatName::Parquet => parquet::rows(out, table),
                FormatName::Csv => csv::rows(out, table),
                FormatName::Json => Ok(jsonl::rows(out, table)),
            };
            let rows = rows.with_context(|| pending.failed())?;
            Ok(Output { table, pending, rows, count: 0 })
        };
        if !is_file {
            make_directory(&self.output)?;
        }
        tables.into_iter().map(open).collect()
    }
}

impl Output {
    /// What adds a row, unless it is to stop.
    fn adding<'o>(
        &'o mut self,
        is_stopped: &'o impl Fn() -> Result<(), io::ErrorKind>,
    ) -> impl FnMut(&[Value<'_>]) -> io::Result<()> + 'o {
        |values| {
            is_stopped()?;
            self.count += 1;
            self.rows.add(values)
        }
    }
}

fn make_directory(path: &Path) -> anyhow::Result<()> {
    if path.exists() && !path.is_dir() {
        bail!("{} is there and no directory", path.display());
    }
    std::fs::create_dir_all(path).with_context(|| format!("could not make the directory {}", path.display()))
}
