//! Readings of a source at exact times of a load. Each source has its own thread, so that a slow one delays no other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::metric;
use model::metrics::{Metric, Metrics, Point, Series};

use super::collector::{Collected, Collector, Context, Started};
use crate::clock::now;
use crate::error::CollectError;
use crate::load_clock::{LoadClock, Tick, Window};
use crate::reading::{Reading, Source, Value};

/// Reads a source in its own thread: once at its start, then at every full interval of the load and at both ends of its
/// window, and once more at the end.
#[derive(Debug)]
struct Sampler {
    thread: JoinHandle<Collected>,
    /// Reports the end of the first reading.
    ready: Receiver<()>,
}

/// Starts to read a source, with the first reading at once; `source` opens it.
pub(super) fn start<S: Source + 'static>(
    context: &Context<'_>,
    source: impl FnOnce() -> Result<S, CollectError>,
) -> Started {
    let hz = context.subject.collect.metrics_hz;
    if hz <= 0.0 {
        return Ok(None);
    }
    let interval = Duration::from_secs_f64(1.0 / hz);
    let sampler = Sampler::start(Box::new(source()?), interval, Arc::clone(&context.clock))?;
    Ok(Some(Box::new(sampler)))
}

impl Sampler {
    fn start(
        source: Box<dyn Source>,
        interval: Duration,
        clock: Arc<LoadClock>,
    ) -> Result<Self, CollectError> {
        let thread = thread::Builder::new().name(format!("collect {}", source.name()));
        let (sender, ready) = sync_channel(1);
        let thread = thread.spawn(move || Readings::new(source).run(&clock, interval, &sender));
        let thread = thread.map_err(CollectError::Thread)?;
        Ok(Self { thread, ready })
    }

    /// All readings; empty without a load.
    fn join(self) -> Result<Collected, CollectError> {
        self.thread.join().map_err(|_| CollectError::Panicked)
    }
}

impl Collector for Sampler {
    fn wait_until_ready(&self) {
        // An error if the thread panicked, which `finish` reports. Each source limits the time of its reading.
        let _ = self.ready.recv();
    }

    fn finish(self: Box<Self>, _: &Context<'_>, _: &AtomicBool) -> Result<Collected, CollectError> {
        self.join()
    }
}

/// Time of the next reading: full intervals of the load, and both ends of the window. An interval that ends shortly
/// before such an end is replaced by it. None after the window.
fn next_reading_us(window: Window, after_us: i64, interval_us: i64) -> Option<i64> {
    let full = (after_us.div_euclid(interval_us) + 1) * interval_us;
    let mut edges = [window.from_us, window.to_us].into_iter().filter(|&edge_us| edge_us > after_us);
    let edge = edges.next();
    let due_us = match edge {
        Some(edge_us) if edge_us < full => edge_us,
        Some(edge_us) if full > 0 && edge_us - full < interval_us / 4 => edge_us,
        _ => full,
    };
    (due_us <= window.to_us).then_some(due_us)
}

/// Readings of one source.
struct Readings {
    source: Box<dyn Source>,
    series: Vec<Series>,
    series_by_label: BTreeMap<(&'static str, Option<String>), usize>,
    reads: u32,
    late: u32,
    failed: u32,
    spent_us: i64,
    /// Time of the last reading.
    last_us: i64,
    /// Error of the first failed reading.
    first_error: Option<CollectError>,
}

impl Readings {
    fn new(source: Box<dyn Source>) -> Self {
        Self {
            source,
            series: Vec::new(),
            series_by_label: BTreeMap::new(),
            reads: 0,
            late: 0,
            failed: 0,
            spent_us: 0,
            last_us: i64::MIN,
            first_error: None,
        }
    }

