//! The record of a trial that has ended: the content of a bundle, as the program uses it.
//!
//! The `store` crate stores it, with versioned types of its own.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};

use crate::cell::RecordedCell;
pub use crate::environment::Environment;
use crate::limits::LimitsInForce;
use crate::load_hosts::LoadHost;
pub use crate::message::ClockReading;
use crate::message::{self, Interval, TransactionSpan};
use crate::metrics::Metrics;
use crate::paired::PairedTrial;
use crate::process_share::ProcessShare;
use crate::profile::{ProfileSummary, Stacks};
use crate::run::Basis;
use crate::statistics::Statistics;
use crate::trace::PlayedStatement;
use crate::waits::{StatementUse, Waits};
use crate::workload::{Custom, Workload};

/// All results of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRecord {
    /// The trial and its summary.
    pub trial: Trial,
    /// The machine it ran on; empty for an imported trial.
    pub environment: Environment,
    /// Server settings in force; empty if the server never answered.
    pub settings: Vec<Setting>,
    /// One entry per second of load, in order.
    pub intervals: Vec<Interval>,
    /// Transactions of workloads that record spans, in order of their starts.
    pub spans: Vec<TransactionSpan>,
    /// Metrics of the machine and the server.
    pub metrics: Metrics,
    /// Sampled states and wait events of the server's sessions, in order of time.
    pub waits: Vec<Waits>,
    /// Cost of each statement; empty if the server does not have `pg_stat_statements`.
    pub statements: Vec<StatementUse>,
    /// The executions of each statement of a trace, and its plan; empty for other workloads.
    pub played: Vec<PlayedStatement>,
    /// CPU profile by role; empty without one.
    pub stacks: Vec<Stacks>,
    /// Off-CPU profile by role, in microseconds, described by [`crate::profile::OffCpu`].
    pub off_cpu: Vec<Stacks>,
    /// Events during the load, in order of time.
    pub events: Vec<Event>,
    /// Texts stored whole: the server's log, the driver's standard error.
    pub logs: Vec<Log>,
    /// Measurements of the phases in [`Trial::phases`] whose loads ran, in their order.
    pub phases: Vec<PhaseRecord>,
}

/// Measurements of a phase that is not judged. Times are in microseconds after the start of its load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseRecord {
    /// The phase's name.
    pub name: String,
    /// One entry per second of load, in order.
    pub intervals: Vec<Interval>,
    /// Metrics of the machine and the server.
    pub metrics: Metrics,
    /// Sampled states and wait events of the server's sessions, in order of time.
    pub waits: Vec<Waits>,
    /// Cost of each statement; empty if the server does not have `pg_stat_statements`.
    pub statements: Vec<StatementUse>,
}

impl TrialRecord {
    /// The record of a trial without any collected data.
    pub fn new(trial: Trial) -> Self {
        Self {
            trial,
            environment: Environment::default(),
            settings: Vec::new(),
            intervals: Vec::new(),
            spans: Vec::new(),
            metrics: Metrics::default(),
            waits: Vec::new(),
            statements: Vec::new(),
            played: Vec::new(),
            stacks: Vec::new(),
            off_cpu: Vec::new(),
            events: Vec::new(),
            logs: Vec::new(),
            phases: Vec::new(),
        }
    }

    /// The record of one of its phases, as of a trial with that load only; none if it has no phase of this name. Events are those
    /// of the whole trial.
    pub fn of_phase(&self, name: &str) -> Option<Self> {
        let trial = self.trial.of_phase(name)?;
        if self.trial.is_judged(name) {
            return Some(Self { trial, phases: Vec::new(), ..self.clone() });
        }
        let PhaseRecord { intervals, metrics, waits, statements, .. } =
            self.phases.iter().find(|phase| phase.name == name).cloned().unwrap_or_default();
        Some(Self {
            environment: self.environment.clone(),
            settings: self.settings.clone(),
            intervals,
            metrics,
            waits,
            statements,
            events: self.events.clone(),
            ..Self::new(trial)
        })
    }

