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
use store::{LiveReader, Stamp};
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt as _};

use super::report_cache::ReportCache;

/// Interval between polls.
const EVERY: Duration = Duration::from_millis(250);

/// Most messages that wait for a client, more than a live file has lines; a client that falls further behind has to
/// reconnect.
const BEHIND: usize = 4096;

/// Polls the store while there are listeners.
pub(crate) struct Watch {
    cache: Arc<ReportCache>,
    state: Mutex<State>,
}

struct State {
    to_all: broadcast::Sender<Arc<str>>,
    /// Whether the watcher is running.
    awake: bool,
    runs: BTreeMap<String, Followed>,
    /// Trials already reported or present at the start; none before the first poll.
    known: Option<BTreeSet<String>>,
    stamp: Option<Stamp>,
}

/// A run that has a live file.
struct Followed {
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
struct Stored<'a> {
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

impl<'a> Stored<'a> {
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
            to_all: broadcast::Sender::new(BEHIND),
            awake: false,
            runs: BTreeMap::new(),
            known: None,
            stamp: None,
        };
        Self { cache, state: Mutex::new(state) }
    }

    /// The state so far, then new events. Ends if the listener does not keep up.
    pub(crate) fn listen(
        self: &Arc<Self>,
    ) -> impl Stream<Item = Result<sse::Event, Infallible>> + Send + use<> {
        let mut state = self.state();
        if !state.awake {
            state.awake = true;
            state.look(&self.cache);
            let watch = Arc::clone(self);
            tokio::spawn(async move { watch.watch().await });
        }
        // Under the lock: no message is missed, and none is received twice.
        let (so_far, from_now) = (state.so_far(), state.to_all.subscribe());
        drop(state);
        let from_now = BroadcastStream::new(from_now).map_while(Result::ok);
        tokio_stream::iter(so_far).chain(from_now).map(|message| Ok(sse::Event::default().data(&*message)))
    }

    async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(EVERY).await;
            let watch = Arc::clone(&self);
            let looked = tokio::task::spawn_blocking(move || watch.turn()).await;
            if !looked.unwrap_or(false) {
                return;
            }
        }
    }

    /// Polls once; false if there are no more listeners.
    fn turn(&self) -> bool {
        let mut state = self.state();
        if state.to_all.receiver_count() == 0 {
            (state.awake, state.known, state.stamp) = (false, None, None);
            state.runs.clear();
            return false;
        }
        state.look(&self.cache);
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn so_far(&self) -> Vec<Arc<str>> {
        let alive = || self.runs.iter().filter(|(_, followed)| followed.alive);
        let running = alive().map(|(run, _)| run.as_str()).collect();
        let hello = message(None, Hello { kind: "hello", running });
        hello.into_iter().chain(alive().flat_map(|(_, followed)| followed.messages.iter().cloned())).collect()
    }

    fn look(&mut self, cache: &ReportCache) {
        let runs = cache.store().live_runs();
        for run in &runs {
            if !self.runs.contains_key(run)
                && let Ok(reader) = cache.store().open_live(run)
            {
                let followed = Followed { reader, alive: false, messages: Vec::new() };
                self.runs.insert(run.clone(), followed);
            }
        }
        // A bundle exists before its run reports it.
        self.trials(cache);
        for (run, followed) in &mut self.runs {
            for message in followed.news(run) {
                // Before the first poll there are no listeners.
                let _ = self.to_all.send(message);
            }
        }
        self.runs.retain(|run, followed| followed.alive || runs.contains(run));
    }

    fn trials(&mut self, cache: &ReportCache) {
        let stamp = cache.store().stamp();
        if stamp.is_some_and(|stamp| self.stamp == Some(stamp) && stamp.is_settled()) {
            return;
        }
        // Trials that can't be listed now may be listed by the next poll.
        let Ok(trials) = cache.trials() else { return };
        self.stamp = stamp;
        let is_first = self.known.is_none();
        let known = self.known.get_or_insert_default();
        for trial in trials.iter() {
            if known.insert(trial.id.clone())
                && !is_first
                && let Some(message) = message(Some(&trial.run.id), Stored::new(trial))
            {
                let _ = self.to_all.send(message);
            }
        }
    }
}

impl Followed {
    /// Messages since the last call; none of a run that is not running.
    fn news(&mut self, run: &str) -> Vec<Arc<str>> {
        let was_alive = self.alive;
        let news = self.reader.news().unwrap_or_default();
        self.alive = news.alive;
        if !was_alive && !news.alive && !matches!(news.lines.last(), Some(Line::Ended(_))) {
            return Vec::new();
        }
        let mut messages = Vec::new();
        let mut has_ended = false;
        for line in &news.lines {
            if matches!(line, Line::Run(_)) {
                self.messages.clear();
            }
            has_ended = matches!(line, Line::Ended(_));
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
