//! Events in the store, sent to all connected clients: one watcher for all of them, and none without clients.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::response::sse;
use jiff::Timestamp;
use model::record::Trial;
use serde::Serialize;
use store::format::live::{Ended, How, Line};
use store::{LiveReader, Totals};
use tokio::sync::{Semaphore, broadcast};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt as _};

use super::report_cache::{ReportCache, Trials};
use super::response::ErrorResponse;

/// Interval between polls.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Most messages that wait for a client, more than a live file has lines; a client that falls further behind has to
/// reconnect.
const QUEUE_CAPACITY: usize = 4096;

/// Most listeners: enough for a team, and a quarter of the connections, so that they leave room for requests.
pub(crate) const MAX_LISTENERS: usize = 64;

/// Polls the store while there are listeners.
pub(crate) struct Watch {
    cache: Arc<ReportCache>,
    listeners: Arc<Semaphore>,
    state: Mutex<State>,
}

struct State {
    sender: broadcast::Sender<Arc<str>>,
    /// Whether the watcher is running.
    is_watching: bool,
    runs: BTreeMap<String, FollowedRun>,
    /// Trials already reported or present at the start; none before the first poll.
    known: Option<BTreeSet<String>>,
    /// The trials of the last poll.
    trials: Trials,
}

/// A run that has a live file.
struct FollowedRun {
    reader: LiveReader,
    alive: bool,
    /// Messages since the head of its file.
    messages: Vec<Arc<str>>,
}

#[derive(Serialize)]
struct Message<'a, T> {
    run: Option<&'a str>,
    event: T,
}

#[derive(Serialize)]
struct Hello<'a> {
    kind: &'static str,
    running: Vec<&'a str>,
}

/// A new bundle.
#[derive(Serialize)]
struct NewTrial<'a> {
    kind: &'static str,
    id: &'a str,
    campaign: &'a str,
    cell: String,
    position: u32,
    repeat: u32,
    attempt: u32,
    validity: &'static str,
    tps: Option<f64>,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
}

impl<'a> NewTrial<'a> {
    fn new(trial: &'a Trial) -> Self {
        Self {
            kind: "trial",
            id: &trial.id,
            campaign: &trial.run.campaign,
            cell: trial.cell.to_string(),
            position: trial.position,
            repeat: trial.repeat,
            attempt: trial.attempt,
            validity: trial.validity.status.as_str(),
            tps: trial.summary.as_ref().map(|summary| summary.tps),
            started: trial.started,
            ended: trial.ended,
        }
    }
}

impl Watch {
    pub(crate) fn new(cache: Arc<ReportCache>) -> Self {
        let state = State {
            sender: broadcast::Sender::new(QUEUE_CAPACITY),
            is_watching: false,
            runs: BTreeMap::new(),
            known: None,
            trials: Trials::default(),
        };
        Self { cache, listeners: Arc::new(Semaphore::new(MAX_LISTENERS)), state: Mutex::new(state) }
    }

    /// The state so far, then new events. Ends if the listener does not keep up.
    ///
    /// # Errors
    /// There are as many listeners as there may be.
    pub(crate) async fn listen(
        self: &Arc<Self>,
    ) -> Result<impl Stream<Item = Result<sse::Event, Infallible>> + Send + use<>, ErrorResponse> {
        let place = Arc::clone(&self.listeners).try_acquire_owned().map_err(|_| {
            ErrorResponse::busy(format!(
                "{MAX_LISTENERS} pages or programs follow this server already, and no more may: close one of them"
            ))
        })?;
        let watch = Arc::clone(self);
        let subscribed = tokio::task::spawn_blocking(move || watch.subscribe());
        let (initial_messages, new_messages) = subscribed.await.map_err(ErrorResponse::failed)?;
        let new_messages = BroadcastStream::new(new_messages).map_while(Result::ok);
        let messages = tokio_stream::iter(initial_messages).chain(new_messages);
        Ok(messages.map(move |message| {
            let _place_is_kept = &place;
            Ok(sse::Event::default().data(&*message))
        }))
    }