    /// Time of an event, in microseconds after the load's start by the wall clock; none if no load ran.
    pub fn after_start_us(&self, event: &Event) -> Option<i64> {
        i64::try_from(event.at.duration_since(self.trial.load_started?).as_micros()).ok()
    }

    /// Time within a span after the load's start during which a checkpoint ran, in microseconds: checkpoints whose end
    /// is in the server's log.
    pub fn checkpoint_us(&self, from_us: i64, to_us: i64) -> f64 {
        let ended = self.events.iter().filter(|event| event.kind == "checkpoint-ended");
        let within = ended.filter_map(|event| {
            let end_us = self.after_start_us(event)?;
            let start_us = end_us - event.length_us("total_us")?;
            Some((end_us.min(to_us) - start_us.max(from_us)).max(0) as f64)
        });
        within.sum()
    }
}

/// The head of a [`TrialRecord`]: enough for tables, comparisons and validity.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Unique and sortable by time: a ULID.
    pub id: String,
    /// The run that it belongs to.
    pub run: Run,
    /// The combination of factor levels that was measured.
    pub cell: RecordedCell,
    /// Number of the repeat of the cell, from 1; of a paired trial, number of its session in the run.
    pub repeat: u32,
    /// Number of the attempt at this repeat, from 1.
    pub attempt: u32,
    /// Its place in the run's order, from 1.
    pub position: u32,
    /// Reason for running it in addition to the planned trials; none for a planned one.
    pub reason: Option<String>,
    /// Name of the agent of the fleet that ran it; none without a fleet.
    pub agent: Option<String>,
    /// Its start (server start included); none if an imported trial's is unknown.
    pub started: Option<Timestamp>,
    /// Start of its load, the origin of intervals; none if no load ran.
    pub load_started: Option<Timestamp>,
    /// The two clocks, read together at the load's start and at its end; none if no load ran.
    pub clocks: Option<Clocks>,
    /// Its end; none as for `started`.
    pub ended: Option<Timestamp>,
    /// The server's own full version, such as `18.1`; none if it never answered.
    pub server_version: Option<String>,
    /// `version()` as the server prints it.
    pub server_banner: Option<String>,
    /// pgdyno's identifier of the server's programs; none if there were none, or the server is not pgdyno's own.
    pub server_build: Option<String>,
    /// Commit that the server was built from; none unless it was built from a git ref.
    pub server_commit: Option<Commit>,
    /// Limits in force on the server; none if unlimited.
    pub limits: Option<LimitsInForce>,
    /// Parameters of its profile; none without one.
    pub profile: Option<ProfileSummary>,
    /// Size of the tested database at the load's start, in bytes.
    pub database_bytes: Option<u64>,
    /// Raw read of a relation before the load; none if not done.
    pub raw_read: Option<RawRead>,
    /// Whether it may be used.
    pub validity: Validity,
    /// Results of the load; none if no load ran.
    pub summary: Option<Summary>,
    /// Transactions as counted by driver and server.
    pub accounting: Accounting,
    /// Results of the workload's own queries after the load, by the names of their metrics; without those that failed.
    pub figures: BTreeMap<String, f64>,
    /// Results of the phases that are not judged, in the order in which they ran; empty for a workload without phases.
    pub phases: Vec<PhaseOutcome>,
    /// The hosts that its load came from; empty if it came from the host of the campaign.
    pub load_hosts: Vec<LoadHost>,
    /// The slices of a paired trial; none for others.
    pub paired: Option<PairedTrial>,
    /// Source of an imported trial; none if pgdyno measured it.
    pub imported: Option<Imported>,
}

/// A commit of a git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its full id.
    pub id: String,
    /// Number of commits in its history, itself included: a descendant's is greater.
    pub position: u64,
}

impl Trial {
    /// The first attempt at the first repeat of a cell, without results.
    pub fn new(id: String, run: Run, cell: impl Into<RecordedCell>) -> Self {
        Self {
            id,
            run,
            cell: cell.into(),
            repeat: 1,
            attempt: 1,
            position: 1,
            reason: None,
            agent: None,
            started: None,
            load_started: None,
            clocks: None,
            ended: None,
            server_version: None,
            server_banner: None,
            server_build: None,
            server_commit: None,
            limits: None,
            profile: None,
            database_bytes: None,
            raw_read: None,
            validity: Validity { status: Status::Valid, findings: Vec::new() },
            summary: None,
            accounting: Accounting::default(),
            figures: BTreeMap::new(),
            phases: Vec::new(),
            load_hosts: Vec::new(),
            paired: None,
            imported: None,
        }
    }

