//! What is collected beside one load: begun before it, ended after it, and never a reason to lose it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use collect::postgres::{
    Commits, LoadSessions, Session, Statements, Statistics, Tables, WaitSampler, buffers,
};
use collect::{
    Backends, Looked, Looker, Machine, Perf, Processes, Profiler, Recorded, Sampler, Source, Watched, Window,
};
use model::message::Interval;
use model::metric;
use model::metrics::{Metrics, Point, Series};
use model::plan::Collect;
use model::profile::{Profile, Profiled, Stacks};
use model::record::{ClockReading, Event};
use model::units::Span;
use model::waits::{StatementUse, Waits};

use crate::serving::Serving;

/// How long a statement that is repeated may take; one that takes longer is a failed reading.
const PATIENCE: Duration = Duration::from_millis(900);
/// How long a statement before or after a load may take.
const LONG_PATIENCE: Duration = Duration::from_secs(30);

/// The database for what the tested one is not to count.
const CONTROL: &str = "postgres";

/// Collectors at work.
#[derive(Default)]
pub(crate) struct Beside {
    sampler: Option<Sampler>,
    looker: Option<Looker>,
    profiler: Option<Profiler>,
    statements: Option<Statements>,
    buffers: Option<Vec<(String, u64)>>,
    /// Sessions that the tested database counts transactions of.
    counted: Vec<Commits>,
    /// Which backends are none of the load's.
    backends: Arc<Mutex<Backends>>,
    /// What could not be begun, and why.
    troubles: Vec<String>,
    origin: Option<ClockReading>,
}

/// What they have brought.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) metrics: Metrics,
    pub(crate) waits: Vec<Waits>,
    pub(crate) statements: Vec<StatementUse>,
    pub(crate) profile: Option<Profiled>,
    pub(crate) stacks: Vec<Stacks>,
    pub(crate) off_cpu: Vec<Stacks>,
    pub(crate) events: Vec<Event>,
    /// What went wrong, for people.
    pub(crate) troubles: Vec<String>,
    /// Commits of theirs that the tested database counts.
    pub(crate) commits: u64,
}

impl Beside {
    /// Begins to collect. What can't be is left out, and told. `mixed` says whether workloads run beside the load.
    pub(crate) fn begin(
        what: &Collect,
        profile: Option<(Profile, &Perf)>,
        serving: &Serving,
        driver: u32,
        mixed: bool,
    ) -> Self {
        let mut beside = Self::default();
        let backends = Arc::clone(&beside.backends);
        let watched = Watched {
            driver: Some(driver),
            postmaster: serving.pid(),
            profilers: Arc::default(),
            backends: Arc::clone(&backends),
        };
        if let Some((profile, perf)) = profile {
            let begun = Profiler::start(profile, perf, watched.clone());
            beside.profiler = beside.noted("profile", begun);
        }
        if what.statements {
            let begun = for_statements(serving)
                .and_then(|mut session| Statements::before(&mut session, server::DATABASE));
            beside.statements = beside.noted("statements", begun).flatten();
        }
        if what.buffers {
            let begun = beside.for_buffers(serving).and_then(|mut session| buffers(&mut session));
            beside.buffers = beside.noted("buffers", begun).flatten();
        }
        if what.waits_hz > 0.0 {
            let load = LoadSessions {
                database: server::DATABASE.to_owned(),
                application_name: Some(driver::APPLICATION_NAME.to_owned()),
                beside: mixed.then(|| driver::BESIDE_NAME.to_owned()),
            };
            let begun = beside_load(serving, CONTROL, "waits", &backends)
                .and_then(|session| WaitSampler::new(session, &load));
            let period = Duration::from_secs_f64(1.0 / what.waits_hz);
            beside.looker = beside.noted("waits", begun).map(|sampler| Looker::start(sampler, period));
        }
        if what.metrics_hz > 0.0 {
            let sources = beside.sources(serving, watched);
            let interval = Duration::from_secs_f64(1.0 / what.metrics_hz);
            beside.sampler = Some(Sampler::start(sources, interval));
        }
        beside
    }

    fn sources(&mut self, serving: &Serving, watched: Watched) -> Vec<Box<dyn Source>> {
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        let backends = &Arc::clone(&watched.backends);
        let tables = beside_load(serving, server::DATABASE, "tables", backends).and_then(Tables::new);
        if let Some(tables) = self.noted("tables", tables) {
            self.counted.push(tables.commits());
            sources.push(Box::new(tables));
        }
        let statistics = beside_load(serving, CONTROL, "statistics", backends)
            .and_then(|session| Statistics::new(session, server::DATABASE));
        if let Some(statistics) = self.noted("statistics", statistics) {
            sources.push(Box::new(statistics));
        }
        sources.push(Box::new(Machine::new(serving.data_directory(), serving.pid())));
        sources.push(Box::new(Processes::new(watched)));
        sources
    }

    /// A session in the tested database, before or after the load.
    fn for_buffers(&mut self, serving: &Serving) -> Result<Session, String> {
        let session = open(serving, server::DATABASE, "buffers", LONG_PATIENCE)?;
        self.counted.push(session.commits());
        Ok(session)
    }

