//! Samples of the server's sessions many times per second, in a thread of its own.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::message::SessionSamples;
use model::metric;
use model::metrics::{Metrics, Point, Series};
use model::waits::Waits;

use super::collector::{CONTROL_DATABASE, Collected, Collector, Context, Started};
use crate::clock::now;
use crate::error::CollectError;
use crate::load_clock::{LoadClock, Tick};
use crate::postgres::WaitSampler;

const SECOND_US: i64 = 1_000_000;

/// A thread that samples at full periods of the load.
#[derive(Debug)]
struct SessionSampler {
    thread: JoinHandle<Collected>,
}

pub(super) fn start(context: &Context<'_>) -> Started {
    let hz = context.subject.collect.waits_hz;
    if hz <= 0.0 {
        return Ok(None);
    }
    let session = context.session_during_load(CONTROL_DATABASE, "waits")?;
    let sampler = WaitSampler::new(session, &context.subject.load, context.subject.plays_trace)?;
    let period = Duration::from_secs_f64(1.0 / hz);
    let (clock, latest) = (Arc::clone(&context.clock), Arc::clone(&context.latest_waits));
    let of_trace = Arc::clone(&context.session_samples);
    let thread = thread::Builder::new().name("collect waits".to_owned());
    let thread = thread.spawn(move || sample(sampler, &clock, period, &latest, &of_trace));
    let thread = thread.map_err(CollectError::Thread)?;
    Ok(Some(Box::new(SessionSampler { thread })))
}

impl Collector for SessionSampler {
    fn finish(self: Box<Self>, _: &Context<'_>, _: &AtomicBool) -> Result<Collected, CollectError> {
        self.thread.join().map_err(|_| CollectError::Panicked)
    }
}

fn sample(
    mut sampler: WaitSampler,
    clock: &LoadClock,
    period: Duration,
    latest: &Mutex<Vec<Waits>>,
    of_trace: &Mutex<Option<SessionSamples>>,
) -> Collected {
    let period_us = i64::try_from(period.as_micros()).unwrap_or(i64::MAX).max(1);
    let Some(window) = clock.wait_for_start() else { return Collected::default() };
    let (mut samples, mut skipped, mut failed, mut spent_us) = (0_i64, 0_i64, 0_i64, 0_i64);
    let mut first_error = None;
    let mut due_us = 0;
    // After the window there are only transactions in flight.
    while due_us < window.to_us {
        let Tick::Due = clock.wait_until(window, due_us) else { break };
        let started_us = now().monotonic_us;
        if !clock.is_paused() {
            samples += 1;
            match sampler.sample() {
                Ok(sessions) => {
                    let mut of_trace = of_trace.lock().unwrap_or_else(PoisonError::into_inner);
                    let samples = of_trace.get_or_insert_default();
                    samples.until_us = started_us - window.origin_us;
                    samples.sessions.extend(sessions.into_iter().map(|mut session| {
                        session.started_us -= window.origin_us;
                        session
                    }));
                }
                Err(error) => {
                    failed += 1;
                    first_error.get_or_insert(error);
                }
            }
        }
        let ended_us = now().monotonic_us;
        spent_us += ended_us - started_us;
        // Missed samples are skipped: catching up would sample the same moment several times.
        let next_us = (due_us / period_us + 1) * period_us;
        let elapsed_us = ended_us - window.origin_us;
        let sampled_us = due_us;
        due_us = next_us.max(elapsed_us.div_euclid(period_us) * period_us);
        skipped += (due_us - next_us) / period_us;
        if due_us / SECOND_US != sampled_us / SECOND_US {
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = sampler.latest(window.origin_us);
        }
    }
    clock.wait_for_end();
    let at_us = now().monotonic_us - window.origin_us;
    let series = [
        (metric!("collector.reads"), samples),
        (metric!("collector.late"), skipped),
        (metric!("collector.failed"), failed),
        (metric!("collector.spent_us"), spent_us),
    ]
    .map(|(metric, value)| {
        // A first point of zero makes the whole value its growth.
        let points = vec![Point { at_us: 0, value: Some(0.0) }, Point { at_us, value: Some(value as f64) }];
        Series::new(metric, Some("waits".to_owned()), points)
    });
    let note =
        first_error.map(|error| format!("collector waits: of {samples} samples, {failed} failed: {error}"));
    Collected {
        metrics: Metrics(series.into()),
        waits: sampler.rows(window.origin_us),
        events: sampler.events(),
        notes: note.into_iter().collect(),
        ..Collected::default()
    }
}
