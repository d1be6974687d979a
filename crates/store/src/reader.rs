//! Reading a store for one result, such as a comparison: a bundle that can't be read is left out, and the reason is
//! remembered for whoever gets the result.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use model::record::{Environment, Log, Setting, Trial, TrialRecord};
use model::secret::MaskSecrets;

use crate::bundle;
use crate::content::StoredContext;
use crate::error::{Defect, Problem, StoreError};
use crate::index::Listing;
use crate::parts::Part;
use crate::store::Store;

/// The trials of a store, for one result. Methods that return `None` have left the trial out; its problem is among
/// [`StoreReader::left_out`] from then on.
#[derive(Debug)]
pub struct StoreReader {
    store: Store,
    trials: Vec<Trial>,
    left_out: RefCell<BTreeMap<String, Problem>>,
    /// Settings by checksum: most trials of a run have the same.
    settings: RefCell<HashMap<String, Arc<Vec<Setting>>>>,
}

impl Store {
    /// A reader of the trials that are in the store now.
    ///
    /// # Errors
    /// The directory of trials can't be listed, or there are bundles and none can be read.
    pub fn reader(&self) -> Result<StoreReader, StoreError> {
        let listing = self.list()?;
        if listing.trials.is_empty() && !listing.rejected.is_empty() {
            return Err(StoreError::NoneReadable {
                path: self.root().to_owned(),
                problems: listing.rejected,
            });
        }
        Ok(StoreReader::new(self.clone(), listing))
    }
}

impl StoreReader {
    /// A reader of these trials; rejected bundles are left out from the beginning.
    pub fn new(store: Store, listing: Listing) -> Self {
        let Listing { trials, rejected } = listing;
        let left_out = rejected.into_iter().filter_map(|problem| Some((problem.bundle.clone()?, problem)));
        Self { store, trials, left_out: RefCell::new(left_out.collect()), settings: RefCell::default() }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The heads of all trials that could be read, oldest first, including those left out since.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Finds the trial whose id is `prefix`, or the only one whose id begins with it; case is ignored.
    ///
    /// # Errors
    /// There is none or more than one, or its head can't be read.
    pub fn find(&self, prefix: &str) -> Result<&Trial, StoreError> {
        let wanted = prefix.to_ascii_uppercase();
        let mut fitting = self.trials.iter().filter(|trial| trial.id.starts_with(&wanted));
        match (fitting.next(), fitting.next()) {
            (Some(trial), None) => Ok(trial),
            // The store reports the problem: none, several, or one that can't be read.
            _ => {
                let id = self.store.find(prefix)?;
                self.trials.iter().find(|trial| trial.id == id).ok_or_else(|| self.error(&id))
            }
        }
    }

    /// One problem for each bundle that was left out, by id.
    pub fn left_out(&self) -> Vec<Problem> {
        self.left_out.borrow().values().cloned().collect()
    }

    /// Whether a trial was left out.
    pub fn is_left_out(&self, id: &str) -> bool {
        self.left_out.borrow().contains_key(id)
    }

    /// The error for a result of which nothing is left without this trial.
    pub fn error(&self, id: &str) -> StoreError {
        let problem = self.left_out.borrow().get(id).cloned();
        StoreError::Unreadable(Box::new(problem.unwrap_or_else(|| Problem {
            bundle: Some(id.to_owned()),
            file: None,
            reason: "it was stored after the store had been listed".to_owned(),
            advice: "repeat the command".to_owned(),
        })))
    }

    /// Reads a whole trial.
    pub fn load(&self, id: &str) -> Option<TrialRecord> {
        self.read(id, bundle::read)
    }

    /// Reads only the head, the environment and these parts of a trial; everything else is empty.
    pub fn load_parts(&self, id: &str, parts: &[Part]) -> Option<TrialRecord> {
        self.read(id, |bundle| bundle::read_parts(bundle, parts))
    }

    /// Reads only the environment of a trial.
    pub fn environment(&self, id: &str) -> Option<Environment> {
        self.read(id, bundle::read_environment)
    }

    /// Reads only the environment and the settings of a trial, and its logs about commits.
    pub fn context(&self, id: &str) -> Option<StoredContext> {
        self.read(id, |bundle| bundle::read_context(bundle, &mut self.settings.borrow_mut()))
    }

    /// Reads only one log of a trial; the inner `None` if it has no such log.
    pub fn log(&self, id: &str, name: &str) -> Option<Option<String>> {
        let log = self.read(id, |bundle| {
            Ok(bundle::read_log(bundle, name)?.map(|text| Log { name: name.to_owned(), text }))
        })?;
        Some(log.map(|log| log.text))
    }

    fn read<T: MaskSecrets>(&self, id: &str, what: impl FnOnce(&Path) -> Result<T, Defect>) -> Option<T> {
        let defect = match self.store.read_bundle(id, what) {
            Ok(read) => return Some(read),
            Err(defect) => defect,
        };
        self.left_out.borrow_mut().entry(id.to_owned()).or_insert_with(|| defect.in_bundle(id));
        None
    }
}