    /// Whether this is the judged phase of its workload, whose results are the trial's.
    pub fn is_judged(&self, phase: &str) -> bool {
        let custom = self.cell.workload.known().and_then(Workload::custom);
        custom.and_then(Custom::judged_phase) == Some(phase)
    }

    /// The head of one of its phases, as of a trial with that load only; none if it has no phase of this name.
    pub fn of_phase(&self, name: &str) -> Option<Self> {
        let cell = self.cell.of_phase(name)?;
        if self.is_judged(name) {
            return Some(Self { cell, phases: Vec::new(), ..self.clone() });
        }
        // One that did not run has no results.
        let outcome = self.phases.iter().find(|phase| phase.name == name).cloned().unwrap_or_default();
        Some(Self {
            cell,
            load_started: outcome.load_started,
            clocks: outcome.clocks,
            database_bytes: outcome.database_bytes,
            validity: outcome.validity,
            summary: outcome.summary,
            accounting: outcome.accounting,
            figures: BTreeMap::new(),
            phases: Vec::new(),
            profile: None,
            raw_read: None,
            ..self.clone()
        })
    }
}

/// Results of a phase that is not judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseOutcome {
    /// The phase's name.
    pub name: String,
    /// Start of its load, the origin of its intervals; none if no load ran.
    pub load_started: Option<Timestamp>,
    /// The two clocks at the load's start and at its end; none if no load ran.
    pub clocks: Option<Clocks>,
    /// Size of the tested database at the load's start, in bytes.
    pub database_bytes: Option<u64>,
    /// Whether its results may be used.
    pub validity: Validity,
    /// Results of its load; none if no load ran.
    pub summary: Option<Summary>,
    /// Transactions as counted by driver and server.
    pub accounting: Accounting,
}

/// Sequential read of a relation's files from disk, bypassing the server and the page cache, within the server's
/// limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RawRead {
    /// The relation.
    pub relation: String,
    /// Bytes in all its segments.
    pub bytes: u64,
    /// Time it took, in microseconds.
    pub elapsed_us: u64,
}

impl RawRead {
    /// Throughput in MB (1,000,000 bytes) per second; none if it took no time.
    pub fn mb_s(&self) -> Option<f64> {
        (self.elapsed_us > 0).then(|| self.bytes as f64 / self.elapsed_us as f64)
    }
}

/// Source of an imported trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its format, such as `pgbench` or `csv`.
    pub format: String,
    /// The files it was read from.
    pub files: Vec<ImportedFile>,
    /// Line of the first file at which its row starts, from 1; none if it is the whole file.
    pub line: Option<u64>,
    /// Time of the import.
    pub at: Timestamp,
    /// Number of trials of the same import, including those still to be made.
    pub trials: u32,
}

/// A file that was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFile {
    /// Its name, without directories.
    pub name: String,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

/// The wall clock and the monotonic clock (`CLOCK_REALTIME` and `CLOCK_MONOTONIC`), at both ends of a load.
/// Measurements use the monotonic one; logs use the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Start of the load.
    pub started: ClockReading,
    /// Time at which its end was reported.
    pub ended: ClockReading,
}

impl Clocks {
    /// Change of the wall clock against the monotonic one during the load, in microseconds: it was set, or slewed.
    pub fn step_us(&self) -> i64 {
        (self.ended.unix_us - self.ended.monotonic_us) - (self.started.unix_us - self.started.monotonic_us)
    }
}

/// One execution of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Unique and sortable by time: a ULID.
    pub id: String,
    /// The campaign's name.
    pub campaign: String,
    /// The campaign's text, verbatim.
    pub campaign_toml: String,
    /// Seed of the order of trials and of the driver's random numbers; none if imported.
    pub seed: Option<u64>,
    /// CPUs that the driver could use, from which its default number of threads follows; none if unknown, as in bundles of before.
    pub processors: Option<u32>,
    /// The release of pgdyno that ran it.
    pub pgdyno_version: String,
    /// Words to select it by.
    pub tags: Vec<String>,
    /// Notes for people.
    pub notes: Option<String>,
}

