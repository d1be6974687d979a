//! Results of reading files: drafts of trials, and the records made from them.

use std::fmt::Write as _;

use jiff::Timestamp;
use model::cell::RecordedCell;
use model::message::Interval;
use model::metrics::Metrics;
use model::record::{Finding, Imported, ImportedFile, Run, Status, Summary, Trial, TrialRecord, Validity};

use crate::error::BadRow;

/// Contents of some files, all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// Format of the files: `pgbench`, `csv`, `pgbench-tools`.
    pub format: &'static str,
    /// The files, the one with the rows first.
    pub files: Vec<ImportedFile>,
    /// The mapping, as TOML: with the files' hashes, it identifies the import.
    pub mapping: String,
    /// The trials, in the order of the files.
    pub drafts: Vec<Draft>,
    /// Rows that were skipped.
    pub skipped: Vec<BadRow>,
    /// Columns that pgdyno does not use.
    pub unused: Vec<String>,
}

/// A trial as far as the files describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Line at which its row starts, from 1; none if the files contain one trial.
    pub line: Option<u64>,
    /// The known levels.
    pub cell: RecordedCell,
    /// Number of the repeat of the cell, from 1.
    pub repeat: u32,
    /// Its start.
    pub started: Option<Timestamp>,
    /// Start of its load.
    pub load_started: Option<Timestamp>,
    /// Its end.
    pub ended: Option<Timestamp>,
    /// The server's full version.
    pub server_version: Option<String>,
    /// `version()` of the server.
    pub server_banner: Option<String>,
    /// Size of the tested database, in bytes.
    pub database_bytes: Option<u64>,
    /// Results of the load.
    pub summary: Summary,
    /// Results of each second, or of each interval in the files.
    pub intervals: Vec<Interval>,
    /// Figures of each interval that have no field there.
    pub metrics: Metrics,
    /// Notes on how it was read.
    pub notes: Vec<String>,
}

impl Draft {
    /// A trial with a known throughput.
    pub(crate) fn new(cell: RecordedCell, tps: f64) -> Self {
        Self {
            line: None,
            cell,
            repeat: 1,
            started: None,
            load_started: None,
            ended: None,
            server_version: None,
            server_banner: None,
            database_bytes: None,
            summary: Summary {
                instructions_per_transaction: None,
                window_us: None,
                transactions: None,
                failed: None,
                tps,
                latency: None,
                service: None,
                worst_second_tps: None,
                longest_stall_us: None,
                background: Vec::new(),
                connect_us: None,
                driver_cpu_us: None,
                driver_busy_max: None,
                driver_lag_max_us: None,
                driver_engine: None,
                driver_engine_reason: None,
                statistics: None,
            },
            intervals: Vec::new(),
            metrics: Metrics::default(),
            notes: Vec::new(),
        }
    }
}

/// The gate that marks a trial as imported.
const GATE: &str = "imported";

impl Import {
    /// Replacement for a campaign's text: identifies the files' content and how it was read. Imports with the same
    /// description are the same.
    pub fn description(&self) -> String {
        let sums: Vec<String> = self.files.iter().map(|file| format!("\"{}\"", file.sha256)).collect();
        let mut text =
            "# This run was imported: there is no campaign that could be run again.\n[import]\n".to_owned();
        let _ =
            write!(text, "format = \"{}\"\nsha256 = [{}]\n{}", self.format, sums.join(", "), self.mapping);
        text
    }

    /// Whether a trial was imported from the same content, regardless of how it was read.
    pub fn has_same_files(&self, imported: &Imported) -> bool {
        let sums = |files: &[ImportedFile]| {
            let mut sums: Vec<String> = files.iter().map(|file| file.sha256.clone()).collect();
            sums.sort_unstable();
            sums
        };
        sums(&self.files) == sums(&imported.files)
    }

    /// The record of the nth trial, from 0, with an id, as part of a run; none if there is no such trial.
    pub fn record(&self, nth: usize, id: String, run: &Run, at: Timestamp) -> Option<TrialRecord> {
        let draft = self.drafts.get(nth)?.clone();
        let imported = Imported {
            format: self.format.to_owned(),
            files: self.files.clone(),
            line: draft.line,
            at,
            trials: u32::try_from(self.drafts.len()).ok()?,
        };
        let trial = Trial {
            repeat: draft.repeat,
            position: u32::try_from(nth + 1).ok()?,
            started: draft.started,
            load_started: draft.load_started,
            ended: draft.ended,
            server_version: draft.server_version,
            server_banner: draft.server_banner,
            database_bytes: draft.database_bytes,
            validity: validity(&imported, draft.notes),
            summary: Some(draft.summary),
            imported: Some(imported),
            ..Trial::new(id, run.clone(), draft.cell)
        };
        Some(TrialRecord { intervals: draft.intervals, metrics: draft.metrics, ..TrialRecord::new(trial) })
    }
}

/// Imported trials may be used: there are no data that could invalidate them.
fn validity(imported: &Imported, notes: Vec<String>) -> Validity {
    let file = imported.files.first().map_or("a file", |file| file.name.as_str());
    let known = format!("imported from {file}: only its figures are known");
    let finding = |evidence| Finding {
        gate: GATE.to_owned(),
        status: Status::Valid,
        evidence,
        threshold: None,
        advice: None,
        processes: Vec::new(),
    };
    Validity { status: Status::Valid, findings: std::iter::once(known).chain(notes).map(finding).collect() }
}

/// Numbers the repeats of each cell in the order of the rows, except those with a number of their own.
pub(crate) fn number_repeats(drafts: &mut [Draft]) {
    let mut counts: std::collections::BTreeMap<RecordedCell, u32> = std::collections::BTreeMap::new();
    for draft in drafts {
        let repeats = counts.entry(draft.cell.clone()).or_default();
        *repeats += 1;
        draft.repeat = *repeats;
    }
}

/// Quotes a text for TOML.
pub(crate) fn quoted(text: &str) -> String {
    text.chars().fold(String::from("\""), |mut out, c| {
        match c {
            '"' | '\\' => {
                let _ = write!(out, "\\{c}");
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
        out
    }) + "\""
}
