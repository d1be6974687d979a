//! The gates, each a function from an observation to at most one finding. `docs/validity.md` lists them.

mod background;
mod collectors;
mod driver;
mod emulation;
#[cfg(test)]
mod fixture;
mod load;
mod load_hosts;
mod machine;
mod server;
mod trend;

use model::load_hosts::LoadHost;
use model::machine::Acceleration;
use model::message::{ClientDeath, Interval, Phase};
use model::metrics::Metrics;
use model::paired::PairedTrial;
use model::process_share::{ProcessShare, busiest_in_words};
use model::record::{Accounting, Clocks, Event, Finding, Setting, Status, Summary, Validity};
use model::validity::Thresholds;
use model::waits::Waits;

pub use background::BACKGROUND_RATE;
pub use load::{NO_KERNEL, NO_SERVER, no_kernel, no_server};
pub use machine::{lost_agent, other_pgdynos};

/// The gate of a trial that the user interrupted: it does not count against the cell.
pub const INTERRUPTED: &str = "interrupted";

/// The inputs of the gates. Unknown ones are `None` or empty, and then the gates that need them find nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation<'a> {
    /// Thresholds of the gates.
    pub thresholds: Thresholds,
    /// What executed the instructions of kernel and server.
    pub acceleration: Acceleration,
    /// Requested number of clients.
    pub clients: u32,
    /// Number of the driver's threads.
    pub driver_threads: Option<u32>,
    /// Number that they would have by default.
    pub default_driver_threads: Option<u32>,
    /// The CPUs that the driver is pinned to; empty if it may have any.
    pub driver_cpus: &'a [u32],
    /// The hosts that the load came from; empty if it came from this host.
    pub load_hosts: &'a [LoadHost],
    /// Whether the loop is open: clients wait until their next transaction is due.
    pub open_loop: bool,
    /// Slices of the load if it alternates with that of another server on this machine.
    pub paired: Option<&'a PairedTrial>,
    /// Whether clients are idle at times by design: each has a number of iterations, or they start one after another.
    pub idle_at_times: bool,
    /// Whether the load changes data.
    pub writes: bool,
    /// Whether the server's memory was limited: tasks that wait for memory are then expected.
    pub memory_is_limited: bool,
    /// Why there was no load, or why it ended early; `None` if it ran to its end.
    pub load_failure: Option<&'a str>,
    /// How the server exited, if it did during the trial.
    pub server_exit: Option<&'a str>,
    /// Why the standby, subscriber or pooler next to the server no longer works; `None` if it does, or there is none.
    pub companion_failure: Option<&'a str>,
    /// Whether the user interrupted the trial.
    pub interrupted: bool,
    /// Why the data are inconsistent after the load; `None` if they are not, or were not checked.
    pub inconsistency: Option<&'a str>,
    /// Clients that could not continue.
    pub deaths: &'a [ClientDeath],
    /// Transactions as counted by the driver and by the server.
    pub accounting: Accounting,
    /// Whether autovacuum was on: its workers' commits are counted with the load's. `None` if unknown.
    pub autovacuum: Option<bool>,
    /// Datagrams that the kernel dropped during the load of a server whose sessions report their commits by datagrams.
    pub lost_statistics: u64,
    /// Results; `None` if no load ran.
    pub summary: Option<&'a Summary>,
    /// The load per second.
    pub intervals: &'a [Interval],
    /// Readings of the collectors.
    pub metrics: &'a Metrics,
    /// States of the sessions.
    pub waits: &'a [Waits],
    /// Start and end of the measured window in microseconds after the load's start; `None` if there was none.
    pub window: Option<(i64, i64)>,
    /// The clocks at the start and at the end of the load.
    pub clocks: Option<Clocks>,
    /// Events during the load.
    pub events: &'a [Event],
    /// Whether the events include the server's log of the load: then a checkpoint that is absent did not happen.
    pub log_was_read: bool,
    /// The server's settings before the load; empty if unknown.
    pub settings: &'a [Setting],
    /// The server's settings after the load; empty if unknown.
    pub settings_after: &'a [Setting],
}

/// All gates, in the order in which findings of one status are reported.
const GROUPS: [&[Gate]; 11] = [
    &load::INTERRUPTED_GATES,
    &server::GATES,
    &load_hosts::LOSS_GATES,
    &load::GATES,
    &background::GATES,
    &emulation::GATES,
    &driver::GATES,
    &load_hosts::GATES,
    &machine::GATES,
    &trend::GATES,
    &collectors::GATES,
];

/// The gates that do not apply to one side of a session: the other side is a part of what they look for, pauses are in the
/// window, and what slows the machine down slows both sides, so that their ratio has its noise but no bias.
const UNPAIRED_GATES: [&str; 8] = [
    "littles-law",
    "trend",
    "driver-threads",
    "driver-starved",
    "no-checkpoint",
    "cpu-steal",
    "cpu-frequency",
    "window-mismatch",
];

/// Judges a trial: the findings of all gates, the worst first, and the worst status.
pub fn judge(observed: &Observation) -> Validity {
    let counts_instructions = observed.acceleration == Acceleration::Icount;
    let find = |(gate, check): &Gate| {
        if counts_instructions && emulation::REAL_TIME_GATES.contains(gate)
            || observed.paired.is_some() && UNPAIRED_GATES.contains(gate)
        {
            return None;
        }
        Some(check(observed)?.named(gate))
    };
    let mut findings: Vec<Finding> = GROUPS.into_iter().flatten().filter_map(find).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.status));
    let status = findings.first().map_or(Status::Valid, |finding| finding.status);
    Validity { status, findings }
}

