//! Cache of data read from the store. Bundles never change, so that none is read twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use model::acceptance::Acceptance;
use model::record::{Status, Trial};
use serde::Serialize;
use store::format::live::Line;
use store::{Store, StoreError};

use analysis::context::{contexts, read_kernel_options};
use analysis::history::run_histories;
use analysis::trial::{Points, detail};
use analysis::{context::TrialContext, overview};

use super::response::{Document, ErrorResponse};
use crate::history;
use crate::json::json;

/// Cached runs and trials; the least recently requested one is evicted.
const MAX_RUNS: usize = 8;
const MAX_TRIALS: usize = 8;

/// Most new heads that are read one by one; more are read from the index.
const MAX_SINGLE_READS: usize = 16;

/// The store, and the data read from it.
pub(crate) struct ReportCache {
    store: Store,
    heads: Mutex<Heads>,
    runs: Mutex<Recent<CachedRun>>,
    details: Mutex<Recent<Option<Document>>>,
}

/// The heads of all trials that can be read, oldest first.
pub(crate) type Trials = Arc<Vec<Arc<Trial>>>;

#[derive(Default)]
struct Heads {
    ids: Vec<String>,
    trials: Trials,
}

/// The most recently requested entries, by id. A request for one that is being read waits for it; others do not.
struct Recent<T> {
    capacity: usize,
    requests: u64,
    /// Entries, each with the number of its last request.
    entries: BTreeMap<String, (u64, Arc<Mutex<T>>)>,
}

/// Cached data of a run.
#[derive(Default)]
struct CachedRun {
    ids: Vec<String>,
    contexts: BTreeMap<String, TrialContext>,
    view: Option<Document>,
    histories: Option<(Trials, Vec<Acceptance>, Document)>,
}

/// A run in the list of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunHead {
    pub(crate) id: String,
    pub(crate) campaign: String,
    pub(crate) tags: Vec<String>,
    pub(crate) imported: bool,
    /// Start of its first trial.
    pub(crate) started: Option<Timestamp>,
    /// End of its last trial.
    pub(crate) ended: Option<Timestamp>,
    pub(crate) valid: usize,
    pub(crate) suspect: usize,
    pub(crate) invalid: usize,
    /// Whether a pgdyno is running it now.
    pub(crate) running: bool,
}

