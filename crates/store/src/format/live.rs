//! `.live-<run>.jsonl`: progress of a run, one JSON object per line, named by `kind`. The first is a [`Run`].
//!
//! A temporary file: it is removed when the run ends, and all results are in bundles.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::paired::Side;
use model::secret::MaskSecrets;
use model::{message, waits};
use serde::{Deserialize, Serialize};

use crate::hlog;
use crate::totals::Totals;

/// The format that this release writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// One line. A reader ignores unknown lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// The run, and its progress so far.
    Run(Run),
    /// Preparation in progress: a server is downloaded, a data set is filled, data are restored.
    Preparing(Preparing),
    /// A notice for the user.
    Notice(Notice),
    /// A trial has started.
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
    /// Format of the file, [`VERSION`].
    pub format: u32,
    /// The campaign's name.
    pub campaign: String,
    /// The release of pgdyno that executes the run.
    pub pgdyno_version: String,
    /// Time of its start, or of its continuation.
    pub begun: Timestamp,
    /// Number of planned trials, including completed ones.
    pub planned: usize,
    /// Cells in the campaign's order.
    pub cells: Vec<Cell>,
}

/// A cell and the number of its trials that had ended when this line was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The cell as text.
    pub cell: String,
    /// Planned trials.
    pub planned: usize,
    /// Valid trials.
    pub valid: usize,
    /// Suspect trials.
    pub suspect: usize,
    /// Invalid trials.
    pub invalid: usize,
}

/// Progress of a preparation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preparing {
    /// Time.
    pub at: Timestamp,
    /// Action and its object.
    pub what: String,
    /// Amount completed.
    pub done: u64,
    /// Total amount; null if unknown.
    pub total: Option<u64>,
}

/// A notice that does not stop the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Time.
    pub at: Timestamp,
    /// Text of the notice.
    pub text: String,
}

/// The start of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialBegins {
    /// Time.
    pub at: Timestamp,
    /// Position in the order, from 1.
    pub position: u32,
    /// Number of trials, as far as known.
    pub of: usize,
    /// The cell as text.
    pub cell: String,
    /// Index of the cell in [`Run::cells`].
    pub cell_index: usize,
    /// Repeat of the cell, from 1.
    pub repeat: u32,
    /// Attempt at this repeat, from 1.
    pub attempt: u32,
    /// Why it is run in addition to the plan; null if it was planned.
    pub reason: Option<String>,
    /// Estimated duration of this trial and those after it.
    pub remaining_us: u64,
    /// Length of the warm-up.
    pub warmup_us: u64,
    /// Length of the window.
    pub duration_us: u64,
    /// Levels of the cell by factor; empty if an earlier release writes the file.
    #[serde(default)]
    pub levels: BTreeMap<String, String>,
    /// Its side in a campaign in pairs; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// The trial of the other side, which runs at the same time; it has a line of its own when both have ended. Absent in that
    /// line, and in campaigns that are not in pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Box<TrialBegins>>,
}

/// Results of an interval of the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Start, relative to the load's start.
    pub start_us: u64,
    /// Length.
    pub width_us: u64,
    /// Phase of the load.
    pub phase: message::Phase,
    /// Transactions per second.
    pub tps: f64,
    /// Failed transactions; null if unknown.
    pub failed: Option<u64>,
    /// Median latency; null if no transaction ended, as are the fields below.
    pub p50_us: Option<f64>,
    /// 95th percentile.
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// Largest.
    pub max_us: Option<f64>,
    /// Waits of the sessions in this second; null if they were not sampled.
    pub waits: Option<Vec<Wait>>,
    /// The side of the load in a campaign in pairs; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// Transactions of all trials since the run began or was resumed, of this side in pairs, by phase; empty if an earlier release
    /// writes the file.
    #[serde(default, skip_serializing_if = "Totals::is_empty")]
    pub totals: Totals,
}

