//! `pgdyno import csv`: tables of figures.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use import::csv::{self, LatencyFigure, Mapping};
use model::factor::Factor;
use strum::VariantArray;

use super::{FactorError, TargetArgs, factor, source, unique};
use crate::exit::{Exit, Usage};

/// Import a table with column names in its first line: each row is a trial
///
/// Columns are separated by commas, semicolons, tabs or bars. The rows keep their order. If one is invalid, it is
/// reported and nothing is imported.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno import csv sweep.csv --factor kernel --factor clients --repeat run\n  \
                        pgdyno import csv runs.csv --factor clients=sessions --metric median --set server=14")]
pub(super) struct CsvArgs {
    /// The table (- is standard input)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Column of a factor: its name, or FACTOR=COLUMN if the column has another name
    #[arg(long, value_name = "FACTOR[=COLUMN]", value_parser = factor_and_column)]
    factor: Vec<(Factor, String)>,

    /// Column of transactions per second
    #[arg(long, value_name = "COLUMN", default_value = "tps")]
    metric: String,

    /// Column of latencies in milliseconds: their mean, or FIGURE=COLUMN for mean, stddev, min, p50, p90, p95, p99, p99.9
    /// or max; may be repeated
    #[arg(long, value_name = "[FIGURE=]COLUMN", value_parser = figure_and_column)]
    latency_ms: Vec<(LatencyFigure, String)>,

    /// Column of the repeat's number [default: the rows of a cell in their order]
    #[arg(long, value_name = "COLUMN")]
    repeat: Option<String>,

    /// Column of the trial's start; UTC unless it has an offset
    #[arg(long, value_name = "COLUMN")]
    started: Option<String>,

    /// Skip invalid rows
    #[arg(long)]
    skip_bad: bool,

    #[command(flatten)]
    target: TargetArgs,
}

impl CsvArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        unique(&[self.target.set.clone(), self.factor.clone()].concat())?;
        let mut latency_ms = BTreeMap::new();
        for (figure, column) in self.latency_ms {
            if latency_ms.insert(figure, column).is_some() {
                return Err(Usage(format!("error: the latency {} is given twice", figure.as_str())).into());
            }
        }
        let mapping = Mapping {
            factors: unique(&self.factor)?,
            levels: self.target.levels()?,
            tps: self.metric,
            latency_ms,
            repeat: self.repeat,
            started: self.started,
        };
        self.target.persist(&csv::read(&source(&self.file)?, &mapping, self.skip_bad)?)
    }
}

/// Unknown figure.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not a latency figure; expected {all}",
    all = LatencyFigure::VARIANTS.iter().map(|figure| figure.as_str()).collect::<Vec<_>>().join(", ")
)]
struct NotAFigure(String);

fn factor_and_column(text: &str) -> Result<(Factor, String), FactorError> {
    let (name, column) = text.split_once('=').unwrap_or((text, text));
    Ok((factor(name)?, column.to_owned()))
}

fn figure_and_column(text: &str) -> Result<(LatencyFigure, String), NotAFigure> {
    let Some((name, column)) = text.split_once('=') else {
        return Ok((LatencyFigure::Mean, text.to_owned()));
    };
    Ok((name.parse().map_err(|_| NotAFigure(name.to_owned()))?, column.to_owned()))
}
