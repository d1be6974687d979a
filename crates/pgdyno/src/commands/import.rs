//! `pgdyno import`: what people already have, as trials in the store.

mod keep;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use import::csv::{LatencyFigure, Mapping};
use import::{Import, ImportError, Source, pgbench, pgbench_tools};
use model::factor::Factor;
use strum::VariantArray;

use crate::exit::{Exit, Usage};
use crate::output::FormatArg;
use crate::store_arg::StoreArg;

/// Make trials of what you already have: pgbench's output and logs, tables, pgbench-tools' exports
///
/// Each import is a run in the store; each output or row becomes a trial in it, so that reports and comparisons work on
/// it. Of an imported trial is known what the files say. What they do not say stays unknown: say it with --set. The same
/// files are not imported twice; an import that was killed goes on where it ended when it is repeated.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno import csv sweep.csv --factor kernel --factor clients --repeat run\n  \
                        pgdyno import pgbench run1.out run2.out run3.out --set server=14 --name before\n  \
                        pgdyno import pgbench run.out --progress run.err --log pgbench_log.4711*\n  \
                        pgdyno import pgbench-tools tests.csv --testset testset.csv\n\n\
                        Then: pgdyno report -o report.html")]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Pgbench(PgbenchArgs),
    Csv(CsvArgs),
    PgbenchTools(PgbenchToolsArgs),
}

/// Import what pgbench printed and logged (9.0 to 18): each output is a trial
///
/// Progress reports (-P) become a series of each second, whether they are in the output or in a file of their own. A log of
/// transactions (-l) brings histograms and percentiles, one of intervals (--aggregate-interval) a series without
/// percentiles; give the files of all threads. Where there is a log and no output, throughput is that of the log.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno import pgbench run1.out run2.out run3.out --set server=14 --tag before\n  \
                        pgdyno import pgbench run.out --progress run.err --log pgbench_log.4711*\n  \
                        pgbench -c 8 -T 60 -P 1 2>&1 | pgdyno import pgbench - --name smoke")]
struct PgbenchArgs {
    /// What pgbench printed (- is standard input)
    #[arg(value_name = "OUTPUT", required_unless_present = "log")]
    outputs: Vec<PathBuf>,

    /// The progress reports of the one output, which pgbench prints on standard error
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,

    /// The logs of the one output, of all its threads
    #[arg(long, value_name = "FILE", num_args = 1..)]
    log: Vec<PathBuf>,

    #[command(flatten)]
    to: ToArgs,
}

/// Import a table whose first line names the columns: each row is a trial
///
/// Columns are parted by commas, semicolons, tabs or bars. The rows keep their order. Where one is bad, it is named and
/// nothing is imported.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno import csv sweep.csv --factor kernel --factor clients --repeat run\n  \
                        pgdyno import csv runs.csv --factor clients=sessions --metric median --set server=14")]
struct CsvArgs {
    /// The table (- is standard input)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// A column that is a factor: its name, or FACTOR=COLUMN where the column's name is another one
    #[arg(long, value_name = "FACTOR[=COLUMN]", value_parser = factor_and_column)]
    factor: Vec<(Factor, String)>,

    /// The column of the transactions per second
    #[arg(long, value_name = "COLUMN", default_value = "tps")]
    metric: String,

    /// A column of latencies in milliseconds: of their mean, or FIGURE=COLUMN for mean, stddev, min, p50, p90, p95, p99, p99.9
    /// or max; may be given several times
    #[arg(long, value_name = "[FIGURE=]COLUMN", value_parser = figure_and_column)]
    latency_ms: Vec<(LatencyFigure, String)>,

    /// The column of the repeat's number [default: rows of a cell are counted in their order]
    #[arg(long, value_name = "COLUMN")]
    repeat: Option<String>,

    /// The column of the time when a trial began; UTC where it has no offset
    #[arg(long, value_name = "COLUMN")]
    started: Option<String>,

    /// Leave out rows that can't be trials
    #[arg(long)]
    skip_bad: bool,

    #[command(flatten)]
    to: ToArgs,
}

/// Import an export of pgbench-tools' results database: each test is a trial
///
/// Needs the table `tests` as CSV with a head, of any version of pgbench-tools. Script, scale, clients, workers and rate
/// limit become the cell, the set becomes the factor settings, and the server, where there is one, the factor host.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
                        psql results -c '\\copy (select * from tests order by test) to tests.csv csv header'\n  \
                        psql results -c '\\copy testset to testset.csv csv header'\n  \
                        pgdyno import pgbench-tools tests.csv --testset testset.csv")]
struct PgbenchToolsArgs {
    /// The table `tests` (- is standard input)
    #[arg(value_name = "FILE")]
    tests: PathBuf,

    /// The table `testset`, for the names of the sets
    #[arg(long, value_name = "FILE")]
    testset: Option<PathBuf>,

    /// Leave out tests that can't be trials, such as those that did not come to their end
    #[arg(long)]
    skip_bad: bool,

    #[command(flatten)]
    to: ToArgs,
}