    /// The messages so far and a receiver of new ones. Starts the watcher if there is none.
    fn subscribe(self: Arc<Self>) -> (Vec<Arc<str>>, broadcast::Receiver<Arc<str>>) {
        let mut state = self.state();
        if !state.is_watching {
            state.is_watching = true;
            state.poll(&self.cache);
            tokio::spawn(Arc::clone(&self).watch());
        }
        // Under the lock: no message is missed, and none is received twice.
        (state.initial_messages(), state.sender.subscribe())
    }

    async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let watch = Arc::clone(&self);
            let polled = tokio::task::spawn_blocking(move || watch.poll_once()).await;
            if !polled.unwrap_or(false) {
                return;
            }
        }
    }

    /// Polls once; false if there are no more listeners.
    fn poll_once(&self) -> bool {
        let mut state = self.state();
        if state.sender.receiver_count() == 0 {
            (state.is_watching, state.known, state.trials) = (false, None, Trials::default());
            state.runs.clear();
            return false;
        }
        state.poll(&self.cache);
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn initial_messages(&self) -> Vec<Arc<str>> {
        let alive = || self.runs.iter().filter(|(_, followed)| followed.alive);
        let running = alive().map(|(run, _)| run.as_str()).collect();
        let hello = message(None, Hello { kind: "hello", running });
        hello.into_iter().chain(alive().flat_map(|(_, followed)| followed.messages.iter().cloned())).collect()
    }

    fn poll(&mut self, cache: &ReportCache) {
        let runs = cache.store().live_runs();
        for run in &runs {
            if !self.runs.contains_key(run)
                && let Ok(reader) = cache.store().open_live(run)
            {
                let followed = FollowedRun { reader, alive: false, messages: Vec::new() };
                self.runs.insert(run.clone(), followed);
            }
        }
        // A bundle exists before its run reports it.
        self.poll_trials(cache);
        for (run, followed) in &mut self.runs {
            for message in followed.new_messages(run) {
                // Before the first poll there are no listeners.
                let _ = self.sender.send(message);
            }
        }
        self.runs.retain(|run, followed| followed.alive || runs.contains(run));
    }

    fn poll_trials(&mut self, cache: &ReportCache) {
        // Trials that can't be listed now may be listed by the next poll.
        let Ok(trials) = cache.trials() else { return };
        if self.known.is_some() && Arc::ptr_eq(&self.trials, &trials) {
            return;
        }
        let is_first = self.known.is_none();
        let known = self.known.get_or_insert_default();
        for trial in trials.iter() {
            if known.insert(trial.id.clone())
                && !is_first
                && let Some(message) = message(Some(&trial.run.id), NewTrial::new(trial))
            {
                let _ = self.sender.send(message);
            }
        }
        self.trials = trials;
    }
}

impl FollowedRun {
    /// Messages since the last call; none of a run that is not running.
    fn new_messages(&mut self, run: &str) -> Vec<Arc<str>> {
        let was_alive = self.alive;
        let update = self.reader.poll().unwrap_or_default();
        self.alive = update.alive;
        if !was_alive && !update.alive && !matches!(update.lines.last(), Some(Line::Ended(_))) {
            return Vec::new();
        }
        let mut messages = Vec::new();
        let mut has_ended = false;
        for mut line in update.lines {
            if matches!(line, Line::Run(_)) {
                self.messages.clear();
            }
            has_ended = matches!(line, Line::Ended(_));
            // Only /metrics has a use for them.
            if let Line::Interval(interval) = &mut line {
                interval.totals = Totals::default();
            }
            if let Some(message) = message(Some(run), line) {
                self.messages.push(Arc::clone(&message));
                messages.push(message);
            }
        }
        if has_ended {
            self.alive = false;
        } else if was_alive && !self.alive {
            let died = Line::Ended(Ended { at: Timestamp::now(), how: How::Died, why: None });
            messages.extend(message(Some(run), died));
        }
        if !self.alive {
            self.messages.clear();
        }
        messages
    }
}

/// None if it can't be serialized, for which there is no known cause.
fn message(run: Option<&str>, event: impl Serialize) -> Option<Arc<str>> {
    serde_json::to_string(&Message { run, event }).ok().map(Arc::from)
}
