//! Cache of data read from the store. Bundles never change, so that none is read twice; few requests read at once, and
//! those for the same thing share what one of them reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use model::acceptance::Acceptance;
use model::record::{Status, Trial};
use serde::Serialize;
use store::format::live::Line;
use store::{Listing, Problem, Stamp, Store, StoreError, StoreReader};
use tokio::sync::Semaphore;

use analysis::context::TrialContext;
use analysis::history::run_histories;
use analysis::overview::read_trials;
use analysis::trial::{Points, detail};

use super::recent::Recent;
use super::response::{Document, ErrorResponse};
use crate::history;
use crate::json::json;

/// Cached runs and trials; the least recently requested one is evicted.
const MAX_RUNS: usize = 8;
const MAX_TRIALS: usize = 8;

/// Most new heads that are read one by one; more are read from the index.
const MAX_SINGLE_READS: usize = 16;

/// Computations at a time; other requests wait. Each takes a CPU, and the memory for what it reads.
const MAX_COMPUTATIONS: usize = 2;

/// The store, and the data read from it.
pub(crate) struct ReportCache {
    store: Store,
    computations: Arc<Semaphore>,
    heads: Mutex<Heads>,
    views: Recent<CachedView>,
    histories: Recent<CachedHistories>,
    details: Recent<Option<Document>>,
}

/// The heads of all trials that can be read, oldest first.
pub(crate) type Trials = Arc<Vec<Arc<Trial>>>;

#[derive(Default)]
struct Heads {
    /// Stamp of the store when they were read, if any later change results in another one.
    stamp: Option<Stamp>,
    ids: Vec<String>,
    trials: Trials,
    /// Bundles whose heads can't be read.
    rejected: Vec<Problem>,
}

/// Cached view of a run.
#[derive(Default)]
struct CachedView {
    ids: Vec<String>,
    contexts: BTreeMap<String, TrialContext>,
    /// The view, unless bundles were left out of it: they may be repaired.
    view: Option<Document>,
}

/// Cached histories of a run, and all that they depend on.
#[derive(Default)]
struct CachedHistories {
    trials: Trials,
    accepted: Vec<Acceptance>,
    /// Likewise.
    histories: Option<Document>,
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
        Self {
            store,
            computations: Arc::new(Semaphore::new(MAX_COMPUTATIONS)),
            heads: Mutex::default(),
            views: Recent::new(MAX_RUNS),
            histories: Recent::new(MAX_RUNS),
            details: Recent::new(MAX_TRIALS),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The heads of all trials that can be read, oldest first.
    pub(crate) fn trials(&self) -> Result<Trials, StoreError> {
        Ok(self.heads()?.0)
    }

    /// The heads of all trials that can be read, oldest first, and the bundles that can't.
    fn heads(&self) -> Result<(Trials, Vec<Problem>), StoreError> {
        // Heads are consistent after each step, even if another thread panicked.
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        // Bundles may be repaired, which changes neither the stamp nor the ids.
        let is_retried = (1..=MAX_SINGLE_READS).contains(&heads.rejected.len());
        let stamp = self.store.stamp().filter(Stamp::is_settled);
        if stamp.is_some() && stamp == heads.stamp && !is_retried {
            return Ok((Arc::clone(&heads.trials), heads.rejected.clone()));
        }
        let ids = self.store.ids()?;
        if ids == heads.ids && !is_retried {
            heads.stamp = stamp;
            return Ok((Arc::clone(&heads.trials), heads.rejected.clone()));
        }
        let mut known: BTreeMap<&str, &Arc<Trial>> =
            heads.trials.iter().map(|trial| (trial.id.as_str(), trial)).collect();
        known.retain(|id, _| ids.binary_search_by(|other| other.as_str().cmp(id)).is_ok());
        let (mut trials, mut rejected) = (Vec::new(), Vec::new());
        if ids.len() - known.len() > MAX_SINGLE_READS {
            let listing = self.store.list()?;
            trials.extend(listing.trials.into_iter().map(Arc::new));
            rejected = listing.rejected;
        } else {
            for id in &ids {
                match known.get(id.as_str()) {
                    Some(trial) => trials.push(Arc::clone(trial)),
                    None => match self.store.head(id) {
                        Ok(trial) => trials.push(Arc::new(trial)),
                        Err(StoreError::Unreadable(problem)) => rejected.push(*problem),
                        // It was removed meanwhile.
                        Err(_) => {}
                    },
                }
            }
        }
        // What was made from the heads is valid as long as they are the same.
        let is_same = ids == heads.ids && trials.len() == heads.trials.len();
        let trials = if is_same { Arc::clone(&heads.trials) } else { Arc::new(trials) };
        *heads = Heads { stamp, ids, trials: Arc::clone(&trials), rejected: rejected.clone() };
        Ok((trials, rejected))
    }

    /// A reader of these trials.
    fn reader<'t>(&self, trials: impl Iterator<Item = &'t Trial>, rejected: Vec<Problem>) -> StoreReader {
        StoreReader::new(self.store.clone(), Listing { trials: trials.cloned().collect(), rejected })
    }

