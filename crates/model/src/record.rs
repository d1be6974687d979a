//! What is known of a trial when it has ended: the content of a bundle, as the program uses it.
//!
//! How it is stored is the `store` crate's business, which keeps versioned types of its own.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};

use crate::cell::RecordedCell;
pub use crate::environment::Environment;
use crate::limits::LimitsInForce;
pub use crate::message::ClockReading;
use crate::message::{self, Interval, TransactionSpan};
use crate::metrics::Metrics;
use crate::profile::{Profiled, Stacks};
use crate::statistics::Statistics;
use crate::waits::{StatementUse, Waits};

/// Everything that one trial leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRecord {
    /// What was run and what came out.
    pub trial: Trial,
    /// The machine it ran on; nothing where the trial was imported.
    pub environment: Environment,
    /// Every server setting as it was in force; empty where the server never answered.
    pub settings: Vec<Setting>,
    /// One entry a second of load, in order.
    pub intervals: Vec<Interval>,
    /// When each transaction ran, in order of their starts, of workloads whose spans are asked for.
    pub spans: Vec<TransactionSpan>,
    /// What the collectors read of the machine and the server.
    pub metrics: Metrics,
    /// What the server's sessions were seen doing, in order of time.
    pub waits: Vec<Waits>,
    /// What each statement cost; empty where the server does not have `pg_stat_statements`.
    pub statements: Vec<StatementUse>,
    /// Which functions processors were in, by role; empty where there was no profile.
    pub stacks: Vec<Stacks>,
    /// How long threads waited, in microseconds, by role and by where; as [`crate::profile::OffCpu`] says.
    pub off_cpu: Vec<Stacks>,
    /// Events during the load, in order of time.
    pub events: Vec<Event>,
    /// Texts kept whole: the server's log, the driver's standard error.
    pub logs: Vec<Log>,
}

impl TrialRecord {
    /// The record of a trial of which nothing has been gathered.
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
            stacks: Vec::new(),
            off_cpu: Vec::new(),
            events: Vec::new(),
            logs: Vec::new(),
        }
    }

    /// When an event happened, in microseconds after the load's start by the wall clock; none where no load ran.
    pub fn after_start_us(&self, event: &Event) -> Option<i64> {
        i64::try_from(event.at.duration_since(self.trial.load_started?).as_micros()).ok()
    }

    /// How much of a span after the load's start a checkpoint was running, in microseconds: of those that the server's
    /// log has the end of.
    pub fn checkpoint_us(&self, from_us: i64, to_us: i64) -> f64 {
        let ended = self.events.iter().filter(|event| event.kind == "checkpoint-ended");
        let within = ended.filter_map(|event| {
            let end_us = self.after_start_us(event)?;
            let start_us = end_us - *event.figures.get("total_us")? as i64;
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
    /// The run of a campaign that it belongs to.
    pub run: Run,
    /// The combination of factor levels that was measured.
    pub cell: RecordedCell,
    /// Which repeat of the cell, from 1.
    pub repeat: u32,
    /// Which try at this repeat, from 1.
    pub attempt: u32,
    /// Its place in the run's order, from 1.
    pub position: u32,
    /// Why it was run beyond what was planned from the start; none where it was planned.
    pub reason: Option<String>,
    /// When it began (server start included); none where it was imported and is not known.
    pub started: Option<Timestamp>,
    /// When its load began, from where intervals are counted; none where no load ran.
    pub load_started: Option<Timestamp>,
    /// The two clocks, read together at the load's start and at its end; none where no load ran.
    pub clocks: Option<Clocks>,
    /// When it ended; none as above.
    pub ended: Option<Timestamp>,
    /// The server's own full version, such as `18.1`; none where it never answered.
    pub server_version: Option<String>,
    /// `version()` as the server prints it.
    pub server_banner: Option<String>,
    /// Which programs the server is, as pgdyno tells them apart; none where it was never there, or is not pgdyno's own.
    pub server_build: Option<String>,
    /// Commit that the server was built from; none unless it was built from a git ref.
    pub server_commit: Option<Commit>,
    /// The limits that the server was under; none where there were none.
    pub limits: Option<LimitsInForce>,
    /// How its profile was taken; none where there was none.
    pub profile: Option<Profiled>,
    /// Size of the tested database when the load began, in bytes.
    pub database_bytes: Option<u64>,
    /// What the disk gave of a relation before the load, past the server; none where it was not read so.
    pub raw_read: Option<RawRead>,
    /// Whether it may be used.
    pub validity: Validity,
    /// What came out; none where no load ran.
    pub summary: Option<Summary>,
    /// The two counts of the same transactions.
    pub accounting: Accounting,
    /// Where it was imported from; none where pgdyno measured it.
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
    /// The first try at the first repeat of a cell, of which nothing is known yet.
    pub fn new(id: String, run: Run, cell: impl Into<RecordedCell>) -> Self {
        Self {
            id,
            run,
            cell: cell.into(),
            repeat: 1,
            attempt: 1,
            position: 1,
            reason: None,
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
            imported: None,
        }
    }
}

/// The files of a relation, read from the disk one after the other past the server and the page cache, within the server's
/// limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RawRead {
    /// The relation.
    pub relation: String,
    /// Bytes of all its segments.
    pub bytes: u64,
    /// How long it took, in microseconds.
    pub elapsed_us: u64,
}

impl RawRead {
    /// In MB (1,000,000 bytes) a second; none where it took no time.
    pub fn mb_s(&self) -> Option<f64> {
        (self.elapsed_us > 0).then(|| self.bytes as f64 / self.elapsed_us as f64)
    }
}

/// Where an imported trial comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// What wrote it, such as `pgbench` or `csv`.
    pub format: String,
    /// The files that it was read from.
    pub files: Vec<ImportedFile>,
    /// The line of the first file where its row begins, from 1; none where the whole file is of it.
    pub line: Option<u64>,
    /// When it was imported.
    pub at: Timestamp,
    /// How many trials the same import has made, or is making.
    pub trials: u32,
}

