//! Imports as runs in the store: all trials of an import, once.

use std::collections::BTreeSet;
use std::path::Path;

use diagnose::run_statistics;
use jiff::Timestamp;
use model::record::{Imported, Run, Trial};
use model::secret::mask_campaign;
use store::{Store, StoreError};

use crate::import::Import;

/// Request to store an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Name of the run, in place of a campaign's; by default, the first file's name.
    pub name: Option<String>,
    /// Tags of the run.
    pub tags: Vec<String>,
    /// Whether to import files that are in the store already.
    pub again: bool,
}

/// A stored import.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredImport {
    /// Its run.
    pub run: Run,
    /// Whether an interrupted import of the same files was resumed.
    pub is_resumed: bool,
}

/// Error of storing an import.
#[derive(Debug, thiserror::Error)]
pub enum PersistError {
    /// The files are in the store.
    #[error(
        "these files are already in the store{}: run {} ({}), imported{}\n\
         Show it with `pgdyno report --run {}`, or import them again with --again",
        if *.is_same_mapping { "" } else { ", with another mapping" },
        run.id,
        run.campaign,
        at.map(|at| at.strftime(" on %Y-%m-%d").to_string()).unwrap_or_default(),
        run.id
    )]
    AlreadyStored {
        /// The run.
        run: Box<Run>,
        /// Time of the import.
        at: Option<Timestamp>,
        /// Whether they were imported in the same way.
        is_same_mapping: bool,
    },
    /// A trial has a value that no trial can have.
    #[error(
        "{place} can't be imported: {reason}\nCorrect the value; trials before it are in the store, and importing the corrected file starts a new run"
    )]
    Value {
        /// File and line of the trial.
        place: String,
        /// The value, and why not.
        reason: String,
    },
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Import {
    /// Stores the trials. Each is stored completely or not at all; the next import of the same files resumes an
    /// interrupted one.
    ///
    /// # Errors
    /// The files are in the store already, or the store can't be written.
    pub fn persist(&self, store: &Store, request: Request) -> Result<StoredImport, PersistError> {
        let first = self.files.first().map_or("", |file| file.sha256.as_str());
        // No other process imports the same at the same time.
        let _claim = store.claim(&format!("import-{}", first.get(..16).unwrap_or(first)))?;
        // As it is stored.
        let description = mask_campaign(&self.description());
        let trials = store.trials()?;
        let has_same_files =
            |trial: &&Trial| trial.imported.as_ref().is_some_and(|imported| self.has_same_files(imported));
        let earlier: Vec<&Trial> = trials.iter().filter(has_same_files).collect();
        let interrupted = earlier
            .iter()
            .copied()
            .find(|trial| trial.run.campaign_toml == description && !is_complete(&earlier, trial));
        let is_resumed = interrupted.is_some();
        let run = match (interrupted, earlier.last()) {
            (Some(interrupted), _) => interrupted.run.clone(),
            (None, Some(known)) if !request.again => {
                return Err(PersistError::AlreadyStored {
                    run: Box::new(known.run.clone()),
                    at: known.imported.as_ref().map(|imported| imported.at),
                    is_same_mapping: known.run.campaign_toml == description,
                });
            }
            (None, _) => Run {
                id: store::new_id(),
                campaign: request.name.unwrap_or_else(|| self.default_name()),
                campaign_toml: description,
                seed: None,
                processors: None,
                pgdyno_version: model::release::VERSION.to_owned(),
                tags: request.tags,
                notes: None,
            },
        };
        let stored: BTreeSet<u32> =
            earlier.iter().filter(|trial| trial.run.id == run.id).map(|trial| trial.position).collect();
        let at = Timestamp::now();
        for nth in 0..self.drafts.len() {
            if u32::try_from(nth + 1).is_ok_and(|position| stored.contains(&position)) {
                continue;
            }
            let Some(mut record) = self.record(nth, store::new_id(), &run, at) else { continue };
            if let Some(summary) = record.trial.summary.as_mut().filter(|_| !record.intervals.is_empty()) {
                summary.statistics = Some(run_statistics(&record.intervals, store::hlog::window_latencies));
            }
            store.write(&record).map_err(|error| self.not_stored(error, record.trial.imported.as_ref()))?;
        }
        Ok(StoredImport { run, is_resumed })
    }

    /// The error for a trial that was not stored: a value that can't be is the file's, not pgdyno's.
    fn not_stored(&self, error: StoreError, imported: Option<&Imported>) -> PersistError {
        let reason = match &error {
            StoreError::NotWritten { source, .. } => match source.as_ref() {
                StoreError::NotStorable { what } => what.clone(),
                _ => return error.into(),
            },
            _ => return error.into(),
        };
        let file = self.files.first().map_or("the file", |file| file.name.as_str());
        let line = imported.and_then(|imported| imported.line);
        let place = line.map_or(file.to_owned(), |line| format!("{file}, line {line},"));
        PersistError::Value { place, reason }
    }

    /// The first file's name without its extension, in the characters of campaign names.
    fn default_name(&self) -> String {
        let file = self.files.first().map_or(self.format, |file| file.name.as_str());
        let stem = Path::new(file).file_stem().map_or(file.into(), |stem| stem.to_string_lossy());
        stem.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
    }
}

/// Whether all trials of a trial's import are stored.
fn is_complete(earlier: &[&Trial], trial: &Trial) -> bool {
    let stored = earlier.iter().filter(|other| other.run.id == trial.run.id).count();
    trial.imported.as_ref().is_none_or(|imported| stored >= imported.trials as usize)
}