    /// Every run with a trial, and running ones; oldest first.
    pub(crate) async fn runs(self: &Arc<Self>) -> Result<Document, ErrorResponse> {
        self.compute(|cache| Document::json(&cache.run_heads()?)).await
    }

    fn run_heads(&self) -> Result<Vec<RunHead>, StoreError> {
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

    /// The view of a run.
    pub(crate) async fn view(self: &Arc<Self>, run: String) -> Result<Document, ErrorResponse> {
        self.require_trial_of(&run).await?;
        let mut cached = self.views.get(&run).await;
        self.compute(move |cache| Ok(cache.current_view(&run, &mut cached)?)).await
    }

    fn current_view(&self, run: &str, cached: &mut CachedView) -> Result<Document, StoreError> {
        let (trials, rejected) = self.heads()?;
        let of_run: Vec<&Trial> = of_run(&trials, run).collect();
        let ids = || of_run.iter().map(|trial| &trial.id);
        if let Some(view) = cached.view.as_ref().filter(|_| rejected.is_empty() && ids().eq(&cached.ids)) {
            return Ok(view.clone());
        }
        let present: BTreeSet<&String> = ids().collect();
        cached.contexts.retain(|id, _| present.contains(id));
        let reader = self.reader(of_run.iter().copied(), rejected);
        let view = read_trials(&reader, &of_run, &mut cached.contexts)?;
        let document = Document::new(json(&view));
        cached.view = view.left_out.is_empty().then(|| document.clone());
        cached.ids = ids().cloned().collect();
        Ok(document)
    }

    /// The histories of a run.
    pub(crate) async fn histories(self: &Arc<Self>, run: String) -> Result<Document, ErrorResponse> {
        self.require_trial_of(&run).await?;
        let mut cached = self.histories.get(&run).await;
        self.compute(move |cache| Ok(cache.current_histories(&run, &mut cached)?)).await
    }

    fn current_histories(&self, run: &str, cached: &mut CachedHistories) -> Result<Document, StoreError> {
        let ((trials, rejected), accepted) = (self.heads()?, self.store.acceptances()?);
        if let Some(histories) = &cached.histories
            && Arc::ptr_eq(&cached.trials, &trials)
            && cached.accepted == accepted
        {
            return Ok(histories.clone());
        }
        let reader = self.reader(trials.iter().map(Arc::as_ref), rejected);
        let found = run_histories(&reader, run)?;
        let documents: Vec<_> = found.iter().map(history::Document::new).collect();
        let histories = Document::new(json(&documents));
        let is_whole = reader.left_out().is_empty();
        *cached = CachedHistories { trials, accepted, histories: is_whole.then(|| histories.clone()) };
        Ok(histories)
    }

    /// A trial in all its detail.
    pub(crate) async fn detail(self: &Arc<Self>, trial: String) -> Result<Document, ErrorResponse> {
        let mut cached = self.details.get(&trial).await;
        self.compute(move |cache| match &*cached {
            Some(detail) => Ok(detail.clone()),
            None => {
                let record = cache.store.load(&trial)?;
                Ok(cached.insert(Document::new(json(&detail(&record, Points::All)))).clone())
            }
        })
        .await
    }

    /// An error if the store has no trial of this run: nothing is cached for it.
    async fn require_trial_of(self: &Arc<Self>, run: &str) -> Result<(), ErrorResponse> {
        let trials = self.compute(|cache| Ok(cache.trials()?)).await?;
        match of_run(&trials, run).next() {
            Some(_) => Ok(()),
            None => Err(ErrorResponse::not_found(format!("the store has no trial of run {run} yet"))),
        }
    }

    /// Runs work that reads the store, when few others do. It ends, and counts, also if its client is gone.
    async fn compute<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ErrorResponse> + Send + 'static,
    ) -> Result<T, ErrorResponse> {
        let place = Arc::clone(&self.computations).acquire_owned().await.map_err(ErrorResponse::failed)?;
        let cache = Arc::clone(self);
        let computation = tokio::task::spawn_blocking(move || {
            let outcome = work(&cache);
            drop(place);
            outcome
        });
        computation.await.map_err(ErrorResponse::failed)?
    }
}

fn of_run<'a>(trials: &'a Trials, run: &str) -> impl Iterator<Item = &'a Trial> {
    trials.iter().map(Arc::as_ref).filter(move |trial| trial.run.id == run)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn few_computations_run_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Arc::new(ReportCache::new(Store::open(folder.path()).unwrap()));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        // They go on in pairs, so that all of those that may run at a time do.
        let pair = Arc::new(Barrier::new(MAX_COMPUTATIONS));
        let computations = (0..16).map(|_| {
            let (cache, running, most) = (Arc::clone(&cache), Arc::clone(&running), Arc::clone(&most));
            let pair = Arc::clone(&pair);
            tokio::spawn(async move {
                let work = move |_: &ReportCache| {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    pair.wait();
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                };
                cache.compute(work).await
            })
        });
        for computation in computations.collect::<Vec<_>>() {
            computation.await.unwrap().unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), MAX_COMPUTATIONS);
    }
}