/// A file that was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFile {
    /// Its name, without directories.
    pub name: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// The wall clock and the monotonic clock (`CLOCK_REALTIME` and `CLOCK_MONOTONIC`), at both ends of a load. Everything
/// that is measured is stamped by the monotonic one; logs have the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// When the load began.
    pub started: ClockReading,
    /// When its end was heard of.
    pub ended: ClockReading,
}

impl Clocks {
    /// How far the wall clock moved against the monotonic one during the load, in microseconds: it was set, or slewed.
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
    /// The campaign's text, to the letter.
    pub campaign_toml: String,
    /// Seed of the order of trials and of the driver's random numbers; none where it was imported.
    pub seed: Option<u64>,
    /// The release of pgdyno that ran it.
    pub pgdyno_version: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// What somebody wanted to be remembered.
    pub notes: Option<String>,
}

/// What a load brought. Of what pgdyno measured, all is known but where it is said; of what was imported, perhaps only
/// the throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Length of the measured window in microseconds.
    pub window_us: Option<u64>,
    /// Transactions that ended in the window.
    pub transactions: Option<u64>,
    /// Transactions that failed, in any phase.
    pub failed: Option<u64>,
    /// Transactions per second in the window.
    pub tps: f64,
    /// Instructions for each transaction, of driver, server and kernel together; none where they were not counted.
    pub instructions_per_transaction: Option<f64>,
    /// Latency of the window's transactions.
    pub latency: Option<Latency>,
    /// Their service time; none in a closed loop, where it is no other.
    pub service: Option<Latency>,
    /// Results of each background workload, in the workload's order.
    pub background: Vec<BackgroundSummary>,
    /// Time it took to connect all clients, in microseconds.
    pub connect_us: Option<u64>,
    /// CPU time of the driver process during the load, user and system, in microseconds.
    pub driver_cpu_us: Option<u64>,
    /// Largest share of an interval of the window in which a driver thread was not waiting, 0 to 1.
    pub driver_busy_max: Option<f64>,
    /// Largest driver lag in the window, in microseconds.
    pub driver_lag_max_us: Option<f64>,
    /// The driver's event loop; none in bundles that were made before it was told.
    pub driver_engine: Option<String>,
    /// Why it was not io_uring; none where it was, or where epoll was asked for.
    pub driver_engine_reason: Option<String>,
    /// How steady the window was, and how sure its figures are; none where one second was not to be as the other, and in
    /// bundles that were made before it was told.
    pub statistics: Option<Statistics>,
}

