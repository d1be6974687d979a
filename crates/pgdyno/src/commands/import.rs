//! `pgdyno import`: results of other tools as trials in the store.

mod bundle;
mod csv;
mod pgbench;
mod pgbench_tools;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context;
use clap::{Args, Subcommand};
use import::{Import, Request, Source, StoredImport};
use model::factor::Factor;
use plaintext::table::Format;
use report::imports::{Document, table};
use store::Store;

use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, note, print_json, print_table};
use crate::store_arg::StoreArg;

/// Import results: of other stores, of pgbench (output and logs), tables, pgbench-tools' exports
///
/// Each import of other tools' results is a run in the store, and each output or row a trial in it, for reports and comparisons. An imported
/// trial has what the files contain; everything else stays unknown unless --set adds it. The same files are not imported
/// twice; repeat an interrupted import to continue it. Bundles of another store stay what they are.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno import csv sweep.csv --factor kernel --factor clients --repeat run\n  \
                        pgdyno import pgbench run1.out run2.out run3.out --set server=14 --name before\n  \
                        pgdyno import pgbench run.out --progress run.err --log pgbench_log.4711*\n  \
                        pgdyno import pgbench-tools tests.csv --testset testset.csv\n  \
                        pgdyno import bundle run.tar.zst\n\n\
                        Then: pgdyno report -o report.html")]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bundle(bundle::BundleArgs),
    Pgbench(pgbench::PgbenchArgs),
    Csv(csv::CsvArgs),
    PgbenchTools(pgbench_tools::PgbenchToolsArgs),
}

/// Options of all imports.
#[derive(Debug, Args)]
struct TargetArgs {
    /// A level of all trials that the files do not contain [example: --set workload=select-only --set server=14]
    #[arg(long, value_name = "FACTOR=LEVEL", value_parser = factor_and_level)]
    set: Vec<(Factor, String)>,

    /// Name of the run, as of a campaign [default: the first file's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Tag to find the trials by; may be repeated
    #[arg(long, value_name = "NAME")]
    tag: Vec<String>,

    /// Import files again that are in the store already
    #[arg(long)]
    again: bool,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl ImportArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Bundle(args) => args.run(),
            Command::Pgbench(args) => args.run(),
            Command::Csv(args) => args.run(),
            Command::PgbenchTools(args) => args.run(),
        }
    }
}

impl TargetArgs {
    fn levels(&self) -> Result<BTreeMap<Factor, String>, Usage> {
        unique(&self.set)
    }

    /// Stores an import, and prints a summary.
    fn persist(self, import: &Import) -> anyhow::Result<Exit> {
        let store = Store::open(&self.store.root())?;
        let request = Request { name: self.name, tags: self.tag, again: self.again };
        let StoredImport { run, is_resumed } = import.persist(&store, request)?;
        if is_resumed {
            note(&format!("continued run {}, whose import was interrupted\n", run.id));
        }
        if !import.unused.is_empty() {
            note(&format!("unused columns: {}\n", import.unused.join(", ")));
        }
        for row in &import.skipped {
            note(&format!("left out: {row}\n"));
        }
        match self.format.get() {
            Format::Json => print_json(&Document::new(import, &run))?,
            format => print_table(&table(import, &run), format)?,
        }
        Ok(Exit::Ok)
    }
}

/// Values by factor.
///
/// # Errors
/// A factor is given twice.
fn unique(values: &[(Factor, String)]) -> Result<BTreeMap<Factor, String>, Usage> {
    let mut map = BTreeMap::new();
    for (factor, value) in values {
        if map.insert(*factor, value.clone()).is_some() {
            return Err(Usage(format!("error: the factor {} is given twice", factor.name())));
        }
    }
    Ok(map)
}

/// A file, or all of standard input.
fn source(path: &Path) -> anyhow::Result<Source> {
    if path != Path::new("-") {
        return Ok(path.into());
    }
    let mut content = Vec::new();
    std::io::stdin().read_to_end(&mut content).context("standard input can't be read")?;
    Ok(Source::Bytes("standard-input".to_owned(), content))
}

/// Error of a factor with a level or a column.
#[derive(Debug, thiserror::Error)]
enum FactorError {
    /// No `=`.
    #[error("expected FACTOR=LEVEL, such as workload=select-only")]
    NoLevel,
    /// Unknown factor.
    #[error(
        "`{0}` is not a factor; expected {all} (FACTOR=COLUMN if the column has another name)",
        all = Factor::ALL.map(Factor::name).join(", ")
    )]
    NotAFactor(String),
}

fn factor_and_level(text: &str) -> Result<(Factor, String), FactorError> {
    let (name, level) = text.split_once('=').ok_or(FactorError::NoLevel)?;
    Ok((factor(name)?, level.to_owned()))
}

fn factor(name: &str) -> Result<Factor, FactorError> {
    name.parse().map_err(|_| FactorError::NotAFactor(name.to_owned()))
}
