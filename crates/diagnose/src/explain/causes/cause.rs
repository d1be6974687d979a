//! A cause, and what all detectors share.

use super::super::budget::{Budget, Component};
use super::super::confidence::Confidence;

/// A cause that limits the trial, or that users of its figures must know.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Name, such as `wal-flush`: the same in every release.
    pub name: &'static str,
    /// Size of the cause.
    pub share: f64,
    /// The quantity that it is a share of.
    pub of: Measure,
    /// The verdict, in one sentence.
    pub sentence: String,
    /// The figures that support it.
    pub evidence: Vec<String>,
    /// What to try next.
    pub next: &'static str,
    /// Confidence in the cause.
    pub confidence: Confidence,
}

/// The quantity that a cause's share refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The mean latency of a transaction.
    Latency,
    /// The time of the measured window.
    Window,
    /// The machine's CPU time in the window.
    MachineCpu,
}

impl Measure {
    /// Display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Window => "the window",
            Self::MachineCpu => "the machine's CPU time",
        }
    }
}

impl Cause {
    /// Its weight among causes of one confidence. A share of the latency shows what limits; a share of the window or of
    /// the machine shows concurrent activity and counts less.
    pub fn weight(&self) -> f64 {
        match self.of {
            Measure::Latency => self.share,
            Measure::Window | Measure::MachineCpu => self.share / 2.0,
        }
    }

    /// A cause with a share of the latency.
    pub(super) fn of_latency(
        budget: &Budget,
        name: &'static str,
        share: f64,
        sentence: String,
        evidence: Vec<String>,
        next: &'static str,
    ) -> Self {
        let (of, confidence) = (Measure::Latency, budget.confidence());
        Self { name, share, of, sentence, evidence, next, confidence }
    }

    /// An activity in addition to the load. What it cost the load is not measured: its confidence is medium.
    pub(super) fn activity(
        (name, share, of): (&'static str, f64, Measure),
        sentence: String,
        evidence: Vec<String>,
        next: &'static str,
    ) -> Self {
        Self { name, share, of, sentence, evidence, next, confidence: Confidence::Medium }
    }
}

/// The smallest share of the latency for which a cause is reported.
pub(super) const MIN_SHARE: f64 = 0.15;
/// The same for causes that have a share of the latency in every trial, and limit it only if they are most of it.
pub(super) const MIN_DOMINANT_SHARE: f64 = 0.5;
/// The smallest share of the window, or of the machine's CPU time, for which an activity is reported.
pub(super) const MIN_ACTIVITY: f64 = 0.10;

pub(super) fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

pub(super) fn ms(us: f64) -> String {
    format!("{:.3} ms", us / 1e3)
}

/// Parts of some components as text, largest first.
pub(super) fn evidence_of(budget: &Budget, components: &[Component]) -> Vec<String> {
    let parts = budget.parts.iter().filter(|part| components.contains(&part.component));
    parts.map(|part| format!("{}: {} per transaction", part.name(), ms(part.us))).collect()
}
