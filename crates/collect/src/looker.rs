//! Looks at the server's sessions many times a second, in a thread of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::metric;
use model::metrics::{Point, Series};
use model::record::Event;
use model::waits::Waits;

use crate::clock::now;
use crate::postgres::WaitSampler;
use crate::sampler::{LoadClock, Tick, Window};

const SECOND_US: i64 = 1_000_000;

/// What was seen.
#[derive(Debug, Default)]
pub struct Looked {
    /// What sessions did, second by second.
    pub waits: Vec<Waits>,
    /// Who held others back.
    pub events: Vec<Event>,
    /// How often it was looked, and how often that failed or was left out.
    pub series: Vec<Series>,
    /// What went wrong, for people.
    pub trouble: Option<String>,
}

/// A thread that looks at full periods of the load.
#[derive(Debug)]
pub struct Looker {
    clock: Arc<LoadClock>,
    latest: Arc<Mutex<Vec<Waits>>>,
    thread: Option<JoinHandle<Looked>>,
}

impl Looker {
    /// Waits for the load's beginning.
    pub fn start(sampler: WaitSampler, period: Duration) -> Self {
        let clock = Arc::new(LoadClock::default());
        let latest = Arc::new(Mutex::new(Vec::new()));
        let (of_thread, told) = (Arc::clone(&clock), Arc::clone(&latest));
        let work = move || look(sampler, &of_thread, period, &told);
        // Without a thread there are no looks, as without any other resource.
        let thread = thread::Builder::new().name("collect waits".to_owned()).spawn(work).ok();
        Self { clock, latest, thread }
    }

    /// The load has begun.
    pub fn load_began(&self, window: Window) {
        self.clock.begin(window);
    }

    /// What was seen in the last second that has been looked at to its end, while the load runs.
    pub fn latest(&self) -> Vec<Waits> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives what was seen; nothing where no load began.
    pub fn finish(self) -> Looked {
        self.clock.end();
        self.thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

fn look(mut sampler: WaitSampler, clock: &LoadClock, period: Duration, latest: &Mutex<Vec<Waits>>) -> Looked {
    let period_us = i64::try_from(period.as_micros()).unwrap_or(i64::MAX).max(1);
    let Some(window) = clock.beginning() else { return Looked::default() };
    let (mut looks, mut left_out, mut failed, mut spent_us) = (0_i64, 0_i64, 0_i64, 0_i64);
    let mut why = None;
    let mut due_us = 0;
    // After the window only transactions in flight are left.
    while due_us < window.to_us {
        let Tick::Due = clock.wait_until(window, due_us) else { break };
        let begun_us = now().monotonic_us;
        looks += 1;
        if let Err(error) = sampler.look() {
            failed += 1;
            why.get_or_insert(error);
        }
        let ended_us = now().monotonic_us;
        spent_us += ended_us - begun_us;
        // What the time has gone past is left out: looks that are caught up with would all see the same.
        let next_us = (due_us / period_us + 1) * period_us;
        let past_us = ended_us - window.origin_us;
        let looked_at_us = due_us;
        due_us = next_us.max(past_us.div_euclid(period_us) * period_us);
        left_out += (due_us - next_us) / period_us;
        if due_us / SECOND_US != looked_at_us / SECOND_US {
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = sampler.latest(window.origin_us);
        }
    }
    clock.wait_for_end();
    let at_us = now().monotonic_us - window.origin_us;
    let series = [
        (metric!("collector.reads"), looks),
        (metric!("collector.late"), left_out),
        (metric!("collector.failed"), failed),
        (metric!("collector.spent_us"), spent_us),
    ]
    .map(|(metric, value)| {
        // From zero, so that its growth is all of it.
        let points = vec![Point { at_us: 0, value: Some(0.0) }, Point { at_us, value: Some(value as f64) }];
        Series::new(metric, Some("waits".to_owned()), points)
    });
    let trouble = why.map(|why| format!("collector waits: of {looks} looks, {failed} failed: {why}"));
    Looked { waits: sampler.rows(window.origin_us), events: sampler.events(), series: series.into(), trouble }
}
