//! `.live-<run>.jsonl`: what a run does now, one JSON object a line, told apart by `kind`. The first line is a [`Run`].
//!
//! Never kept: it is gone when the run has ended, and everything in it that counts is in bundles.

use jiff::Timestamp;
use model::{message, waits};
use serde::{Deserialize, Serialize};

use crate::hlog;

/// The format that this release writes, and the only one it reads.
pub const VERSION: u32 = 1;

/// One line. A reader leaves out lines that it does not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// What runs, and what has been done of it.
    Run(Run),
    /// A server is fetched, a data set is filled, data are put back.
    Preparing(Preparing),
    /// Something to know.
    Notice(Notice),
    /// A trial begins.
    TrialBegins(TrialBegins),
    /// An interval of its load has ended.
    Interval(Interval),
    /// A trial has ended and is in the store.
    TrialEnded(TrialEnded),
    /// The run has ended: the last line.
    Ended(Ended),
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`VERSION`].
    pub format: u32,
    /// The campaign's name.
    pub campaign: String,
    /// The release of pgdyno that runs it.
    pub pgdyno_version: String,
    /// When it was begun, or resumed.
    pub begun: Timestamp,
    /// Trials that are planned, those done included.
    pub planned: usize,
    /// In the campaign's order.
    pub cells: Vec<Cell>,
}

/// A cell and its trials that had ended when this was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// In words.
    pub cell: String,
    /// Trials that are planned.
    pub planned: usize,
    /// Those that may be used.
    pub valid: usize,
    /// Those that may be used with care.
    pub suspect: usize,
    /// Those that may not.
    pub invalid: usize,
}

/// How far a preparation is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preparing {
    /// When.
    pub at: Timestamp,
    /// What is being done, on what.
    pub what: String,
    /// How much of it is done.
    pub done: u64,
    /// How much there is; null where it is not known.
    pub total: Option<u64>,
}

/// Something to know though the work goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// When.
    pub at: Timestamp,
    /// What.
    pub text: String,
}

/// The trial that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialBegins {
    /// When.
    pub at: Timestamp,
    /// Its place in the order, from 1.
    pub position: u32,
    /// Number of trials, as far as is known.
    pub of: usize,
    /// Its cell in words.
    pub cell: String,
    /// Its cell's place in [`Run::cells`].
    pub cell_index: usize,
    /// Which repeat of the cell, from 1.
    pub repeat: u32,
    /// Which try at this repeat, from 1.
    pub attempt: u32,
    /// Why it is run beyond what was planned; null where it was planned.
    pub reason: Option<String>,
    /// About how long this and the trials after it will take.
    pub remaining_us: u64,
    /// Load before the measured window.
    pub warmup_us: u64,
    /// Length of the window.
    pub duration_us: u64,
}

/// What came of an interval of the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Start, after the load's start.
    pub start_us: u64,
    /// Length.
    pub width_us: u64,
    /// The part of the load it belongs to.
    pub phase: message::Phase,
    /// Transactions a second.
    pub tps: f64,
    /// Transactions that failed; null where it is not known.
    pub failed: Option<u64>,
    /// Median latency; null where no transaction ended, as those below.
    pub p50_us: Option<f64>,
    /// 95th percentile.
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// Largest.
    pub max_us: Option<f64>,
    /// What sessions were doing in its second; null where it was not looked.
    pub waits: Option<Vec<Wait>>,
}

/// A way in which sessions spent a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// `load`, `beside`, `other`, or a process of the server.
    pub session: String,
    /// `wait_event_type`; `CPU` where it was active and did not wait; its state where it was not active.
    #[serde(rename = "type")]
    pub kind: String,
    /// `wait_event`; null where it did not wait or was not active.
    pub event: Option<String>,
    /// How many sessions did so, on the mean.
    pub sessions: f64,
}

/// The trial that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialEnded {
    /// When.
    pub at: Timestamp,
    /// Its ULID.
    pub id: String,
    /// As in [`TrialBegins`].
    pub position: u32,
    /// As in [`TrialBegins`].
    pub cell_index: usize,
    /// As in [`TrialBegins`].
    pub repeat: u32,
    /// As in [`TrialBegins`].
    pub attempt: u32,
    /// `valid`, `suspect` or `invalid`.
    pub validity: String,
    /// Transactions a second in its window; null where no load ran.
    pub tps: Option<f64>,
    /// What its validity gates found against it.
    pub reasons: Vec<String>,
}

