//! The lag of a replica: a marker row that pgdyno writes on the server and waits for on the replica, by one clock.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::metric;
use model::metrics::{Metric, Metrics, Point, Series};
use strum::VariantArray;

use super::collector::{Collected, Collector, Context, Started};
use crate::clock::now;
use crate::error::CollectError;
use crate::load_clock::{LoadClock, Tick, Window};
use crate::postgres::{ReplayState, ReplicaProbe};

/// The shortest and the longest time between two polls for a marker, which is a fiftieth of its age: so its arrival is known to
/// a hundredth of the lag.
const SHORTEST_POLL_US: i64 = 500;
const LONGEST_POLL_US: i64 = 10_000;
const POLLS_PER_LAG: i64 = 50;
/// Share of the last lag after which a marker is first polled for.
const FIRST_POLL: f64 = 0.8;
/// Time between two samples of what replay does, unless sessions are sampled.
const DEFAULT_SAMPLE: Duration = Duration::from_millis(50);

/// A thread that measures the lag.
#[derive(Debug)]
struct Lag {
    thread: JoinHandle<Collected>,
}

pub(super) fn start(context: &Context<'_>) -> Started {
    let collect = context.subject.collect;
    let Some((companion, marker)) =
        context.subject.companion.as_ref().and_then(|companion| Some((companion, companion.marker?)))
    else {
        return Ok(None);
    };
    if collect.metrics_hz <= 0.0 {
        return Ok(None);
    }
    let server = context.session_during_load(marker.database, "marker")?;
    let replica = context.session_of_companion(companion, marker.database, "marker")?;
    let probe = ReplicaProbe::new(server, replica, companion.kind, marker.table)?;
    let interval = Duration::from_secs_f64(1.0 / collect.metrics_hz);
    let sample =
        if collect.waits_hz > 0.0 { Duration::from_secs_f64(1.0 / collect.waits_hz) } else { DEFAULT_SAMPLE };
    let clock = Arc::clone(&context.clock);
    let thread = thread::Builder::new().name("collect replica".to_owned());
    let thread = thread.spawn(move || Readings::new(probe, interval, sample).run(&clock));
    let thread = thread.map_err(CollectError::Thread)?;
    Ok(Some(Box::new(Lag { thread })))
}

impl Collector for Lag {
    fn finish(self: Box<Self>, _: &Context<'_>, _: &AtomicBool) -> Result<Collected, CollectError> {
        self.thread.join().map_err(|_| CollectError::Panicked)
    }
}

/// A marker that has not arrived yet.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    number: i64,
    written_us: i64,
}

struct Readings {
    probe: ReplicaProbe,
    interval_us: i64,
    sample_us: i64,
    /// In the order in which they were written.
    outstanding: Vec<Outstanding>,
    /// The time of the last poll that did not find the first of them.
    missed_us: i64,
    /// Times are those of the monotonic clock until the end.
    lag: Vec<Point>,
    lag_bytes: Vec<Point>,
    /// Time in each state so far, and its readings.
    spent_us: [i64; ReplayState::VARIANTS.len()],
    spent: [Vec<Point>; ReplayState::VARIANTS.len()],
    conflicts: Vec<Point>,
    last_sample_us: i64,
    reads: u32,
    failed: u32,
    first_error: Option<CollectError>,
}

impl Readings {
    fn new(probe: ReplicaProbe, interval: Duration, sample: Duration) -> Self {
        let us = |length: Duration| i64::try_from(length.as_micros()).unwrap_or(i64::MAX / 4).max(1);
        Self {
            probe,
            interval_us: us(interval),
            sample_us: us(sample),
            outstanding: Vec::new(),
            missed_us: 0,
            lag: Vec::new(),
            lag_bytes: Vec::new(),
            spent_us: Default::default(),
            spent: Default::default(),
            conflicts: Vec::new(),
            last_sample_us: 0,
            reads: 0,
            failed: 0,
            first_error: None,
        }
    }

    fn run(mut self, clock: &LoadClock) -> Collected {
        let Some(window) = clock.wait_for_start() else { return Collected::default() };
        self.last_sample_us = now().monotonic_us;
        self.read();
        let (mut marker_us, mut sample_us) = (0, self.sample_us);
        loop {
            let due_us = marker_us.min(sample_us).min(self.next_poll_us(window));
            if let Tick::Ended = clock.wait_until(window, due_us) {
                break;
            }
            let elapsed_us = now().monotonic_us - window.origin_us;
            if self.next_poll_us(window) <= elapsed_us {
                self.poll();
            }
            if sample_us <= elapsed_us {
                self.sample();
                sample_us = (elapsed_us / self.sample_us + 1) * self.sample_us;
            }
            if marker_us <= elapsed_us {
                self.read();
                self.write();
                marker_us = (elapsed_us / self.interval_us + 1) * self.interval_us;
            }
        }
        self.sample();
        self.read();
        self.poll();
        self.collected(window.origin_us)
    }

