//! Contexts of many trials, read fast: a few files of each bundle.

use std::collections::HashMap;
use std::sync::Arc;

use model::record::{Setting, TrialRecord};

use crate::content::StoredContext;
use crate::store::Store;
use crate::{StoreError, bundle, id, metrics, series, spans, stacks};

/// Reads the contexts of one trial after the other.
#[derive(Debug)]
pub struct ContextReader<'a> {
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
    /// A reader of the contexts of trials.
    pub fn contexts(&self) -> ContextReader<'_> {
        ContextReader { store: self, settings: HashMap::new() }
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

impl ContextReader<'_> {
    /// The context of the trial with this id.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn read(&mut self, id: &str) -> Result<StoredContext, StoreError> {
        let whole = if id::is_id(id) { id.to_owned() } else { self.store.find(id)? };
        self.store.read_whole_id(&whole, |bundle| bundle::read_context(bundle, &mut self.settings))
    }
}