/// How a run has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// When.
    pub at: Timestamp,
    /// In a word.
    pub how: How,
    /// Why; null where there is nothing to say.
    pub why: Option<String>,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Everything was run that could be.
    Finished,
    /// The user ended it.
    Interrupted,
    /// It could not go on.
    Failed,
    /// Its process was killed: never written, said by who finds the file without its writer.
    Died,
}

impl Interval {
    /// Of an interval and of what sessions were doing in its second.
    pub fn new(interval: &message::Interval, waits: Option<&[waits::Waits]>) -> Self {
        let done: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
        let mut latencies = hlog::latencies(interval).unwrap_or_default();
        latencies.sort_unstable();
        let quantile = |q| quantile_us(&latencies, q);
        Self {
            start_us: interval.start_us,
            width_us: interval.width_us,
            phase: interval.phase,
            tps: done as f64 * 1e6 / interval.width_us.max(1) as f64,
            failed: interval.scripts.iter().map(|script| script.failed).sum(),
            p50_us: quantile(0.5),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            max_us: quantile(1.0),
            waits: waits.map(|waits| waits.iter().map(Wait::new).collect()),
        }
    }
}

/// The least latency that this share of the transactions does not exceed. `latencies` ascend.
fn quantile_us(latencies: &[(u64, u64)], q: f64) -> Option<f64> {
    let all: u64 = latencies.iter().map(|(_, count)| count).sum();
    let wanted = ((all as f64 * q).ceil() as u64).max(1);
    let mut seen = 0;
    let found = latencies.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    });
    found.map(|(ns, _)| *ns as f64 / 1e3)
}

impl Wait {
    fn new(waits: &waits::Waits) -> Self {
        let (kind, event) = waits.doing();
        Self {
            session: waits.session.name().to_owned(),
            kind: kind.to_owned(),
            event: event.map(str::to_owned),
            sessions: f64::from(waits.seen) / f64::from(waits.samples.max(1)),
        }
    }
}

/// A line as text, with its end.
pub(crate) fn write(line: &Line) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

/// Reads a line; none where this release can't.
pub(crate) fn read(line: &[u8]) -> Option<Line> {
    let line = serde_json::from_slice(line).ok()?;
    match &line {
        Line::Run(run) if run.format != VERSION => None,
        _ => Some(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_least_that_so_many_do_not_exceed() {
        let latencies = [(1_000, 50), (2_000, 45), (9_000, 5)];
        let quantile = |q| quantile_us(&latencies, q);
        assert_eq!([0.5, 0.51, 0.95, 0.96, 1.0].map(quantile), [1.0, 2.0, 2.0, 9.0, 9.0].map(Some));
        assert_eq!(quantile_us(&[], 0.5), None);
    }

    #[test]
    fn sessions_wait_run_or_are_idle() {
        let waits = |state: Option<&str>, waited: Option<(&str, &str)>| waits::Waits {
            at_us: 0,
            width_us: 1_000_000,
            samples: 20,
            session: waits::SessionKind::Load,
            state: state.map(str::to_owned),
            event_type: waited.map(|(kind, _)| kind.to_owned()),
            event: waited.map(|(_, event)| event.to_owned()),
            seen: 30,
        };
        let wait = |state, waited| {
            let wait = Wait::new(&waits(state, waited));
            assert_eq!(wait.sessions, 1.5);
            (wait.kind, wait.event)
        };
        let expected = |kind: &str, event: Option<&str>| (kind.to_owned(), event.map(str::to_owned));
        assert_eq!(wait(Some("active"), None), expected("CPU", None));
        assert_eq!(wait(Some("active"), Some(("IO", "WALSync"))), expected("IO", Some("WALSync")));
        assert_eq!(wait(Some("idle"), Some(("Client", "ClientRead"))), expected("idle", None));
        assert_eq!(
            wait(None, Some(("Activity", "CheckpointerMain"))),
            expected("Activity", Some("CheckpointerMain"))
        );
        assert_eq!(wait(None, None), expected("CPU", None));
    }
}