impl ReportCache {
    pub(crate) fn new(store: Store) -> Self {
        let (runs, details) = (Mutex::new(Recent::new(MAX_RUNS)), Mutex::new(Recent::new(MAX_TRIALS)));
        Self { store, heads: Mutex::default(), runs, details }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The heads of all trials that can be read, oldest first.
    pub(crate) fn trials(&self) -> Result<Trials, StoreError> {
        let mut heads = lock(&self.heads);
        let ids = self.store.ids()?;
        if ids == heads.ids {
            return Ok(Arc::clone(&heads.trials));
        }
        let mut known: BTreeMap<&str, &Arc<Trial>> =
            heads.trials.iter().map(|trial| (trial.id.as_str(), trial)).collect();
        known.retain(|id, _| ids.binary_search_by(|other| other.as_str().cmp(id)).is_ok());
        let trials = if ids.len() - known.len() > MAX_SINGLE_READS {
            self.store.trials()?.into_iter().map(Arc::new).collect()
        } else {
            // A head that can't be read is left out, as in every list.
            let head = |id: &String| match known.get(id.as_str()) {
                Some(trial) => Some(Arc::clone(trial)),
                None => self.store.head(id).ok().map(Arc::new),
            };
            ids.iter().filter_map(head).collect()
        };
        *heads = Heads { ids, trials: Arc::new(trials) };
        Ok(Arc::clone(&heads.trials))
    }

    /// Every run with a trial, and running ones; oldest first.
    pub(crate) fn runs(&self) -> Result<Vec<RunHead>, StoreError> {
        let mut runs: BTreeMap<String, RunHead> = BTreeMap::new();
        for trial in self.trials()?.iter() {
            let run = runs.entry(trial.run.id.clone()).or_insert_with(|| RunHead {
                id: trial.run.id.clone(),
                campaign: trial.run.campaign.clone(),
                tags: trial.run.tags.clone(),
                imported: trial.imported.is_some(),
                started: None,
                ended: None,
                valid: 0,
                suspect: 0,
                invalid: 0,
                running: false,
            });
            run.started = run.started.into_iter().chain(trial.started).min();
            run.ended = run.ended.into_iter().chain(trial.ended).max();
            *match trial.validity.status {
                Status::Valid => &mut run.valid,
                Status::Suspect => &mut run.suspect,
                Status::Invalid => &mut run.invalid,
            } += 1;
        }
        for id in self.store.running() {
            match runs.get_mut(&id) {
                Some(run) => run.running = true,
                None => runs.extend(self.live_head(&id).map(|run| (id, run))),
            }
        }
        Ok(runs.into_values().collect())
    }

    /// A run that has no trial yet, from its live file.
    fn live_head(&self, id: &str) -> Option<RunHead> {
        let update = self.store.open_live(id).ok()?.poll().ok()?;
        let Some(Line::Run(head)) = update.lines.into_iter().next() else { return None };
        Some(RunHead {
            id: id.to_owned(),
            campaign: head.campaign,
            tags: Vec::new(),
            imported: false,
            started: Some(head.begun),
            ended: None,
            valid: 0,
            suspect: 0,
            invalid: 0,
            running: update.alive,
        })
    }

    /// The view of a run; none if it has no trial.
    pub(crate) fn view(&self, run: &str) -> Result<Option<Document>, StoreError> {
        let trials = self.trials()?;
        let of_run: Vec<&Arc<Trial>> = trials.iter().filter(|trial| trial.run.id == run).collect();
        if of_run.is_empty() {
            return Ok(None);
        }
        let cached = lock(&self.runs).get(run);
        let cached = &mut *lock(&cached);
        let ids = || of_run.iter().map(|trial| &trial.id);
        if let Some(view) = cached.view.as_ref().filter(|_| ids().eq(&cached.ids)) {
            return Ok(Some(view.clone()));
        }
        let present: BTreeSet<&String> = ids().collect();
        cached.contexts.retain(|id, _| present.contains(id));
        let unknown: Vec<&Trial> = of_run
            .iter()
            .map(|trial| &***trial)
            .filter(|trial| !cached.contexts.contains_key(&trial.id))
            .collect();
        cached.contexts.extend(contexts(&self.store, &unknown)?);
        read_kernel_options(&self.store, &mut cached.contexts)?;
        let trials: Vec<Trial> = of_run.iter().map(|trial| (***trial).clone()).collect();
        let view = Document::new(json(&overview(&trials, &cached.contexts)));
        cached.ids = trials.into_iter().map(|trial| trial.id).collect();
        Ok(Some(cached.view.insert(view).clone()))
    }

    /// The histories of a run; none if it has no trial.
    pub(crate) fn histories(&self, run: &str) -> Result<Option<Document>, ErrorResponse> {
        let trials = self.trials()?;
        if !trials.iter().any(|trial| trial.run.id == run) {
            return Ok(None);
        }
        let accepted = self.store.acceptances()?;
        let cached = lock(&self.runs).get(run);
        let cached = &mut *lock(&cached);
        if let Some((of, by, histories)) = &cached.histories
            && Arc::ptr_eq(of, &trials)
            && *by == accepted
        {
            return Ok(Some(histories.clone()));
        }
        let found = run_histories(&self.store, &trials, run)?;
        let documents: Vec<_> = found.iter().map(history::Document::new).collect();
        let histories = Document::new(json(&documents));
        cached.histories = Some((trials, accepted, histories.clone()));
        Ok(Some(histories))
    }

    /// A trial in all its detail.
    pub(crate) fn detail(&self, trial: &str) -> Result<Document, StoreError> {
        let cached = lock(&self.details).get(trial);
        let mut cached = lock(&cached);
        match &*cached {
            Some(detail) => Ok(detail.clone()),
            None => {
                let record = self.store.load(trial)?;
                Ok(cached.insert(Document::new(json(&detail(&record, Points::All)))).clone())
            }
        }
    }
}

impl<T: Default> Recent<T> {
    fn new(capacity: usize) -> Self {
        Self { capacity, requests: 0, entries: BTreeMap::new() }
    }

    fn get(&mut self, id: &str) -> Arc<Mutex<T>> {
        self.requests += 1;
        let (requests, cached) = self.entries.entry(id.to_owned()).or_default();
        *requests = self.requests;
        let cached = Arc::clone(cached);
        if self.entries.len() > self.capacity {
            let oldest =
                self.entries.iter().min_by_key(|(_, (requests, _))| *requests).map(|(id, _)| id.clone());
            oldest.map(|id| self.entries.remove(&id));
        }
        cached
    }
}

/// Locks a mutex. Cached data are consistent after each step, even if another thread panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