/// A gate's name and function.
type Gate = (&'static str, fn(&Observation) -> Option<GateFinding>);

/// The finding of a gate.
#[derive(Debug)]
struct GateFinding {
    status: Status,
    evidence: String,
    threshold: Option<String>,
    advice: Option<String>,
    processes: Vec<ProcessShare>,
}

impl GateFinding {
    /// Adds the threshold up to which nothing is found.
    fn with_threshold(self, threshold: impl Into<String>) -> Self {
        Self { threshold: Some(threshold.into()), ..self }
    }

    /// The finding of the gate with this name.
    fn named(self, gate: &str) -> Finding {
        let Self { status, evidence, threshold, advice, processes } = self;
        Finding { gate: gate.to_owned(), status, evidence, threshold, advice, processes }
    }

    /// Adds the advice.
    fn with_advice(self, advice: &str) -> Self {
        Self { advice: Some(advice.to_owned()), ..self }
    }

    /// Adds the processes that used CPU time, also to the evidence.
    fn with_processes(self, processes: Vec<ProcessShare>) -> Self {
        let words = busiest_in_words(&processes).map(|words| format!("; {words}"));
        Self { evidence: self.evidence + &words.unwrap_or_default(), processes, ..self }
    }
}

fn finding(status: Status, evidence: String) -> GateFinding {
    GateFinding { status, evidence, threshold: None, advice: None, processes: Vec::new() }
}

fn noted(evidence: String) -> GateFinding {
    finding(Status::Valid, evidence)
}

fn suspect(evidence: String) -> GateFinding {
    finding(Status::Suspect, evidence)
}

fn invalid(evidence: String) -> GateFinding {
    finding(Status::Invalid, evidence)
}

impl<'a> Observation<'a> {
    /// The intervals of the measured window.
    fn measured(&self) -> impl Iterator<Item = &'a Interval> + use<'a> {
        self.intervals.iter().filter(|interval| interval.phase == Phase::Measure)
    }

    /// Growth of a counter in the window.
    fn growth(&self, metric: &str, of: Option<&str>) -> Option<f64> {
        let (from_us, to_us) = self.window?;
        self.metrics.growth(metric, of, from_us, to_us)
    }

    /// A counter of microseconds as a share of the window's time.
    fn share_of_window(&self, metric: &str, of: Option<&str>) -> Option<f64> {
        let (from_us, to_us) = self.window?;
        Some(self.growth(metric, of)? / (to_us - from_us) as f64).filter(|share| share.is_finite())
    }

    /// Events from a time after the load's start until pgdyno received its end.
    fn events_after(&self, from_us: i64) -> impl Iterator<Item = &'a Event> + use<'a> {
        let span = self.clocks.map(|Clocks { started, ended }| {
            // If the wall clock was set back, the load still did not end before it began.
            let length_us = (ended.unix_us - started.unix_us).max(ended.monotonic_us - started.monotonic_us);
            started.unix_us + from_us..=started.unix_us + length_us
        });
        let within =
            move |event: &&Event| span.as_ref().is_some_and(|span| span.contains(&event.at.as_microsecond()));
        self.events.iter().filter(within)
    }
}

/// `3.1%`; small shares with enough digits to distinguish them from zero.
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
    // Rounded, because 0.07 × 100 is not exactly 7.
    format!("at most {}%", (share * 1e6).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_every_gate() {
        let guide = include_str!("../../../docs/validity.md");
        for (name, _) in GROUPS.into_iter().flatten() {
            assert!(guide.contains(&format!("\n| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn every_gate_is_known_to_a_check_of_a_store() {
        for (name, _) in GROUPS.into_iter().flatten() {
            assert!(model::validity::GATES.contains(name), "{name}");
        }
    }

    #[test]
    fn what_affects_both_sides_of_a_session_is_not_found_in_one() {
        let known: Vec<&str> = GROUPS.into_iter().flatten().map(|(gate, _)| *gate).collect();
        assert!(UNPAIRED_GATES.into_iter().all(|gate| known.contains(&gate)), "{known:?}");
        let mut trial = fixture::TrialFixture::new();
        trial.counter("role.busiest_wait_us", Some("driver"), 900_000.0);
        trial.counter("cpu.steal_us", Some("all"), 1_000_000.0);
        trial.gauge("cpu.frequency_hz", Some("cpu0"), &[3.5e9, 3.5e9, 3.0e9, 2.5e9, 2.0e9]);
        let side = trial.side(3_000_000);
        let found = |paired| fixture::gates(&Observation { paired, ..trial.observed() }).1;
        let mut unpaired = found(None);
        unpaired.sort_unstable();
        assert_eq!(unpaired, ["cpu-frequency", "cpu-steal", "driver-starved"]);
        assert!(found(Some(&side)).is_empty());
        // Other gates still apply.
        trial.counter("vm.pswpout", None, 2.0);
        assert_eq!(fixture::gates(&Observation { paired: Some(&side), ..trial.observed() }).1, ["swap"]);
    }

    #[test]
    fn shares_are_shown_with_the_digits_that_matter() {
        assert_eq!([0.0, 0.00012, 0.0312, 0.956].map(percent), ["0.0%", "0.012%", "3.1%", "96%"]);
        assert_eq!([0.07, 0.005, 1.0].map(at_most), ["at most 7%", "at most 0.5%", "at most 100%"]);
    }
}