/// A state of sessions in a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// `load`, `beside`, `other`, or a server process.
    pub session: String,
    /// `wait_event_type`; `CPU` if active and not waiting; the session's state if not active.
    #[serde(rename = "type")]
    pub kind: String,
    /// `wait_event`; null if not waiting or not active.
    pub event: Option<String>,
    /// Mean number of sessions in this state.
    pub sessions: f64,
}

/// The end of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialEnded {
    /// Time.
    pub at: Timestamp,
    /// ULID of the trial.
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
    /// Transactions per second in the window; null if no load ran.
    pub tps: Option<f64>,
    /// Findings of its validity gates, if not valid.
    pub reasons: Vec<String>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Time.
    pub at: Timestamp,
    /// Outcome.
    pub how: How,
    /// Reason; null if there is none.
    pub why: Option<String>,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Everything that could run has run.
    Finished,
    /// The user interrupted it.
    Interrupted,
    /// It could not continue.
    Failed,
    /// Its process was killed: never written, but reported by readers of a file without a writer.
    Died,
}

impl Interval {
    /// Results of an interval, with the waits of the sessions in its second. Adds it to the totals of the run, or of a side.
    pub fn new(
        interval: &message::Interval,
        side: Option<Side>,
        waits: Option<&[waits::Waits]>,
        totals: &mut Totals,
    ) -> Self {
        let done: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
        let by_phase = hlog::latencies_by_phase(interval).unwrap_or_default();
        totals.add(interval, &by_phase);
        let mut latencies: hlog::Latencies =
            by_phase.into_iter().flat_map(|(_, latencies)| latencies).collect();
        latencies.sort_unstable();
        let quantile = |q| hlog::quantile_us(&latencies, q);
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
            side,
            totals: totals.clone(),
        }
    }
}

impl Wait {
    fn new(waits: &waits::Waits) -> Self {
        let (kind, event) = waits.activity();
        Self {
            session: waits.session.name().to_owned(),
            kind: kind.to_owned(),
            event: event.map(str::to_owned),
            sessions: f64::from(waits.seen) / f64::from(waits.samples.max(1)),
        }
    }
}

impl MaskSecrets for Line {
    fn mask_secrets(&mut self) {
        match self {
            Self::Run(run) => run.cells.iter_mut().for_each(|cell| cell.cell.mask_secrets()),
            Self::Preparing(preparing) => preparing.what.mask_secrets(),
            Self::Notice(notice) => notice.text.mask_secrets(),
            Self::TrialBegins(begins) => begins.mask_secrets(),
            Self::TrialEnded(ended) => ended.reasons.mask_secrets(),
            Self::Ended(ended) => ended.why.mask_secrets(),
            Self::Interval(_) => {}
        }
    }
}

impl MaskSecrets for TrialBegins {
    fn mask_secrets(&mut self) {
        self.cell.mask_secrets();
        self.levels.values_mut().for_each(MaskSecrets::mask_secrets);
        if let Some(other) = &mut self.other {
            other.mask_secrets();
        }
    }
}

/// Encodes a line, with its line break and its secrets masked.
pub(crate) fn write(line: &Line) -> serde_json::Result<Vec<u8>> {
    let mut line = line.clone();
    line.mask_secrets();
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    Ok(text)
}

/// Parses a line, and masks the secrets that an earlier release may have written; `None` if this release can't.
pub(crate) fn read(line: &[u8]) -> Option<Line> {
    let mut line: Line = serde_json::from_slice(line).ok()?;
    line.mask_secrets();
    match &line {
        Line::Run(run) if run.format != VERSION => None,
        _ => Some(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(wait(Some("active"), Some(("IO", "WALSync"))), expected("IO", Some("WalSync")));
        assert_eq!(wait(Some("idle"), Some(("Client", "ClientRead"))), expected("idle", None));
        assert_eq!(
            wait(None, Some(("Activity", "CheckpointerMain"))),
            expected("Activity", Some("CheckpointerMain"))
        );
        assert_eq!(wait(None, None), expected("CPU", None));
    }
}
