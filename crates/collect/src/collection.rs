//! The collectors that run during one trial: started before its load, finished after it; their errors never fail it.

mod buffers;
mod collector;
mod profile;
mod replica;
mod sampler;
mod session_sampler;
mod statements;

use std::fmt::Display;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;

use model::message::SessionSamples;
use model::topology;
use model::waits::Waits;

use crate::load_clock::Window;
use crate::os::{Machine, Processes};
use crate::pgbouncer::Pgbouncer;
use crate::postgres::{Statistics, Tables};
use collector::{CONTROL_DATABASE, Collector, Context, Start};
pub use collector::{Collected, Companion, MarkerTable, Subject};

/// All collectors by their names in notes, in the order in which they finish: the last readings first, right after the
/// load, and slow ones last. They start in reverse order.
const COLLECTORS: [(&str, Start); 10] = [
    ("tables", |context| {
        sampler::start(context, || {
            Tables::new(context.session_during_load(context.tested_database(), "tables")?)
        })
    }),
    ("statistics", |context| {
        sampler::start(context, || {
            let session = context.session_during_load(CONTROL_DATABASE, "statistics")?;
            Statistics::new(session, context.tested_database())
        })
    }),
    ("pgbouncer", |context| {
        let companion = context.subject.companion.as_ref();
        match companion.filter(|companion| companion.kind == topology::Companion::Pgbouncer) {
            Some(companion) => sampler::start(context, || {
                Pgbouncer::new(&(companion.connect)(CONTROL_DATABASE)?, context.tested_database())
            }),
            None => Ok(None),
        }
    }),
    ("replica", replica::start),
    ("os", |context| {
        let subject = &context.subject;
        sampler::start(context, || Ok(Machine::new(subject.data_directory, subject.postmaster)))
    }),
    ("processes", |context| sampler::start(context, || Ok(Processes::new(context.watched.clone())))),
    ("waits", session_sampler::start),
    ("statements", statements::start),
    ("buffers", buffers::start),
    ("profile", profile::start),
];

const HIDDEN_PROCESSES: &str = "the server may run on this machine, but its processes were not found (in a container, for example): CPU time of other \
     processes, which may be the server's, is not judged";

/// Running collectors.
pub struct Collection<'a> {
    context: Context<'a>,
    /// Collectors with their names, in the order in which they finish.
    running: Vec<(&'static str, Box<dyn Collector>)>,
    notes: Vec<String>,
}

impl<'a> Collection<'a> {
    /// Starts the collectors of the plan, and waits for their readings before the load. One that can't start is omitted, with a
    /// note.
    pub fn start(subject: Subject<'a>) -> Self {
        let context = Context::new(subject);
        let (mut running, mut notes) = (Vec::new(), Vec::new());
        if context.subject.has_hidden_processes && context.subject.collect.metrics_hz > 0.0 {
            notes.push(HIDDEN_PROCESSES.to_owned());
        }
        for (name, start) in COLLECTORS.into_iter().rev() {
            match start(&context) {
                Ok(collector) => running.extend(collector.map(|collector| (name, collector))),
                Err(error) => notes.push(note(name, &error)),
            }
        }
        running.reverse();
        // A load that begins before them would lack in every difference between the first and the last reading.
        for (_, collector) in &running {
            collector.wait_until_ready();
        }
        Self { context, running, notes }
    }

    /// Adds the backends of background workloads.
    pub fn add_background_backends(&self, pids: impl IntoIterator<Item = i32>) {
        self.context.backends(|backends| backends.background.extend(pids));
    }

    /// Reports the start of the load.
    pub fn load_started(&self, window: Window) {
        self.context.clock.start(window);
    }

    /// Reports that the load pauses or goes on: sessions are not sampled in a pause.
    pub fn set_paused(&self, is_paused: bool) {
        self.context.clock.set_paused(is_paused);
    }