impl Run {
    /// With this, the campaign's text has the run's cells and trials; none if it was imported.
    pub fn basis(&self) -> Option<Basis> {
        Some(Basis { seed: self.seed?, processors: self.processors })
    }
}

/// Results of a load. If pgdyno measured it, all are known except as noted; if it was imported, perhaps only the
/// throughput.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Length of the measured window in microseconds.
    pub window_us: Option<u64>,
    /// Transactions that ended in the window.
    pub transactions: Option<u64>,
    /// Transactions that failed, in any phase.
    pub failed: Option<u64>,
    /// Transactions per second in the window.
    pub tps: f64,
    /// Instructions per transaction, of driver, server and kernel together; none if not counted.
    pub instructions_per_transaction: Option<f64>,
    /// Latency of the window's transactions.
    pub latency: Option<Latency>,
    /// Their service time; none in a closed loop, where it equals the latency.
    pub service: Option<Latency>,
    /// Fewest transactions per second in a full second of the window; none if it has no full second, and in bundles that
    /// predate it.
    pub worst_second_tps: Option<f64>,
    /// Longest time in the window without the end of a successful transaction, in microseconds; none if unknown.
    pub longest_stall_us: Option<u64>,
    /// Results of each background workload, in the workload's order.
    pub background: Vec<BackgroundSummary>,
    /// Time to connect all clients, in microseconds.
    pub connect_us: Option<u64>,
    /// CPU time of the driver process during the load, user and system, in microseconds.
    pub driver_cpu_us: Option<u64>,
    /// Largest share of an interval of the window in which a driver thread worked, also in the kernel, 0 to 1.
    pub driver_busy_max: Option<f64>,
    /// Largest driver lag in the window, in microseconds.
    pub driver_lag_max_us: Option<f64>,
    /// The driver's event loop; none in bundles that predate it.
    pub driver_engine: Option<String>,
    /// Reason for epoll where io_uring could not be used; else none.
    pub driver_engine_reason: Option<String>,
    /// Steadiness of the window, and precision of its figures; none if the load was not meant to be steady, and in
    /// bundles that predate them.
    pub statistics: Option<Statistics>,
}

/// Results of a background workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackgroundSummary {
    /// Its name.
    pub workload: String,
    /// Its transactions that ended in the window.
    pub transactions: u64,
    /// Those that failed, in any phase.
    pub failed: u64,
    /// Transactions per second in the window.
    pub tps: f64,
    /// Transactions per second that were to start; none without a rate, and in bundles that predate it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Transactions that were due before the end of the load and had not begun; none likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// Latency of the window's transactions; none without transactions.
    pub latency: Option<Latency>,
}

impl BackgroundSummary {
    /// The transactions that were due and had not begun at the load's end, as a share of all that were due in the window; none
    /// without a rate.
    pub fn missed_share(&self) -> Option<f64> {
        let missed = self.missed? as f64;
        Some(missed / (self.transactions as f64 + missed)).filter(|share| share.is_finite())
    }
}

/// A latency distribution in figures, microseconds. All are known if pgdyno measured it; of an imported one, those that
/// were recorded: a percentile is never derived from a mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Arithmetic mean.
    pub mean_us: Option<f64>,
    /// Standard deviation.
    pub stddev_us: Option<f64>,
    /// Smallest.
    pub min_us: Option<f64>,
    /// Median.
    pub p50_us: Option<f64>,
    /// 90th percentile.
    pub p90_us: Option<f64>,
    /// 95th percentile.
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
    /// Largest.
    pub max_us: Option<f64>,
}

impl From<message::Latency> for Latency {
    fn from(known: message::Latency) -> Self {
        Self {
            mean_us: Some(known.mean_us),
            stddev_us: Some(known.stddev_us),
            min_us: Some(known.min_us),
            p50_us: Some(known.p50_us),
            p90_us: Some(known.p90_us),
            p95_us: Some(known.p95_us),
            p99_us: Some(known.p99_us),
            p999_us: Some(known.p999_us),
            max_us: Some(known.max_us),
        }
    }
}

