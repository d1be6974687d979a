//! Reads sources at exact moments of a load, each in a thread of its own, so that one that is slow holds up no other.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::metric;
use model::metrics::{Metric, Metrics, Point, Series};

use crate::clock::now;
use crate::reading::{Reading, Source, Value};

/// When a load began and which part of it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// `CLOCK_MONOTONIC` at the load's start, in microseconds: the origin of all times.
    pub origin_us: i64,
    /// Where the measured window begins, in microseconds after the origin.
    pub from_us: i64,
    /// Where it ends.
    pub to_us: i64,
}

/// What came of all readings.
#[derive(Debug, Default)]
pub struct Sampled {
    /// Every series, in microseconds after the load's start.
    pub metrics: Metrics,
    /// What went wrong, for people: one line for each source.
    pub troubles: Vec<String>,
}

/// Threads that read sources: once when they start, then at every full interval of the load and at both ends of its
/// window, and once more at the end.
#[derive(Debug)]
pub struct Sampler {
    clock: Arc<LoadClock>,
    threads: Vec<JoinHandle<Sampled>>,
}

impl Sampler {
    /// Begins to read, with the first reading at once.
    pub fn start(sources: Vec<Box<dyn Source>>, interval: Duration) -> Self {
        let clock = Arc::new(LoadClock::default());
        let threads = sources
            .into_iter()
            .filter_map(|source| {
                let clock = Arc::clone(&clock);
                let name = format!("collect {}", source.name());
                // Without a thread there are no readings, as without any other resource.
                thread::Builder::new()
                    .name(name)
                    .spawn(move || Readings::new(source).run(&clock, interval))
                    .ok()
            })
            .collect();
        Self { clock, threads }
    }

    /// The load has begun.
    pub fn load_began(&self, window: Window) {
        self.clock.begin(window);
    }

    /// Reads a last time, and gives all there is; nothing where no load began.
    pub fn finish(self) -> Sampled {
        self.clock.end();
        let mut all = Sampled::default();
        for thread in self.threads {
            // A source that panicked has nothing to give, and the trial goes on.
            let Ok(sampled) = thread.join() else { continue };
            all.metrics.0.extend(sampled.metrics.0);
            all.troubles.extend(sampled.troubles);
        }
        all
    }
}

/// What the threads that read beside a load wait on: its beginning, the next moment, its end.
#[derive(Debug, Default)]
pub(crate) struct LoadClock {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    window: Option<Window>,
    ended: bool,
}

/// What a thread has waited for.
pub(crate) enum Tick {
    /// The moment has come.
    Due,
    /// The load has ended.
    Ended,
}

impl LoadClock {
    pub(crate) fn begin(&self, window: Window) {
        self.change(|state| state.window = Some(window));
    }

    pub(crate) fn end(&self) {
        self.change(|state| state.ended = true);
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits for the load's beginning; none where it ended without one.
    pub(crate) fn beginning(&self) -> Option<Window> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.window.is_none() && !state.ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.window
    }