    fn noted<T>(&mut self, collector: &str, begun: Result<T, String>) -> Option<T> {
        begun.map_err(|why| self.troubles.push(format!("collector {collector}: {why}"))).ok()
    }

    /// The load's clients are connected, and those of workloads beside it by these backends.
    pub(crate) fn runs_beside(&self, mut pids: Vec<i32>) {
        if let Ok(mut backends) = self.backends.lock() {
            backends.beside.append(&mut pids);
        }
    }

    /// The load has begun.
    pub(crate) fn load_began(&mut self, at: ClockReading, warmup: Span, duration: Span) {
        self.origin = Some(at);
        let us = |span: Span| i64::try_from(span.us()).unwrap_or(i64::MAX / 4);
        let window = Window {
            origin_us: at.monotonic_us,
            from_us: us(warmup),
            to_us: us(warmup).saturating_add(us(duration)),
        };
        if let Some(sampler) = &self.sampler {
            sampler.load_began(window);
        }
        if let Some(looker) = &self.looker {
            looker.load_began(window);
        }
        if let Some(profiler) = &self.profiler {
            profiler.load_began(window);
        }
    }

    /// What sessions were doing in the second that an interval of the load begins in; none where it was not looked.
    pub(crate) fn waits_of(&self, interval: &Interval) -> Option<Vec<Waits>> {
        let second = i64::try_from(interval.start_us / 1_000_000).ok()?;
        let latest = self.looker.as_ref()?.latest();
        latest.first().is_some_and(|first| first.at_us == second * 1_000_000).then_some(latest)
    }

    /// The load has ended: the last readings, and all there is. `interrupt` ends what takes long.
    pub(crate) fn end(mut self, serving: &Serving, interrupt: &AtomicBool) -> Collected {
        let mut collected = Collected::default();
        if let Some(sampler) = self.sampler.take() {
            let sampled = sampler.finish();
            collected.metrics = sampled.metrics;
            self.troubles.extend(sampled.troubles);
        }
        if let Some(looker) = self.looker.take() {
            let Looked { waits, events, series, trouble } = looker.finish();
            collected.waits = waits;
            collected.events = events;
            collected.metrics.0.extend(series);
            self.troubles.extend(trouble);
        }
        if let Some(before) = self.statements.take() {
            let since = for_statements(serving).and_then(|mut session| before.since(&mut session));
            collected.statements = self.noted("statements", since).unwrap_or_default();
        }
        if let (Some(before), Some(origin)) = (self.buffers.take(), self.origin) {
            let after = self.for_buffers(serving).and_then(|mut session| buffers(&mut session));
            let after = self.noted("buffers", after).flatten().unwrap_or_default();
            let at_us = collect::now().monotonic_us - origin.monotonic_us;
            collected.metrics.0.extend(buffer_series(before, after, at_us));
        }
        if let Some(profiler) = self.profiler.take() {
            let profiled = profiler.finish(interrupt);
            if let Some(Recorded { mut profile, stacks, off_cpu }) = self.noted("profile", profiled).flatten()
            {
                collected.stacks = stacks;
                if let Some((how, stacks)) = self.noted("profile off CPU", off_cpu.transpose()).flatten() {
                    profile.off_cpu = Some(how);
                    collected.off_cpu = stacks;
                }
                collected.profile = Some(profile);
            }
        }
        collected.commits = self.counted.iter().map(Commits::get).sum();
        collected.troubles = self.troubles;
        collected
    }
}

/// A session before or after the load, which needs its connections for itself meanwhile.
fn for_statements(serving: &Serving) -> Result<Session, String> {
    open(serving, CONTROL, "statements", LONG_PATIENCE)
}

/// A session beside the load, whose process is a collector's.
fn beside_load(
    serving: &Serving,
    database: &str,
    purpose: &str,
    backends: &Mutex<Backends>,
) -> Result<Session, String> {
    let session = open(serving, database, purpose, PATIENCE)?;
    if let Ok(mut backends) = backends.lock() {
        backends.collectors.push(session.pid());
    }
    Ok(session)
}

fn open(serving: &Serving, database: &str, purpose: &str, patience: Duration) -> Result<Session, String> {
    let params = driver::connect_params(&serving.own_connection(database));
    Session::open(&params.map_err(|error| error.to_string())?, purpose, patience)
}

/// Buffers by relation, before the load and after it; one that has none is not among what was seen.
fn buffer_series(before: Vec<(String, u64)>, after: Vec<(String, u64)>, at_us: i64) -> Vec<Series> {
    let mut relations: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (place, seen) in [before, after].into_iter().enumerate() {
        for (relation, buffers) in seen {
            relations.entry(relation).or_default()[place] = buffers;
        }
    }
    let point = |at_us, buffers| Point { at_us, value: Some(buffers as f64) };
    relations
        .into_iter()
        .map(|(relation, [before, after])| {
            let points = vec![point(0, before), point(at_us, after)];
            Series::new(metric!("pg.buffercache.buffers"), Some(relation), points)
        })
        .collect()
}