    /// Activity of the sessions in the second of the load that contains this time; none if that second was not sampled.
    pub fn waits_at(&self, load_us: u64) -> Option<Vec<Waits>> {
        const SECOND_US: u64 = 1_000_000;
        let second_us = i64::try_from(load_us / SECOND_US * SECOND_US).ok()?;
        let latest = self.context.latest_waits.lock().unwrap_or_else(PoisonError::into_inner).clone();
        latest.first().is_some_and(|first| first.at_us == second_us).then_some(latest)
    }

    /// The sessions of a trace in the samples since the last call; none if sessions are not sampled.
    pub fn take_session_samples(&self) -> Option<SessionSamples> {
        let mut samples = self.context.session_samples.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = samples.as_mut()?;
        Some(SessionSamples { until_us: samples.until_us, sessions: std::mem::take(&mut samples.sessions) })
    }

    /// Takes the last readings after the load and returns all results. `interrupt` cuts slow collectors short.
    pub fn finish(self, interrupt: &AtomicBool) -> Collected {
        self.context.clock.end();
        let mut all = Collected { notes: self.notes, ..Collected::default() };
        for (name, collector) in self.running {
            match collector.finish(&self.context, interrupt) {
                Ok(collected) => all.merge(collected),
                Err(error) => all.notes.push(note(name, &error)),
            }
        }
        all.commits += self.context.commits();
        all
    }
}

fn note(collector: &str, error: &dyn Display) -> String {
    format!("collector {collector}: {error}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use model::plan::Collect;
    use wire::ParamError;

    use super::*;
    use crate::clock::now;
    use crate::postgres::LoadSessions;

    /// All collectors except the profile, with a server that rejects connections.
    fn start(connect: &dyn Fn(&str) -> Result<wire::ConnectParams, ParamError>) -> Collection<'_> {
        Collection::start(Subject {
            collect: Collect { metrics_hz: 1.0, waits_hz: 20.0, statements: true, buffers: true },
            profile: None,
            connect,
            load: LoadSessions { database: "tested".to_owned(), application_name: None, background: None },
            plays_trace: false,
            data_directory: None,
            driver: Some(std::process::id()),
            postmaster: None,
            has_hidden_processes: false,
            has_other_side: false,
            companion: None,
        })
    }

    #[test]
    fn a_collector_that_can_not_start_is_omitted_with_a_note() {
        let connect = |database: &str| Err(ParamError::NoService(database.to_owned()));
        let collection = start(&connect);
        let origin_us = now().monotonic_us;
        collection.load_started(Window { origin_us, from_us: 0, to_us: 3_600_000_000 });
        assert_eq!(collection.waits_at(0), None);
        let collected = collection.finish(&AtomicBool::new(false));
        assert_eq!(
            collected.notes,
            [
                "collector buffers: definition of service \"tested\" not found",
                "collector statements: definition of service \"postgres\" not found",
                "collector waits: definition of service \"postgres\" not found",
                "collector statistics: definition of service \"postgres\" not found",
                "collector tables: definition of service \"tested\" not found",
            ]
        );
        let reads = |source| collected.metrics.get("collector.reads", Some(source)).is_some();
        assert_eq!(
            ["os", "processes", "postgres", "tables", "waits"].map(reads),
            [true, true, false, false, false]
        );
        assert!(collected.waits.is_empty() && collected.statements.is_empty() && collected.commits == 0);
    }

    #[test]
    fn threads_of_an_abandoned_collection_end() {
        let connect = |_: &str| Err(ParamError::NoService("no".to_owned()));
        let collection = start(&connect);
        let clock = Arc::downgrade(&collection.context.clock);
        drop(collection);
        let end = Instant::now() + Duration::from_secs(30);
        while clock.strong_count() > 0 {
            assert!(Instant::now() < end, "they still wait for the load");
            std::thread::yield_now();
        }
    }

    #[test]
    fn without_a_load_nothing_is_collected() {
        let connect = |_: &str| Err(ParamError::NoService("no".to_owned()));
        let collected = start(&connect).finish(&AtomicBool::new(false));
        assert!(collected.metrics.0.is_empty() && collected.events.is_empty(), "{collected:?}");
    }
}
