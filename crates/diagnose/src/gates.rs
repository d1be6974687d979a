//! The gates, each a function from what was observed to at most one finding. `docs/validity.md` lists them.

mod collectors;
mod driver;
mod emulation;
mod load;
mod machine;
mod server;
#[cfg(test)]
mod sound;
mod trend;

use model::machine::Acceleration;
use model::message::{ClientDeath, Interval, Phase};
use model::metrics::Metrics;
use model::record::{Accounting, Clocks, Event, Finding, Setting, Status, Summary, Validity};
use model::validity::Thresholds;

/// The gate of a trial that the user ended: it says nothing against the cell.
pub const INTERRUPTED: &str = "interrupted";

/// What the gates look at. What is not known is none or empty, and then no gate says anything of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation<'a> {
    /// Up to where a figure is sound.
    pub thresholds: Thresholds,
    /// What executed the instructions of kernel and server.
    pub acceleration: Acceleration,
    /// Number of clients that were to run.
    pub clients: u32,
    /// Whether clients wait for the time of their next transaction: an open loop.
    pub open_loop: bool,
    /// Whether clients are idle at times by intent: each has so many iterations, or one begins after the other.
    pub idle_at_times: bool,
    /// Whether the load changes data.
    pub writes: bool,
    /// Whether the server was held to a limit of memory: tasks that wait for memory then are what was asked for.
    pub memory_is_limited: bool,
    /// Why there was no load, or why it broke off; none where it ran to its end.
    pub load_failure: Option<&'a str>,
    /// How the server ended, where it ended during the trial.
    pub server_exit: Option<&'a str>,
    /// True where the user ended the trial.
    pub interrupted: bool,
    /// Clients that could not go on.
    pub deaths: &'a [ClientDeath],
    /// The transactions as both sides counted them.
    pub accounting: Accounting,
    /// Whether autovacuum was on: its workers' commits are counted with the load's. None where it isn't known.
    pub autovacuum: Option<bool>,
    /// What came out; none where no load ran.
    pub summary: Option<&'a Summary>,
    /// The load second by second.
    pub intervals: &'a [Interval],
    /// What the collectors read.
    pub metrics: &'a Metrics,
    /// The measured window: its start and its end in microseconds after the load's start; none where there was none.
    pub window: Option<(i64, i64)>,
    /// The two clocks at both ends of the load.
    pub clocks: Option<Clocks>,
    /// Events during the load.
    pub events: &'a [Event],
    /// Whether the server's log of the load is among the events: then a checkpoint that is not there did not happen.
    pub log_was_read: bool,
    /// The server's settings before the load; empty where they are not known.
    pub settings: &'a [Setting],
    /// The server's settings after the load; empty where they are not known.
    pub settings_after: &'a [Setting],
}

/// Every gate, in the order in which findings of one status are told.
const GROUPS: [&[Gate]; 8] = [
    &load::ENDED_BY_THE_USER,
    &server::GATES,
    &load::GATES,
    &emulation::GATES,
    &driver::GATES,
    &machine::GATES,
    &trend::GATES,
    &collectors::GATES,
];

/// Judges a trial: the findings of all gates, the worst first, and the worst of them.
pub fn judge(observed: &Observation) -> Validity {
    let counts_instructions = observed.acceleration == Acceleration::Icount;
    let find = |(gate, look): &Gate| {
        if counts_instructions && emulation::OF_REAL_TIME.contains(gate) {
            return None;
        }
        let Found { status, evidence, threshold, advice } = look(observed)?;
        Some(Finding { gate: (*gate).to_owned(), status, evidence, threshold, advice })
    };
    let mut findings: Vec<Finding> = GROUPS.into_iter().flatten().filter_map(find).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.status));
    let status = findings.first().map_or(Status::Valid, |finding| finding.status);
    Validity { status, findings }
}

/// A gate's name, and what it looks for.
type Gate = (&'static str, fn(&Observation) -> Option<Found>);

/// What a gate found.
#[derive(Debug)]
struct Found {
    status: Status,
    evidence: String,
    threshold: Option<String>,
    advice: Option<String>,
}

impl Found {
    /// Up to where nothing would have been found.
    fn beyond(self, threshold: impl Into<String>) -> Self {
        Self { threshold: Some(threshold.into()), ..self }
    }

    /// What to do.
    fn so(self, advice: &str) -> Self {
        Self { advice: Some(advice.to_owned()), ..self }
    }
}

fn found(status: Status, evidence: String) -> Found {
    Found { status, evidence, threshold: None, advice: None }
}

fn noted(evidence: String) -> Found {
    found(Status::Valid, evidence)
}

fn suspect(evidence: String) -> Found {
    found(Status::Suspect, evidence)
}

fn invalid(evidence: String) -> Found {
    found(Status::Invalid, evidence)
}

impl<'a> Observation<'a> {
    /// The intervals of the measured window.
    fn measured(&self) -> impl Iterator<Item = &'a Interval> + use<'a> {
        self.intervals.iter().filter(|interval| interval.phase == Phase::Measure)
    }

    /// What a counter grew by within the window.
    fn growth(&self, metric: &str, of: Option<&str>) -> Option<f64> {
        let (from_us, to_us) = self.window?;
        self.metrics.growth(metric, of, from_us, to_us)
    }

    /// A counter of microseconds as a share of the window's time.
    fn share_of_window(&self, metric: &str, of: Option<&str>) -> Option<f64> {
        let (from_us, to_us) = self.window?;
        Some(self.growth(metric, of)? / (to_us - from_us) as f64).filter(|share| share.is_finite())
    }

    /// Events from a moment after the load's start until its end was heard of.
    fn happened(&self, from_us: i64) -> impl Iterator<Item = &'a Event> + use<'a> {
        let span = self.clocks.map(|Clocks { started, ended }| {
            // Where the wall clock was set back, the load did not end before it began.
            let length_us = (ended.unix_us - started.unix_us).max(ended.monotonic_us - started.monotonic_us);
            started.unix_us + from_us..=started.unix_us + length_us
        });
        let within =
            move |event: &&Event| span.as_ref().is_some_and(|span| span.contains(&event.at.as_microsecond()));
        self.events.iter().filter(within)
    }
}

/// `3.1%`; small shares with the digits that tell them from nothing.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        small if small >= 10.0 => format!("{percent:.0}%"),
        small if small >= 0.1 || small == 0.0 => format!("{percent:.1}%"),
        _ => format!("{percent:.3}%"),
    }
}

/// `at most 5%`.
fn at_most(share: f64) -> String {
    // Rounded, for 0.07 × 100 is not quite 7.
    format!("at most {}%", (share * 1e6).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_guide_has_every_gate() {
        let guide = include_str!("../../../docs/validity.md");
        for (name, _) in GROUPS.into_iter().flatten() {
            assert!(guide.contains(&format!("\n| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn shares_are_shown_with_the_digits_that_matter() {
        assert_eq!([0.0, 0.00012, 0.0312, 0.956].map(percent), ["0.0%", "0.012%", "3.1%", "96%"]);
        assert_eq!([0.07, 0.005, 1.0].map(at_most), ["at most 7%", "at most 0.5%", "at most 100%"]);
    }
}
