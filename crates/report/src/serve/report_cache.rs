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
use analysis::history::histories_of_run;
use analysis::trial::{Points, detail};
use analysis::{context::TrialContext, overview};

use super::answer::{Document, Refusal};
use crate::history;
use crate::json::json;

/// Cached runs and trials; the least recently requested one is evicted.
const RUNS: usize = 8;
const TRIALS: usize = 8;

/// Most new heads that are read one by one; more are read from the index.
const FEW: usize = 16;

/// The store, and the data read from it.
pub(crate) struct ReportCache {
    store: Store,
    heads: Mutex<Heads>,
    runs: Mutex<Recent<Kept>>,
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
    most: usize,
    asked: u64,
    /// Entries, each with the number of its last request.
    kept: BTreeMap<String, (u64, Arc<Mutex<T>>)>,
}

/// Cached data of a run.
#[derive(Default)]
struct Kept {
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
        let (runs, details) = (Mutex::new(Recent::new(RUNS)), Mutex::new(Recent::new(TRIALS)));
        Self { store, heads: Mutex::default(), runs, details }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The heads of all trials that can be read, oldest first.
    pub(crate) fn trials(&self) -> Result<Trials, StoreError> {
        let mut heads = held(&self.heads);
        let ids = self.store.ids()?;
        if ids == heads.ids {
            return Ok(Arc::clone(&heads.trials));
        }
        let mut known: BTreeMap<&str, &Arc<Trial>> =
            heads.trials.iter().map(|trial| (trial.id.as_str(), trial)).collect();
        known.retain(|id, _| ids.binary_search_by(|other| other.as_str().cmp(id)).is_ok());
        let trials = if ids.len() - known.len() > FEW {
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
                None => runs.extend(self.begun(&id).map(|run| (id, run))),
            }
        }
        Ok(runs.into_values().collect())
    }

    /// A run that has no trial yet, from its live file.
    fn begun(&self, id: &str) -> Option<RunHead> {
        let news = self.store.open_live(id).ok()?.news().ok()?;
        let Some(Line::Run(head)) = news.lines.into_iter().next() else { return None };
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
            running: news.alive,
        })
    }

    /// The view of a run; none if it has no trial.
    pub(crate) fn view(&self, run: &str) -> Result<Option<Document>, StoreError> {
        let trials = self.trials()?;
        let of_run: Vec<&Arc<Trial>> = trials.iter().filter(|trial| trial.run.id == run).collect();
        if of_run.is_empty() {
            return Ok(None);
        }
        let kept = held(&self.runs).get(run);
        let kept = &mut *held(&kept);
        let ids = || of_run.iter().map(|trial| &trial.id);
        if let Some(view) = kept.view.as_ref().filter(|_| ids().eq(&kept.ids)) {
            return Ok(Some(view.clone()));
        }
        let there: BTreeSet<&String> = ids().collect();
        kept.contexts.retain(|id, _| there.contains(id));
        let unknown: Vec<&Trial> = of_run
            .iter()
            .map(|trial| &***trial)
            .filter(|trial| !kept.contexts.contains_key(&trial.id))
            .collect();
        kept.contexts.extend(contexts(&self.store, &unknown)?);
        read_kernel_options(&self.store, &mut kept.contexts)?;
        let trials: Vec<Trial> = of_run.iter().map(|trial| (***trial).clone()).collect();
        let view = Document::new(json(&overview(&trials, &kept.contexts)));
        kept.ids = trials.into_iter().map(|trial| trial.id).collect();
        Ok(Some(kept.view.insert(view).clone()))
    }

    /// The histories of a run; none if it has no trial.
    pub(crate) fn histories(&self, run: &str) -> Result<Option<Document>, Refusal> {
        let trials = self.trials()?;
        if !trials.iter().any(|trial| trial.run.id == run) {
            return Ok(None);
        }
        let accepted = self.store.acceptances()?;
        let kept = held(&self.runs).get(run);
        let kept = &mut *held(&kept);
        if let Some((of, by, histories)) = &kept.histories
            && Arc::ptr_eq(of, &trials)
            && *by == accepted
        {
            return Ok(Some(histories.clone()));
        }
        let found = histories_of_run(&self.store, run)?;
        let documents: Vec<_> = found.iter().map(history::Document::new).collect();
        let histories = Document::new(json(&documents));
        kept.histories = Some((trials, accepted, histories.clone()));
        Ok(Some(histories))
    }

    /// A trial in all its detail.
    pub(crate) fn detail(&self, trial: &str) -> Result<Document, StoreError> {
        let kept = held(&self.details).get(trial);
        let mut kept = held(&kept);
        match &*kept {
            Some(detail) => Ok(detail.clone()),
            None => {
                let record = self.store.load(trial)?;
                Ok(kept.insert(Document::new(json(&detail(&record, Points::All)))).clone())
            }
        }
    }
}

impl<T: Default> Recent<T> {
    fn new(most: usize) -> Self {
        Self { most, asked: 0, kept: BTreeMap::new() }
    }

    fn get(&mut self, id: &str) -> Arc<Mutex<T>> {
        self.asked += 1;
        let (asked, kept) = self.kept.entry(id.to_owned()).or_default();
        *asked = self.asked;
        let kept = Arc::clone(kept);
        if self.kept.len() > self.most {
            let oldest = self.kept.iter().min_by_key(|(_, (asked, _))| *asked).map(|(id, _)| id.clone());
            oldest.map(|id| self.kept.remove(&id));
        }
        kept
    }
}

/// Locks a mutex. Cached data are consistent after each step, even if another thread panicked.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
