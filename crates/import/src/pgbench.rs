//! Results of pgbench: its output at the end of a run, its progress reports, and its logs.
//!
//! Source: PostgreSQL manual, pgbench, of 9.0 to 18, and the programs' own output.

mod aggregate;
mod log;
mod output;
mod progress;
mod series;

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::factor::Factor;
use model::record::ImportedFile;

use crate::csv::cell_with;
use crate::error::{ImportError, PgbenchError};
use crate::file::Source;
use crate::import::{Draft, Import, number_repeats, quoted};
use log::Log;
use output::Output;

/// The files of one run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its output, which may include the progress reports.
    pub output: Option<Source>,
    /// The progress reports (`-P`, on standard error).
    pub progress: Option<Source>,
    /// The logs of all threads (`-l`, with or without `--aggregate-interval`).
    pub logs: Vec<Source>,
}

/// Reads runs, each of which becomes a trial; `levels` are common to all and not reported by pgbench.
///
/// # Errors
/// A file can't be read, is not what it should be, or the files of a run lack its throughput.
pub fn read(runs: &[Run], levels: &BTreeMap<Factor, String>) -> Result<Import, ImportError> {
    let (mut drafts, mut files) = (Vec::new(), Vec::new());
    for run in runs {
        drafts.push(draft(run, levels, &mut files)?);
    }
    number_repeats(&mut drafts);
    let mapping = levels.iter().fold(String::new(), |text, (factor, level)| {
        text + &format!("set.{} = {}\n", factor.name(), quoted(level))
    });
    Ok(Import { format: "pgbench", files, mapping, drafts, skipped: Vec::new(), unused: Vec::new() })
}

fn draft(
    run: &Run,
    levels: &BTreeMap<Factor, String>,
    files: &mut Vec<ImportedFile>,
) -> Result<Draft, ImportError> {
    let mut reports = Vec::new();
    let mut printed = None;
    if let Some(source) = &run.output {
        let (text, file) = source.text()?;
        reports.extend(progress::read(&text));
        let failed = |error| ImportError::Pgbench { file: source.shown(), source: error };
        printed = Some(Output::read(&text).map_err(failed)?);
        files.push(file);
    }
    if let Some(source) = &run.progress {
        let (text, file) = source.text()?;
        reports = progress::read(&text);
        if reports.is_empty() {
            return Err(ImportError::Pgbench { file: source.shown(), source: PgbenchError::NoProgress });
        }
        files.push(file);
    }
    let log = Log::read(&run.logs, files)?;
    let mut draft = draft_with_throughput(printed.as_ref(), &log, run)?;
    if let Some(printed) = &printed {
        printed.add_to(&mut draft);
    }
    for (factor, level) in levels {
        draft.cell.set(*factor, level).map_err(ImportError::Level)?;
    }
    let names = printed.as_ref().map(|printed| printed.scripts.clone()).unwrap_or_default();
    let workload = Factor::Workload.known_level(&draft.cell);
    let script = |number: u32| match (names.get(number as usize), &workload) {
        (Some(name), _) => name.clone(),
        (None, Some(workload)) if number == 0 && names.is_empty() => workload.clone(),
        _ => format!("script {}", number + 1),
    };
    match &log {
        Log::None => progress::add_to(&reports, &script(0), &mut draft),
        Log::Transactions(log) => log.add_to(script, &mut draft).map_err(|error| invalid_run(run, error))?,
        Log::Aggregated(log) => {
            log.add_to(&script(0), &mut draft).map_err(|error| invalid_run(run, error))?
        }
    }
    Ok(draft)
}

/// A draft with the throughput that pgbench printed, or else with that of the log.
fn draft_with_throughput(printed: Option<&Output>, log: &Log, run: &Run) -> Result<Draft, ImportError> {
    let cell = cell_with(&BTreeMap::new())?;
    if let Some(printed) = printed {
        return Ok(Draft::new(cell, printed.tps));
    }
    let (transactions, span_us) =
        log.count_and_span().ok_or_else(|| invalid_run(run, PgbenchError::NothingMeasured))?;
    if transactions == 0 || span_us == 0 {
        return Err(invalid_run(run, PgbenchError::NoSuccess));
    }
    let mut draft = Draft::new(cell, transactions as f64 / span_us as f64 * 1e6);
    draft.summary.transactions = Some(transactions);
    draft.summary.window_us = Some(span_us);
    draft.notes.push("throughput is that of the log, from its first to its last transaction".to_owned());
    Ok(draft)
}

fn invalid_run(run: &Run, source: PgbenchError) -> ImportError {
    let first = run.logs.first().or(run.progress.as_ref());
    ImportError::Pgbench { file: first.map_or_else(|| "the run".to_owned(), Source::shown), source }
}

/// A time in microseconds since the Unix epoch.
fn timestamp(unix_us: i64) -> Option<Timestamp> {
    Timestamp::from_microsecond(unix_us).ok()
}