/// Results of a background workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackgroundSummary {
    /// Its name.
    pub workload: String,
    /// Its transactions that ended in the window.
    pub transactions: u64,
    /// Those that failed, in any phase.
    pub failed: u64,
    /// Transactions per second in the window.
    pub tps: f64,
    /// Latency of the window's transactions; none where there were none.
    pub latency: Option<Latency>,
}

/// A latency distribution in figures, microseconds. Of what pgdyno measured all are known; of what was imported, those
/// that were written down: a percentile is never made of a mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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

/// The transactions as both sides counted them, over the whole load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Transactions that the driver saw succeed: warm-up, window and drain.
    pub driver_transactions: Option<u64>,
    /// Commits that the server told the driver of; none in bundles that were made before they were counted, when each
    /// transaction was one.
    pub driver_commits: Option<u64>,
    /// Whether transactions may have committed more often than they told: by `CALL` or `DO`, or by their
    /// parallel workers.
    pub untold_commits: bool,
    /// Commits that pgdyno caused besides these: start-up of connections, preparing statements.
    pub other_commits: Option<u64>,
    /// Growth of the tested database's `xact_commit` in `pg_stat_database`.
    pub server_commits: Option<u64>,
}

impl Accounting {
    /// Commits that the server counted and the driver cannot explain; 0 where the two agree, none where one of them is
    /// not known.
    pub fn surplus(&self) -> Option<i64> {
        let explained = self.driver_commits.or(self.driver_transactions)? + self.other_commits?;
        Some(self.server_commits? as i64 - explained as i64)
    }
}

/// Whether a trial may be used. The order is from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Status {
    /// May be used.
    Valid,
    /// May be used with the evidence in mind.
    Suspect,
    /// Is kept, shown, and never used.
    Invalid,
}

impl Status {
    /// Its name in tables and bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A status with its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The worst of the findings; `Valid` where there is none.
    pub status: Status,
    /// What the gates found.
    pub findings: Vec<Finding>,
}

/// What one validity gate found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The gate's name, such as `transaction-count`.
    pub gate: String,
    /// What it makes of the trial.
    pub status: Status,
    /// The evidence, in figures.
    pub evidence: String,
    /// Up to where it would have found nothing, such as `at most 90%`; none where it knows no such place.
    pub threshold: Option<String>,
    /// What to do; none where nothing is to be done.
    pub advice: Option<String>,
}

impl Finding {
    /// All that it says, in one sentence.
    pub fn in_words(&self) -> String {
        let threshold = self.threshold.as_ref().map(|threshold| format!(" (sound: {threshold})"));
        let advice = self.advice.as_ref().map(|advice| format!("; {advice}"));
        format!("{}{}{}", self.evidence, threshold.unwrap_or_default(), advice.unwrap_or_default())
    }
}

/// An event during the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// When, wall clock.
    pub at: Timestamp,
    /// What kind of thing, such as `client-died` or `server-exited`.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// What it happened to, such as a table's name; none where that has no name.
    pub of: Option<String>,
    /// Its figures by name, with their units at the names' ends.
    pub figures: BTreeMap<String, f64>,
}

/// One server setting as in `pg_settings`, a value that is a secret masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name.
    pub name: String,
    /// Value in the setting's base unit.
    pub value: String,
    /// Base unit.
    pub unit: Option<String>,
    /// Where the value comes from (`default`, `configuration file`, …).
    pub source: String,
    /// When it can be changed (`postmaster`, `sighup`, …); none in bundles that were made before it was kept.
    pub context: Option<String>,
    /// Whether a configuration file has another value, which waits for a restart; none as above.
    pub pending_restart: Option<bool>,
}

/// A text kept whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// File name without ending, such as `server`.
    pub name: String,
    /// The text.
    pub text: String,
}
