//! Contexts of many trials, read quickly: a few files of each bundle.

use std::collections::HashMap;
use std::sync::Arc;

use model::record::{Setting, TrialRecord};

use crate::content::StoredContext;
use crate::store::Store;
use crate::{StoreError, bundle, id, metrics, series, spans, stacks};

/// Reads the contexts of trials one after another.
#[derive(Debug)]
pub struct ContextReader<'a> {
    store: &'a Store,
    settings: HashMap<String, Arc<Vec<Setting>>>,
}

/// A large part of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Throughput per interval, without histograms.
    Series,
    /// Start and end of each transaction.
    Spans,
    /// Readings of the collectors.
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

    /// As [`Store::load`], with only the head, the environment and these parts; everything else is empty.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn load_parts(&self, prefix: &str, parts: &[Part]) -> Result<TrialRecord, StoreError> {
        self.read(prefix, |bundle| bundle::read_parts(bundle, |file| parts.iter().any(|part| part.has(file))))
    }
}

impl ContextReader<'_> {
    /// Reads the context of the trial with this id.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn read(&mut self, id: &str) -> Result<StoredContext, StoreError> {
        let whole = if id::is_id(id) { id.to_owned() } else { self.store.find(id)? };
        self.store.read_exact(&whole, |bundle| bundle::read_context(bundle, &mut self.settings))
    }
}
