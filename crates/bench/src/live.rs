//! The live view: the state of the running load, about once a second.

use std::time::Duration;

use driver::{Load, Record};
use model::message::Phase;

use crate::figures::{grouped, ms};
use crate::plan::planned_window;

/// The display of a running load: a status that is replaced each time, and lines that stay.
pub trait LiveView {
    /// A load is about to connect. `step` is its name in a search, `planned` its length with warm-up, if known.
    fn begin(&mut self, step: Option<&str>, planned: Option<Duration>);
    /// The status of the load; `at` is the time since its start, none before.
    fn status(&mut self, at: Option<Duration>, text: &str);
    /// A line that stays.
    fn line(&mut self, text: &str);
    /// The load has ended.
    fn end(&mut self);
}

/// The state of a load in a live view.
pub(crate) struct Live<'a> {
    view: Option<&'a mut dyn LiveView>,
    /// The sum of the intervals since the last status.
    since: Option<Record>,
    failed: u64,
    aborted: u32,
}

/// Minimum time between two statuses.
const MIN_STATUS_INTERVAL_NS: u64 = 950_000_000;

/// Aborted clients that have a line each.
const MAX_ABORTS_SHOWN: u32 = 3;

impl<'a> Live<'a> {
    pub(crate) fn new(view: Option<&'a mut dyn LiveView>) -> Self {
        Self { view, since: None, failed: 0, aborted: 0 }
    }

    /// A load is about to connect.
    pub(crate) fn begin(&mut self, load: &Load, step: Option<&str>) {
        self.since = None;
        (self.failed, self.aborted) = (0, 0);
        let Some(view) = &mut self.view else { return };
        view.begin(step, planned_window(load).map(|window| load.warmup + window));
        view.status(None, &format!("connecting {} clients", load.clients()));
    }

    pub(crate) fn connected(&mut self, took: Duration) {
        let Some(view) = &mut self.view else { return };
        view.status(None, &format!("connected in {} ms", ms(took.as_nanos() as f64)));
    }

    pub(crate) fn interval(&mut self, record: &Record) {
        let Some(view) = &mut self.view else { return };
        self.failed += record.scripts.iter().map(|script| script.failures.sum()).sum::<u64>();
        match &mut self.since {
            Some(since) if since.phase == record.phase => since.add(record),
            since => *since = Some(record.clone()),
        }
        let Some(since) = self.since.take_if(|since| since.end_ns - since.start_ns >= MIN_STATUS_INTERVAL_NS)
        else {
            return;
        };
        view.status(Some(Duration::from_nanos(record.end_ns)), &status(&since, self.failed));
    }

    /// A client was aborted: which, where and why.
    pub(crate) fn aborted(&mut self, text: &str) {
        self.aborted += 1;
        if self.aborted <= MAX_ABORTS_SHOWN {
            self.line(&format!("aborted: {text}"));
        } else if self.aborted == MAX_ABORTS_SHOWN + 1 {
            self.line("aborted: further clients");
        }
    }

    pub(crate) fn line(&mut self, text: &str) {
        if let Some(view) = &mut self.view {
            view.line(text);
        }
    }

    pub(crate) fn end(&mut self) {
        if let Some(view) = &mut self.view {
            view.end();
        }
    }
}

fn status(since: &Record, failed: u64) -> String {
    let sum = since.ended();
    let done = sum.as_ref().map_or(0, |sum| sum.moments.count);
    let tps = done as f64 * 1e9 / (since.end_ns - since.start_ns) as f64;
    let latency = sum.map(|sum| sum.latency).filter(|latency| !latency.is_empty());
    let p99 = latency.map(|latency| ms(latency.value_at_quantile(0.99) as f64));
    let phase = match since.phase {
        Phase::Warmup => "  warm-up",
        Phase::Measure => "",
        Phase::Drain => "  last transactions",
    };
    format!(
        "{:>9} tps  p99 {:>9} ms  failed {}  busy {:.0} %{phase}",
        grouped(tps),
        p99.as_deref().unwrap_or("–"),
        grouped(failed as f64),
        since.busy * 100.0
    )
}