    /// Waits for the load's end.
    pub(crate) fn wait_for_end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until a moment after the load's start, or for its end.
    pub(crate) fn wait_until(&self, window: Window, due_us: i64) -> Tick {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.ended {
                return Tick::Ended;
            }
            let left_us = window.origin_us + due_us - now().monotonic_us;
            let Ok(left_us @ 1..) = u64::try_from(left_us) else { return Tick::Due };
            let waited = self.changed.wait_timeout(state, Duration::from_micros(left_us));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Window {
    /// The next moment to read at: full intervals of the load, and both ends of the window. An interval that ends shortly
    /// before such an end gives way to it. None after the window.
    fn next(self, after_us: i64, interval_us: i64) -> Option<i64> {
        let full = (after_us.div_euclid(interval_us) + 1) * interval_us;
        let mut edges = [self.from_us, self.to_us].into_iter().filter(|&edge_us| edge_us > after_us);
        let edge = edges.next();
        let due_us = match edge {
            Some(edge_us) if edge_us < full => edge_us,
            Some(edge_us) if full > 0 && edge_us - full < interval_us / 4 => edge_us,
            _ => full,
        };
        (due_us <= self.to_us).then_some(due_us)
    }
}

/// The readings of one source.
struct Readings {
    source: Box<dyn Source>,
    series: Vec<Series>,
    places: BTreeMap<(&'static str, Option<String>), usize>,
    reads: u32,
    late: u32,
    failed: u32,
    spent_us: i64,
    /// Why the first of the failed ones failed.
    why: Option<String>,
}

impl Readings {
    fn new(source: Box<dyn Source>) -> Self {
        Self {
            source,
            series: Vec::new(),
            places: BTreeMap::new(),
            reads: 0,
            late: 0,
            failed: 0,
            spent_us: 0,
            why: None,
        }
    }

    fn run(mut self, clock: &LoadClock, interval: Duration) -> Sampled {
        let interval_us = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX).max(1);
        self.read(None);
        let Some(window) = clock.beginning() else { return Sampled::default() };
        let mut last_us = -1;
        while let Some(due_us) = window.next(last_us, interval_us) {
            match clock.wait_until(window, due_us) {
                Tick::Ended => break,
                Tick::Due => self.read(Some(Due { at_us: window.origin_us + due_us, interval_us })),
            }
            // What the time has gone past while it was read is left out, and not caught up with.
            last_us = due_us.max(now().monotonic_us - window.origin_us - interval_us / 2);
        }
        clock.wait_for_end();
        self.read(None);
        self.sampled(window.origin_us)
    }

    /// Reads once. Times are those of the monotonic clock until all is over.
    fn read(&mut self, due: Option<Due>) {
        let mut reading = Reading::default();
        let begun_us = now().monotonic_us;
        let outcome = self.source.read(&mut reading);
        let ended_us = now().monotonic_us;
        self.reads += 1;
        self.spent_us += ended_us - begun_us;
        // Values belong to some moment while they were read.
        let mut at_us = begun_us + (ended_us - begun_us) / 2;
        let late = due.as_ref().is_some_and(|due| at_us - due.at_us > due.interval_us / 2);
        if let (true, Some(due)) = (late, &due) {
            self.late += 1;
            at_us = due.at_us;
        }
        if let Err(why) = outcome {
            self.failed += 1;
            self.why.get_or_insert(why);
        }
        if !late {
            for Value { metric, label, value } in reading.into_values() {
                let place = self.place(metric, label);
                self.series[place].points.push(Point { at_us, value: Some(value) });
            }
        }
        for (metric, value) in [
            (metric!("collector.reads"), f64::from(self.reads)),
            (metric!("collector.late"), f64::from(self.late)),
            (metric!("collector.failed"), f64::from(self.failed)),
            (metric!("collector.spent_us"), self.spent_us as f64),
        ] {
            let place = self.place(metric, Some(self.source.name().to_owned()));
            self.series[place].points.push(Point { at_us, value: Some(value) });
        }
        // What was there before and is not now is missing, not unchanged.
        for series in &mut self.series {
            if series.points.last().is_some_and(|point| point.at_us != at_us) {
                series.points.push(Point { at_us, value: None });
            }
        }
    }

    fn place(&mut self, metric: &'static Metric, label: Option<String>) -> usize {
        *self.places.entry((metric.name, label)).or_insert_with_key(|(_, label)| {
            self.series.push(Series::new(metric, label.clone(), Vec::new()));
            self.series.len() - 1
        })
    }

    fn sampled(mut self, origin_us: i64) -> Sampled {
        for point in self.series.iter_mut().flat_map(|series| &mut series.points) {
            point.at_us -= origin_us;
        }
        let mut troubles = Vec::new();
        if self.failed > 0 || self.late > 0 {
            let why = self.why.map(|why| format!(": {why}")).unwrap_or_default();
            troubles.push(format!(
                "collector {}: of {} readings, {} failed and {} were late{why}",
                self.source.name(),
                self.reads,
                self.failed,
                self.late
            ));
        }
        Sampled { metrics: Metrics(self.series), troubles }
    }
}

/// When a reading was to be.
struct Due {
    at_us: i64,
    interval_us: i64,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const SECOND: i64 = 1_000_000;

    fn moments(window: Window) -> Vec<i64> {
        let mut last_us = -1;
        std::iter::from_fn(|| {
            last_us = window.next(last_us, SECOND)?;
            Some(last_us)
        })
        .collect()
    }

    #[test]
    fn both_ends_of_the_window_are_read_exactly() {
        let window = Window { origin_us: 7, from_us: SECOND, to_us: 3 * SECOND };
        assert_eq!(moments(window), [0, SECOND, 2 * SECOND, 3 * SECOND]);
        let window = Window { origin_us: 7, from_us: 300_000, to_us: 2_100_000 };
        assert_eq!(
            moments(window),
            [0, 300_000, SECOND, 2_100_000],
            "a full second close to an end gives way"
        );
        let window = Window { origin_us: 7, from_us: 0, to_us: 200_000 };
        assert_eq!(moments(window), [0, 200_000]);
    }

    /// Gives what it is told to, and tells that it was read.
    struct Told {
        values: Receiver<Result<f64, String>>,
        read: Sender<()>,
    }

    impl Source for Told {
        fn name(&self) -> &'static str {
            "told"
        }

        fn read(&mut self, into: &mut Reading) -> Result<(), String> {
            let value = self.values.recv().unwrap_or(Ok(99.0));
            let _ = self.read.send(());
            into.add(metric!("sched.forks"), None, value?);
            Ok(())
        }
    }

    #[test]
    fn a_failed_reading_is_null_and_counted_and_the_others_stand() {
        let (values, receiver) = channel();
        let (sender, read) = channel();
        let source = Told { values: receiver, read: sender };
        let sampler = Sampler::start(vec![Box::new(source)], Duration::from_secs(3600));
        values.send(Ok(1.0)).unwrap();
        read.recv().unwrap();
        values.send(Err("no such view".to_owned())).unwrap();
        let origin_us = now().monotonic_us;
        sampler.load_began(Window { origin_us, from_us: 3600 * SECOND, to_us: 7200 * SECOND });
        read.recv().unwrap();
        values.send(Ok(3.0)).unwrap();
        let sampled = sampler.finish();
        let series = sampled.metrics.get("sched.forks", None).unwrap();
        assert_eq!(
            series.points.iter().map(|point| point.value).collect::<Vec<_>>(),
            [Some(1.0), None, Some(3.0)]
        );
        assert!(series.points.is_sorted_by_key(|point| point.at_us), "{series:?}");
        let failed = sampled.metrics.get("collector.failed", Some("told")).unwrap();
        assert_eq!(failed.points.last().unwrap().value, Some(1.0));
        assert!(sampled.troubles[0].contains("1 failed") && sampled.troubles[0].contains("no such view"));
    }

    #[test]
    fn without_a_load_there_is_nothing() {
        let (values, receiver) = channel();
        values.send(Ok(1.0)).unwrap();
        let source = Told { values: receiver, read: channel().0 };
        let sampled = Sampler::start(vec![Box::new(source)], Duration::from_secs(1)).finish();
        assert_eq!(sampled.metrics, Metrics::default());
    }
}