    /// Time of the next poll for the first marker that has not arrived, after the load's start.
    fn next_poll_us(&self, window: Window) -> i64 {
        let Some(first) = self.outstanding.first() else { return i64::MAX };
        let lag_us = self.lag.last().and_then(|point| point.value).unwrap_or_default();
        let age_us = self.missed_us - first.written_us;
        let next_us = if age_us < 0 {
            first.written_us + (FIRST_POLL * lag_us) as i64
        } else {
            self.missed_us + (age_us / POLLS_PER_LAG).clamp(SHORTEST_POLL_US, LONGEST_POLL_US)
        };
        next_us - window.origin_us
    }

    /// Writes a marker.
    fn write(&mut self) {
        let written = self.probe.write_marker();
        // Its commit has returned.
        let written_us = now().monotonic_us;
        match written {
            Ok(number) => self.outstanding.push(Outstanding { number, written_us }),
            Err(error) => self.fail(error),
        }
    }

    /// Polls for markers on the replica.
    fn poll(&mut self) {
        if self.outstanding.is_empty() {
            return;
        }
        let before_us = now().monotonic_us;
        let found = self.probe.read_marker();
        let at_us = before_us.midpoint(now().monotonic_us);
        match found {
            Ok(Some(number)) => {
                let has_arrived = |marker: &Outstanding| marker.number <= number;
                let arrived = self.outstanding.iter().take_while(|marker| has_arrived(marker)).count();
                for marker in self.outstanding.drain(..arrived) {
                    // At some time since the last poll that did not find it.
                    let since_us = self.missed_us.max(marker.written_us);
                    let lag_us = (since_us.midpoint(at_us) - marker.written_us).max(0);
                    self.lag.push(Point { at_us: marker.written_us, value: Some(lag_us as f64) });
                }
            }
            Ok(None) => {}
            Err(error) => self.fail(error),
        }
        self.missed_us = at_us;
    }

    /// Samples what replay does: it has done so since the last sample.
    fn sample(&mut self) {
        let state = self.probe.state();
        let at_us = now().monotonic_us;
        let since_us = at_us - self.last_sample_us;
        self.last_sample_us = at_us;
        match state {
            Ok(Some(state)) => self.spent_us[state as usize] += since_us,
            Ok(None) => {}
            Err(error) => self.fail(error),
        }
    }

    /// Reads everything that is read once per interval.
    fn read(&mut self) {
        self.reads += 1;
        let at_us = now().monotonic_us;
        match self.probe.lag_bytes() {
            Ok(value) => self.lag_bytes.push(Point { at_us, value }),
            Err(error) => {
                self.lag_bytes.push(Point { at_us, value: None });
                self.fail(error);
            }
        }
        for (points, spent_us) in self.spent.iter_mut().zip(self.spent_us) {
            points.push(Point { at_us: self.last_sample_us, value: Some(spent_us as f64) });
        }
        match self.probe.conflicts() {
            Ok(None) => {}
            Ok(value) => self.conflicts.push(Point { at_us, value }),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: CollectError) {
        self.failed += 1;
        self.first_error.get_or_insert(error);
    }

    fn collected(mut self, origin_us: i64) -> Collected {
        let at_us = now().monotonic_us;
        // The lag of those that have not arrived is unknown.
        let missing = self.outstanding.iter().map(|marker| Point { at_us: marker.written_us, value: None });
        self.lag.extend(missing);
        let mut notes = Vec::new();
        if let Some(first) = self.outstanding.first() {
            notes.push(format!(
                "collector replica: {} marker rows had not arrived on the replica at the end of the load, the first after {:.1} s",
                self.outstanding.len(),
                (at_us - first.written_us) as f64 / 1e6
            ));
        }
        if let Some(error) = &self.first_error {
            notes.push(format!("collector replica: {} queries failed: {error}", self.failed));
        }
        let mut series = vec![
            Series::new(metric!("replica.lag_us"), None, self.lag),
            Series::new(metric!("replica.lag_bytes"), None, self.lag_bytes),
        ];
        let labelled = |metric: &'static Metric, label: &str, points| {
            Series::new(metric, Some(label.to_owned()), points)
        };
        for (state, points) in ReplayState::VARIANTS.iter().zip(self.spent) {
            series.push(labelled(metric!("replica.replay_us"), state.as_str(), points));
        }
        if !self.conflicts.is_empty() {
            series.push(Series::new(metric!("replica.conflicts"), None, self.conflicts));
        }
        for point in series.iter_mut().flat_map(|series| &mut series.points) {
            point.at_us -= origin_us;
        }
        for (metric, value) in [
            (metric!("collector.reads"), f64::from(self.reads)),
            (metric!("collector.failed"), f64::from(self.failed)),
        ] {
            let points = [(0, 0.0), (at_us - origin_us, value)]
                .map(|(at_us, value)| Point { at_us, value: Some(value) });
            series.push(labelled(metric, "replica", points.into()));
        }
        Collected { metrics: Metrics(series), notes, ..Collected::default() }
    }
}
