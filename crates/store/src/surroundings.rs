//! What surrounded many trials, read fast: of a bundle that is, a few files of many.

use std::collections::HashMap;
use std::sync::Arc;

use model::record::{Setting, TrialRecord};

use crate::content::Surroundings;
use crate::store::Store;
use crate::{StoreError, bundle, id, metrics, series, spans, stacks};

/// Reads the surroundings of one trial after the other.
#[derive(Debug)]
pub struct SurroundingsReader<'a> {
    store: &'a Store,
    settings: HashMap<String, Arc<Vec<Setting>>>,
}

/// A part of a bundle that is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Throughput by interval, without its histograms.
    Series,
    /// Transactions one by one.
    Spans,
    /// What collectors read.
    Metrics,
    /// Profiles.
    Stacks,
}

impl Part {
    fn has(self, file: &str) -> bool {
        match self {
            Self::Series => file == series::FILE,
            Self::Spans => file == spans::FILE,
            Self::Metrics => file == metrics::FILE,
            Self::Stacks => file.starts_with(stacks::STACKS) || file.starts_with(stacks::OFF_CPU),
        }
    }
}

impl Store {
    /// Reads what surrounded trials.
    pub fn surroundings(&self) -> SurroundingsReader<'_> {
        SurroundingsReader { store: self, settings: HashMap::new() }
    }

    /// As [`Store::load`], with no more of the large parts than these, and without settings, events and logs: what is not
    /// asked for is empty.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn load_parts(&self, prefix: &str, parts: &[Part]) -> Result<TrialRecord, StoreError> {
        self.read(prefix, |bundle| bundle::read_parts(bundle, |file| parts.iter().any(|part| part.has(file))))
    }
}

impl SurroundingsReader<'_> {
    /// Those of the trial with this id.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn of(&mut self, id: &str) -> Result<Surroundings, StoreError> {
        let whole = if id::is_id(id) { id.to_owned() } else { self.store.find(id)? };
        self.store.read_whole_id(&whole, |bundle| bundle::read_surroundings(bundle, &mut self.settings))
    }
}
