//! Tables of figures in which each row is a trial; the user maps columns to factors and figures.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::cell::RecordedCell;
use model::factor::Factor;
use model::record::Latency;
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::error::{BadRow, ImportError};
use crate::file::Source;
use crate::import::{Draft, Import, number_repeats, quoted};
use crate::table::{Column, Row, Table};

/// Meanings of a table's columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    /// Columns that are levels of factors.
    pub factors: BTreeMap<Factor, String>,
    /// Levels common to all rows.
    pub levels: BTreeMap<Factor, String>,
    /// Column of the transactions per second.
    pub tps: String,
    /// Columns of latencies in milliseconds.
    pub latency_ms: BTreeMap<LatencyFigure, String>,
    /// Column of the repeat's number, from 1; without one, rows of a cell are numbered in their order.
    pub repeat: Option<String>,
    /// Column of the trial's start.
    pub started: Option<String>,
}

/// A figure of a latency distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum LatencyFigure {
    /// Arithmetic mean.
    Mean,
    /// Standard deviation.
    Stddev,
    /// Smallest.
    Min,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    #[strum(serialize = "p99.9")]
    P999,
    /// Largest.
    Max,
}

impl LatencyFigure {
    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Its field.
    fn figure_mut(self, latency: &mut Latency) -> &mut Option<f64> {
        match self {
            Self::Mean => &mut latency.mean_us,
            Self::Stddev => &mut latency.stddev_us,
            Self::Min => &mut latency.min_us,
            Self::P50 => &mut latency.p50_us,
            Self::P90 => &mut latency.p90_us,
            Self::P95 => &mut latency.p95_us,
            Self::P99 => &mut latency.p99_us,
            Self::P999 => &mut latency.p999_us,
            Self::Max => &mut latency.max_us,
        }
    }
}

impl Mapping {
    /// The mapping as TOML.
    fn text(&self) -> String {
        let mut text = String::new();
        let mut put = |key: String, value: &str| {
            let _ = writeln!(text, "{key} = {}", quoted(value));
        };
        for (factor, column) in &self.factors {
            put(format!("columns.{}", factor.name()), column);
        }
        put("columns.tps".to_owned(), &self.tps);
        for (figure, column) in &self.latency_ms {
            put(format!("columns.latency_ms.{}", quoted(figure.as_str())), column);
        }
        for (key, column) in [("repeat", &self.repeat), ("started", &self.started)] {
            if let Some(column) = column {
                put(format!("columns.{key}"), column);
            }
        }
        for (factor, level) in &self.levels {
            put(format!("set.{}", factor.name()), level);
        }
        text
    }
}

/// Reads a table.
///
/// # Errors
/// The file can't be read or lacks the columns; a row is not a trial, unless such rows may be skipped (`skip_bad`) and
/// others remain.
pub fn read(source: &Source, mapping: &Mapping, skip_bad: bool) -> Result<Import, ImportError> {
    let table = Table::read(source)?;
    let factors = mapping
        .factors
        .iter()
        .map(|(factor, column)| Ok((*factor, table.column(column)?)))
        .collect::<Result<Vec<(Factor, Column)>, ImportError>>()?;
    let tps = table.column(&mapping.tps)?;
    let column = |name: &Option<String>| name.as_ref().map(|name| table.column(name)).transpose();
    let latencies = mapping
        .latency_ms
        .iter()
        .map(|(figure, column)| Ok((*figure, table.column(column)?)))
        .collect::<Result<Vec<(LatencyFigure, Column)>, ImportError>>()?;
    let repeat = column(&mapping.repeat)?;
    let started = column(&mapping.started)?;
    let common = cell_with(&mapping.levels)?;

    let mut lines: BTreeMap<(RecordedCell, u32), u64> = BTreeMap::new();
    let (mut drafts, skipped) = table.each(skip_bad, |row| {
        let mut cell = common.clone();
        for (factor, column) in &factors {
            cell.set(*factor, row.required(column)?).map_err(|message| row.bad(column, message))?;
        }
        let mut draft = Draft { line: Some(row.line), ..Draft::new(cell, row.tps(&tps)?) };
        let mut latency = Latency::default();
        for (figure, column) in &latencies {
            *figure.figure_mut(&mut latency) = row.number(column)?.map(|ms| ms * 1e3);
        }
        draft.summary.latency = (latency != Latency::default()).then_some(latency);
        draft.started = started.as_ref().map(|column| row.time(column)).transpose()?.flatten();
        if let Some(column) = &repeat {
            draft.repeat = repeat_of(row, column)?;
            if let Some(line) = lines.insert((draft.cell.clone(), draft.repeat), row.line) {
                let message = format!(
                    "line {line} is repeat {} of the same cell: map the column in which they differ to a \
                     factor, or leave out --repeat to number the rows",
                    draft.repeat
                );
                return Err(row.bad(column, message));
            }
        }
        Ok(draft)
    })?;
    if repeat.is_none() {
        number_repeats(&mut drafts);
    }
    let mut mapping = mapping.text();
    if !skipped.is_empty() {
        mapping += "skip_bad = true\n";
    }
    let (unused, file) = (table.unused(), table.file);
    Ok(Import { format: "csv", files: vec![file], mapping, drafts, skipped, unused })
}

/// A cell with these levels, and all others unknown.
pub(crate) fn cell_with(levels: &BTreeMap<Factor, String>) -> Result<RecordedCell, ImportError> {
    let mut cell = RecordedCell::default();
    for (factor, level) in levels {
        cell.set(*factor, level).map_err(ImportError::Level)?;
    }
    Ok(cell)
}

fn repeat_of(row: &Row, column: &Column) -> Result<u32, BadRow> {
    let text = row.required(column)?;
    match text.parse() {
        Ok(repeat) if repeat > 0 => Ok(repeat),
        _ => Err(row.bad(column, format!("`{text}` is not a repeat number: expected 1, 2, 3, …"))),
    }
}