    fn run(mut self, clock: &LoadClock, interval: Duration, ready: &SyncSender<()>) -> Collected {
        let interval_us = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX).max(1);
        self.read(None);
        let _ = ready.send(());
        let Some(window) = clock.wait_for_start() else { return Collected::default() };
        let mut last_us = -1;
        while let Some(due_us) = next_reading_us(window, last_us, interval_us) {
            match clock.wait_until(window, due_us) {
                Tick::Ended => break,
                Tick::Due => self.read(Some(Due { at_us: window.origin_us + due_us, interval_us })),
            }
            // Readings that became due during this one are skipped.
            last_us = due_us.max(now().monotonic_us - window.origin_us - interval_us / 2);
        }
        clock.wait_for_end();
        self.read(None);
        self.collected(window.origin_us)
    }

    /// Reads once. Times are monotonic clock times until the end.
    fn read(&mut self, due: Option<Due>) {
        let mut reading = Reading::default();
        let started_us = now().monotonic_us;
        let outcome = self.source.read(&mut reading);
        let ended_us = now().monotonic_us;
        self.reads += 1;
        self.spent_us += ended_us - started_us;
        // Values are of an unknown time during the reading: use its middle.
        let mut at_us = started_us + (ended_us - started_us) / 2;
        let late = due.as_ref().is_some_and(|due| at_us - due.at_us > due.interval_us / 2);
        if let (true, Some(due)) = (late, &due) {
            self.late += 1;
            // The middle of a long reading before may be after this time.
            at_us = due.at_us.max(self.last_us);
        }
        self.last_us = at_us;
        if let Err(error) = outcome {
            self.failed += 1;
            self.first_error.get_or_insert(error);
        }
        if !late {
            for Value { metric, label, value } in reading.into_values() {
                let index = self.series_index(metric, label);
                self.series[index].points.push(Point { at_us, value: Some(value) });
            }
        }
        for (metric, value) in [
            (metric!("collector.reads"), f64::from(self.reads)),
            (metric!("collector.late"), f64::from(self.late)),
            (metric!("collector.failed"), f64::from(self.failed)),
            (metric!("collector.spent_us"), self.spent_us as f64),
        ] {
            let index = self.series_index(metric, Some(self.source.name().to_owned()));
            self.series[index].points.push(Point { at_us, value: Some(value) });
        }
        // A series without a value in this reading is missing, not unchanged.
        for series in &mut self.series {
            if series.points.last().is_some_and(|point| point.at_us != at_us) {
                series.points.push(Point { at_us, value: None });
            }
        }
    }

    fn series_index(&mut self, metric: &'static Metric, label: Option<String>) -> usize {
        *self.series_by_label.entry((metric.name, label)).or_insert_with_key(|(_, label)| {
            self.series.push(Series::new(metric, label.clone(), Vec::new()));
            self.series.len() - 1
        })
    }

    fn collected(mut self, origin_us: i64) -> Collected {
        for point in self.series.iter_mut().flat_map(|series| &mut series.points) {
            point.at_us -= origin_us;
        }
        let mut notes = Vec::new();
        if self.failed > 0 || self.late > 0 {
            let reason = self.first_error.map(|error| format!(": {error}")).unwrap_or_default();
            notes.push(format!(
                "collector {}: of {} readings, {} failed and {} were late{reason}",
                self.source.name(),
                self.reads,
                self.failed,
                self.late
            ));
        }
        Collected { metrics: Metrics(self.series), notes, ..Collected::default() }
    }
}

/// Due time of a reading.
struct Due {
    at_us: i64,
    interval_us: i64,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const SECOND: i64 = 1_000_000;

    fn reading_times(window: Window) -> Vec<i64> {
        let mut last_us = -1;
        std::iter::from_fn(|| {
            last_us = next_reading_us(window, last_us, SECOND)?;
            Some(last_us)
        })
        .collect()
    }

    #[test]
    fn both_ends_of_the_window_are_read_exactly() {
        let window = Window { origin_us: 7, from_us: SECOND, to_us: 3 * SECOND };
        assert_eq!(reading_times(window), [0, SECOND, 2 * SECOND, 3 * SECOND]);
        let window = Window { origin_us: 7, from_us: 300_000, to_us: 2_100_000 };
        assert_eq!(
            reading_times(window),
            [0, 300_000, SECOND, 2_100_000],
            "a full second close to an end gives way"
        );
        let window = Window { origin_us: 7, from_us: 0, to_us: 200_000 };
        assert_eq!(reading_times(window), [0, 200_000]);
    }