/// Transactions of the whole load, as counted by driver and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Successful transactions counted by the driver: warm-up, window and drain.
    pub driver_transactions: Option<u64>,
    /// Commits that the server reported to the driver; none in bundles that predate this count, when each transaction
    /// was one.
    pub driver_commits: Option<u64>,
    /// Whether transactions may have committed more often than reported: by `CALL` or `DO`, by parallel workers, or by sessions
    /// that `LISTEN`, or catch up with changes of objects.
    pub has_unreported_commits: bool,
    /// Other commits caused by pgdyno: start-up of connections, preparing statements.
    pub other_commits: Option<u64>,
    /// Increase of the tested database's `xact_commit` in `pg_stat_database`.
    pub server_commits: Option<u64>,
}

impl Accounting {
    /// Commits counted by the server that the driver cannot explain; 0 if they agree, none if one of them is unknown.
    pub fn surplus(&self) -> Option<i64> {
        let explained = self.driver_commits.or(self.driver_transactions)? + self.other_commits?;
        Some(self.server_commits? as i64 - explained as i64)
    }
}

/// Whether a trial may be used, ordered from best to worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Status {
    /// May be used.
    #[default]
    Valid,
    /// May be used, considering the evidence.
    Suspect,
    /// Stored and shown, but never used.
    Invalid,
}

impl Status {
    /// Its name in tables and bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A status with its reasons.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validity {
    /// The worst status of the findings; `Valid` without findings.
    pub status: Status,
    /// Findings of the gates.
    pub findings: Vec<Finding>,
}

/// Result of one validity gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The gate's name, such as `transaction-count`.
    pub gate: String,
    /// Its verdict on the trial.
    pub status: Status,
    /// The evidence, in figures.
    pub evidence: String,
    /// Values without a finding, such as `at most 90%`; none if the gate has no threshold.
    pub threshold: Option<String>,
    /// Recommended action; none if nothing can be done.
    pub advice: Option<String>,
    /// The processes that the evidence ends with ([`busiest_in_words`](crate::process_share::busiest_in_words)), busiest
    /// first; empty if it names none.
    pub processes: Vec<ProcessShare>,
}

impl Finding {
    /// The finding in one sentence.
    pub fn sentence(&self) -> String {
        let threshold = self.threshold.as_ref().map(|threshold| format!(" (expected: {threshold})"));
        let advice = self.advice.as_ref().map(|advice| format!("; {advice}"));
        format!("{}{}{}", self.evidence, threshold.unwrap_or_default(), advice.unwrap_or_default())
    }
}

/// An event during the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// Its time, wall clock.
    pub at: Timestamp,
    /// Its kind, such as `client-died` or `server-exited`.
    pub kind: String,
    /// Description of the event.
    pub message: String,
    /// The object concerned, such as a table's name; none if it has no name.
    pub object: Option<String>,
    /// Its figures by name; the names end with their units.
    pub figures: BTreeMap<String, f64>,
}

impl Event {
    /// A figure that is a length in microseconds; at most 285 years, so that it can be added to any time.
    pub fn length_us(&self, figure: &str) -> Option<i64> {
        const MAX_US: f64 = (1_u64 << 53) as f64;
        Some(self.figures.get(figure)?.clamp(0.0, MAX_US) as i64)
    }
}

/// One server setting as in `pg_settings`, with secrets masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name.
    pub name: String,
    /// Value in the setting's base unit.
    pub value: String,
    /// Base unit.
    pub unit: Option<String>,
    /// Source of the value (`default`, `configuration file`, …).
    pub source: String,
    /// Context in which it can be changed (`postmaster`, `sighup`, …); none in bundles that predate it.
    pub context: Option<String>,
    /// Whether a configuration file has another value, pending a restart; none as above.
    pub pending_restart: Option<bool>,
}

/// A text stored whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// File name without extension, such as `server`.
    pub name: String,
    /// The text.
    pub text: String,
}