/// What all imports share.
#[derive(Debug, Args)]
struct ToArgs {
    /// A level that all trials have and the files do not say [example: --set workload=select-only --set server=14]
    #[arg(long, value_name = "FACTOR=LEVEL", value_parser = factor_and_level)]
    set: Vec<(Factor, String)>,

    /// What the run is called, as a campaign is [default: the first file's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// A word to find the trials by; may be given several times
    #[arg(long, value_name = "NAME")]
    tag: Vec<String>,

    /// Import what is in the store already once more
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
            Command::Pgbench(args) => args.run(),
            Command::Csv(args) => args.run(),
            Command::PgbenchTools(args) => args.run(),
        }
    }
}

impl PgbenchArgs {
    fn run(self) -> anyhow::Result<Exit> {
        if self.outputs.len() > 1 && (self.progress.is_some() || !self.log.is_empty()) {
            let message = "error: --progress and --log are of one run; import the outputs one by one";
            return Err(Usage(message.to_owned()).into());
        }
        let levels = self.to.levels()?;
        let files =
            |paths: &[PathBuf]| paths.iter().map(|path| source(path)).collect::<anyhow::Result<Vec<_>>>();
        let runs: Vec<pgbench::Run> = match files(&self.outputs)?.as_slice() {
            outputs @ ([] | [_]) => vec![pgbench::Run {
                output: outputs.first().cloned(),
                progress: self.progress.as_deref().map(source).transpose()?,
                logs: files(&self.log)?,
            }],
            outputs => outputs
                .iter()
                .map(|output| pgbench::Run { output: Some(output.clone()), ..pgbench::Run::default() })
                .collect(),
        };
        self.to.keep(pgbench::read(&runs, &levels))
    }
}

impl CsvArgs {
    fn run(self) -> anyhow::Result<Exit> {
        let levels = self.to.levels()?;
        let mut factors = BTreeMap::new();
        for (factor, column) in &self.factor {
            if levels.contains_key(factor) || factors.insert(*factor, column.clone()).is_some() {
                return Err(twice(*factor));
            }
        }
        let mut latency_ms = BTreeMap::new();
        for (figure, column) in self.latency_ms {
            if latency_ms.insert(figure, column).is_some() {
                return Err(Usage(format!("error: the latency {} is given twice", figure.as_str())).into());
            }
        }
        let mapping = Mapping {
            factors,
            levels,
            tps: self.metric,
            latency_ms,
            repeat: self.repeat,
            started: self.started,
        };
        self.to.keep(import::csv::read(&source(&self.file)?, &mapping, self.skip_bad))
    }
}

impl PgbenchToolsArgs {
    fn run(self) -> anyhow::Result<Exit> {
        let levels = self.to.levels()?;
        let testset = self.testset.as_deref().map(source).transpose()?;
        self.to.keep(pgbench_tools::read(&source(&self.tests)?, testset.as_ref(), &levels, self.skip_bad))
    }
}

impl ToArgs {
    fn levels(&self) -> anyhow::Result<BTreeMap<Factor, String>> {
        let mut levels = BTreeMap::new();
        for (factor, level) in &self.set {
            if levels.insert(*factor, level.clone()).is_some() {
                return Err(twice(*factor));
            }
        }
        Ok(levels)
    }

    fn keep(self, read: Result<Import, ImportError>) -> anyhow::Result<Exit> {
        match read {
            Ok(import) => keep::keep(&import, &self),
            // The command line names what is not there.
            Err(error @ (ImportError::NoColumn { .. } | ImportError::Level(_))) => {
                Err(Usage(format!("error: {error}")).into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn twice(factor: Factor) -> anyhow::Error {
    Usage(format!("error: the factor {} is given twice", factor.name())).into()
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

fn factor_and_column(text: &str) -> Result<(Factor, String), String> {
    let (factor, column) = text.split_once('=').unwrap_or((text, text));
    Ok((factor_of(factor)?, column.to_owned()))
}

fn figure_and_column(text: &str) -> Result<(LatencyFigure, String), String> {
    let Some((figure, column)) = text.split_once('=') else {
        return Ok((LatencyFigure::Mean, text.to_owned()));
    };
    let known = figure.parse().map_err(|_| {
        let all: Vec<&str> = LatencyFigure::VARIANTS.iter().map(|figure| figure.as_str()).collect();
        format!("`{figure}` is not a latency figure; expected {}", all.join(", "))
    })?;
    Ok((known, column.to_owned()))
}

fn factor_and_level(text: &str) -> Result<(Factor, String), String> {
    let (factor, level) =
        text.split_once('=').ok_or("expected FACTOR=LEVEL, such as workload=select-only")?;
    Ok((factor_of(factor)?, level.to_owned()))
}

fn factor_of(name: &str) -> Result<Factor, String> {
    name.parse::<Factor>().ok().ok_or_else(|| {
        format!(
            "`{name}` is not a factor; expected {} (FACTOR=COLUMN where the column's name is another one)",
            Factor::ALL.map(Factor::name).join(", ")
        )
    })
}