    type ScriptedValue = Result<f64, CollectError>;

    /// A source with values from the test, which reports each reading.
    struct Scripted {
        values: Receiver<ScriptedValue>,
        read: Sender<()>,
    }

    impl Source for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }

        fn read(&mut self, into: &mut Reading) -> Result<(), CollectError> {
            let value = self.values.recv().unwrap_or(Ok(99.0));
            let _ = self.read.send(());
            into.add(metric!("sched.forks"), None, value?);
            Ok(())
        }
    }

    /// A sampler of a scripted source: where its values go, what reports its readings, and its clock.
    fn scripted(interval: Duration) -> (Sampler, Sender<ScriptedValue>, Receiver<()>, Arc<LoadClock>) {
        let (values, receiver) = channel();
        let (sender, read) = channel();
        let source = Scripted { values: receiver, read: sender };
        let clock = Arc::new(LoadClock::default());
        let sampler = Sampler::start(Box::new(source), interval, Arc::clone(&clock)).unwrap();
        (sampler, values, read, clock)
    }

    #[test]
    fn a_failed_reading_is_null_and_counted() {
        let (sampler, values, read, clock) = scripted(Duration::from_secs(3600));
        values.send(Ok(1.0)).unwrap();
        read.recv().unwrap();
        values.send(Err(CollectError::NoDatabase("tested".to_owned()))).unwrap();
        let origin_us = now().monotonic_us;
        clock.start(Window { origin_us, from_us: 3600 * SECOND, to_us: 7200 * SECOND });
        read.recv().unwrap();
        values.send(Ok(3.0)).unwrap();
        clock.end();
        let sampled = sampler.join().unwrap();
        let series = sampled.metrics.get("sched.forks", None).unwrap();
        assert_eq!(
            series.points.iter().map(|point| point.value).collect::<Vec<_>>(),
            [Some(1.0), None, Some(3.0)]
        );
        assert!(series.points.is_sorted_by_key(|point| point.at_us), "{series:?}");
        let failed = sampled.metrics.get("collector.failed", Some("scripted")).unwrap();
        assert_eq!(failed.points.last().unwrap().value, Some(1.0));
        assert!(sampled.notes[0].contains("1 failed") && sampled.notes[0].contains("no database tested"));
    }

    #[test]
    fn a_late_reading_is_not_before_one_that_ended_during_the_load() {
        let (sampler, values, read, clock) = scripted(Duration::from_secs(1));
        // The first reading ends ten seconds after the start, where the one at the start is due.
        let origin_us = now().monotonic_us - 10 * SECOND;
        clock.start(Window { origin_us, from_us: 3600 * SECOND, to_us: 7200 * SECOND });
        for value in [1.0, 2.0] {
            values.send(Ok(value)).unwrap();
            read.recv().unwrap();
        }
        clock.end();
        drop(values);
        let sampled = sampler.join().unwrap();
        assert_eq!(
            sampled.metrics.get("collector.late", Some("scripted")).unwrap().points[1].value,
            Some(1.0)
        );
        for series in &sampled.metrics.0 {
            assert!(series.points.is_sorted_by_key(|point| point.at_us), "{series:?}");
        }
    }

    #[test]
    fn a_sampler_is_ready_after_its_first_reading() {
        let (sampler, values, read, clock) = scripted(Duration::from_secs(1));
        let server = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            values.send(Ok(1.0)).unwrap();
            values
        });
        sampler.wait_until_ready();
        assert_eq!(read.try_recv(), Ok(()));
        clock.end();
        drop(server.join().unwrap());
        sampler.join().unwrap();
    }

    #[test]
    fn without_a_load_nothing_is_collected() {
        let (sampler, values, _read, clock) = scripted(Duration::from_secs(1));
        values.send(Ok(1.0)).unwrap();
        clock.end();
        let sampled = sampler.join().unwrap();
        assert_eq!(sampled.metrics, Metrics::default());
    }
}
