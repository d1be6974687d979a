//! `trial.json`: the head of a bundle.
//!
//! In an imported trial, everything except identity and validity may be null.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::limits;
use model::message;
use model::paired;
use model::process_share;
use model::record;
use model::record::Trial as Model;
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::{FORMATS, LoadHost, Profile, Statistics, TRIAL, from_json, known, to_json};
use crate::error::Defect;

/// The document in `trial.json`; the campaign's text is in `campaign.toml` next to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Format of the whole bundle, one of [`FORMATS`].
    pub format: u32,
    /// ULID; also the name of the bundle's directory.
    pub id: String,
    /// The trial's run.
    pub run: Run,
    /// The measured combination of factor levels.
    pub cell: Cell,
    /// Repeat of the cell, from 1.
    pub repeat: u32,
    /// Attempt at this repeat, from 1.
    pub attempt: u32,
    /// Position in the run's order, from 1.
    pub position: u32,
    /// Why it was run in addition to the plan; null if it was planned.
    #[serde(default)]
    pub reason: Option<String>,
    /// Name of the agent of the fleet that ran it; absent without a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Start of the trial, RFC 3339, UTC.
    pub started: Option<Timestamp>,
    /// Start of the load, RFC 3339, UTC; null if no load ran.
    pub load_started: Option<Timestamp>,
    /// The clocks at the start and at the end of the load; null if no load ran, and in older bundles.
    #[serde(default)]
    pub clocks: Option<Clocks>,
    /// End of the trial, RFC 3339, UTC.
    pub ended: Option<Timestamp>,
    /// The server's full version.
    pub server_version: Option<String>,
    /// `version()` as the server prints it.
    pub server_banner: Option<String>,
    /// The server's programs; null if they are not pgdyno's own.
    #[serde(default)]
    pub server_build: Option<String>,
    /// Commit that the server was built from; null unless it was built from a git ref, and in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_commit: Option<Commit>,
    /// The limits in force on the server; null if there were none, and in older bundles.
    #[serde(default)]
    pub limits: Option<Limits>,
    /// How its profile was taken; null if there was none, and in older bundles.
    #[serde(default)]
    pub profile: Option<Profile>,
    /// Size of the tested database when the load began, in bytes.
    pub database_bytes: Option<u64>,
    /// The raw read of a relation before the load, bypassing the server; null if there was none, and in older bundles.
    #[serde(default)]
    pub raw_read: Option<RawRead>,
    /// Whether it may be used.
    pub validity: Validity,
    /// The results; null if no load ran.
    pub summary: Option<Summary>,
    /// Transactions as counted by the driver and by the server.
    pub accounting: Accounting,
    /// The results of the workload's own queries after the load, by the names of their metrics, such as `figure.recall`; without
    /// those that failed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
    /// The results of the phases that are not judged; absent for a workload without phases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// The hosts that the load came from; absent if it came from the host of the campaign, and in older bundles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_hosts: Vec<LoadHost>,
    /// The slices of a paired trial; absent in others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired: Option<PairedTrial>,
    /// Source of an imported trial; null if pgdyno measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

/// Results of a phase that is not judged, as of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Start of its load, RFC 3339, UTC; null if no load ran.
    pub load_started: Option<Timestamp>,
    /// The clocks at the start and at the end of its load; null if no load ran.
    pub clocks: Option<Clocks>,
    /// Size of the tested database when its load began, in bytes.
    pub database_bytes: Option<u64>,
    /// Whether its results may be used.
    pub validity: Validity,
    /// The results; null if no load ran.
    pub summary: Option<Summary>,
    /// Transactions as counted by the driver and by the server.
    pub accounting: Accounting,
}

/// A trial that is one side of a session of paired trials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedTrial {
    /// Number of the session in its run, from 1; the other side's trial has the same.
    pub session: u32,
    /// `a`, the baseline, or `b`.
    pub side: String,
    /// Slices of load in the order of the pairs, without warm-up.
    pub slices: Vec<Slice>,
}

/// A slice of load on one side of a session. Times are in microseconds after the load's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Start.
    pub start_us: u64,
    /// Time after which no transaction began.
    pub pause_us: u64,
    /// End of its last transaction.
    pub end_us: u64,
    /// Succeeded transactions that began after the guard.
    pub transactions: u64,
    /// Failed transactions that began after the guard.
    pub failed: u64,
    /// Transactions that began in the guard, the first tenth of the slice.
    pub guarded: u64,
    /// Time of each client from its first begin after the guard to its last end, summed over the clients.
    pub client_us: u64,
    /// Sum of the latencies of `transactions`.
    pub latency_us: u64,
    /// Sum of their service times; null in a closed loop.
    pub service_us: Option<u64>,
    /// CPU time of the server's processes in the slice; null if unknown.
    pub server_cpu_us: Option<u64>,
    /// The same in the pause before it; null if unknown.
    pub paused_cpu_us: Option<u64>,
    /// Instructions of the server's programs in the slice, without the kernel's; absent where the CPU does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_instructions: Option<u64>,
}

/// A commit of a git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its full id.
    pub id: String,
    /// Number of commits in its history, itself included.
    pub position: u64,
}

/// A raw read of a relation's files, bypassing the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawRead {
    /// The relation.
    pub relation: String,
    /// Bytes of all its segments.
    pub bytes: u64,
    /// Duration in microseconds.
    pub elapsed_us: u64,
}

/// Source of an imported trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Format of the files: `pgbench`, `csv`, `pgbench-tools`.
    pub format: String,
    /// The imported files.
    pub files: Vec<ImportedFile>,
    /// Line of the first file where the trial's row begins, from 1; null if the whole file belongs to it.
    pub line: Option<u64>,
    /// Time of the import, RFC 3339, UTC.
    pub at: Timestamp,
    /// Number of trials of the import.
    pub trials: u32,
}

/// An imported file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// Name, without directories.
    pub name: String,
    /// SHA-256 of the content, in hexadecimal digits.
    pub sha256: String,
}

/// The wall clock and the monotonic clock at the start and at the end of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// At the load's start.
    pub started: ClockReading,
    /// When pgdyno received its end.
    pub ended: ClockReading,
}

/// Both clocks at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// `CLOCK_MONOTONIC`, in microseconds.
    pub monotonic_us: i64,
    /// `CLOCK_REALTIME`, in microseconds since the Unix epoch.
    pub unix_us: i64,
}

/// One execution of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// ULID.
    pub id: String,
    /// The campaign's name.
    pub campaign: String,
    /// Seed of the order of trials and of the driver's random numbers.
    pub seed: Option<u64>,
    /// CPUs that the driver could use, from which its default number of threads follows; absent in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// The release of pgdyno that ran or imported it.
    pub pgdyno_version: String,
    /// Tags to find the run by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The user's notes.
    #[serde(default)]
    pub notes: Option<String>,
}

/// The limits in force on a server, as reported by the kernel; a null field was not limited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Version of the control groups: `v1` or `v2`.
    pub cgroup: String,
    /// Directories of the server's groups.
    pub groups: Vec<String>,
    /// Memory limit, page cache included.
    pub memory_bytes: Option<u64>,
    /// How often the kernel reclaimed memory because of the limit, since the server's start.
    pub memory_limit_hits: Option<u64>,
    /// Processes that the kernel killed for lack of memory, since the server's start.
    pub oom_kills: Option<u64>,
    /// The limited block device.
    pub device: Option<String>,
    /// Limit of bytes read per second.
    pub read_bytes_s: Option<u64>,
    /// Limit of read requests per second.
    pub read_iops: Option<u64>,
    /// Limit of bytes written per second.
    pub write_bytes_s: Option<u64>,
    /// Limit of write requests per second.
    pub write_iops: Option<u64>,
}

/// A status with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validity {
    /// `valid`, `suspect` or `invalid`.
    pub status: String,
    /// Findings of the gates.
    pub findings: Vec<Finding>,
}

/// The finding of a validity gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The gate's name.
    pub gate: String,
    /// `valid`, `suspect` or `invalid`.
    pub status: String,
    /// The evidence, in figures.
    pub evidence: String,
    /// The bound up to which the gate finds nothing; null if there is none, and in older bundles.
    #[serde(default)]
    pub threshold: Option<String>,
    /// What to do; null if there is nothing to do, and in older bundles.
    #[serde(default)]
    pub advice: Option<String>,
    /// The processes that used CPU time, busiest first; absent if the finding is not about any, and in older bundles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessShare>,
}

/// CPU time that the processes of a name used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessShare {
    /// Their name; null for all others together.
    pub name: Option<String>,
    /// Their share of the machine's CPU time, 0 to 1.
    pub share: f64,
}

/// Results of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Length of the measured window in microseconds.
    pub window_us: Option<u64>,
    /// Transactions that ended in the window.
    pub transactions: Option<u64>,
    /// Transactions that failed, in any phase.
    pub failed: Option<u64>,
    /// Transactions per second in the window.
    pub tps: f64,
    /// Instructions per transaction, of driver, server and kernel together; null if they were not counted.
    #[serde(default)]
    pub instructions_per_transaction: Option<f64>,
    /// Latency of the window's transactions; null if there were none.
    pub latency: Option<Latency>,
    /// Service time of the window's transactions; null in a closed loop, where it equals latency.
    #[serde(default)]
    pub service: Option<Latency>,
    /// Fewest transactions per second in a full second of the window; absent if it has none, and in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_second_tps: Option<f64>,
    /// Longest time in the window without the end of a successful transaction, in microseconds; absent if unknown, and in older
    /// bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_stall_us: Option<u64>,
    /// Results of each background workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "beside")]
    pub background: Vec<BackgroundSummary>,
    /// Time to connect all clients, in microseconds.
    pub connect_us: Option<u64>,
    /// CPU time of the driver process, in microseconds.
    pub driver_cpu_us: Option<u64>,
    /// Largest share of an interval in which a driver thread was not waiting, 0 to 1.
    pub driver_busy_max: Option<f64>,
    /// Largest driver lag in the window, in microseconds.
    pub driver_lag_max_us: Option<f64>,
    /// The driver's event loop, `io_uring` or `epoll`; null in older bundles.
    #[serde(default)]
    pub driver_engine: Option<String>,
    /// Why `io_uring` was not used; null if it was.
    #[serde(default)]
    pub driver_engine_reason: Option<String>,
    /// Stability of the window and precision of its figures; null if its seconds were not meant to be alike, and in
    /// older bundles.
    #[serde(default)]
    pub statistics: Option<Statistics>,
}

/// Results of a background workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundSummary {
    /// Name of the workload.
    pub workload: String,
    /// Transactions that ended in the window.
    pub transactions: u64,
    /// Failed transactions, in any phase.
    pub failed: u64,
    /// Transactions per second in the window.
    pub tps: f64,
    /// Transactions per second that were to start; absent without a rate, and in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Transactions that were due before the end of the load and had not begun; absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// Latency of the window's transactions; null if there were none.
    pub latency: Option<Latency>,
}

/// Figures of a latency distribution, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// The transactions of the whole load, as counted by the driver and by the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounting {
    /// Successful transactions counted by the driver: warm-up, window and drain.
    pub driver_transactions: Option<u64>,
    /// Commits that the server reported to the driver; null in older bundles, in which each transaction was one.
    #[serde(default)]
    pub driver_commits: Option<u64>,
    /// Whether transactions may have committed more often than reported.
    #[serde(default, rename = "untold_commits")]
    pub has_unreported_commits: bool,
    /// Other commits caused by pgdyno.
    pub other_commits: Option<u64>,
    /// Growth of the tested database's `xact_commit`.
    pub server_commits: Option<u64>,
}

mirrors!(ClockReading, record::ClockReading { monotonic_us, unix_us });
mirrors!(Clocks, record::Clocks {} into { started, ended } each {});

/// Encodes the document of a trial in a bundle of this format.
pub(crate) fn write(trial: &Model, format: u32) -> Result<Vec<u8>, Defect> {
    to_json(TRIAL, &Trial::new(trial, format))
}

/// Parses the document and adds the campaign's text.
pub(crate) fn read(document: &[u8], campaign_toml: String) -> Result<Model, Defect> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let Head { format } = from_json(TRIAL, document)?;
    if !FORMATS.contains(&format) {
        let [first, second, last] = FORMATS;
        let reason = format!(
            "it has bundle format {format}; this release of pgdyno reads formats {first}, {second} and {last}"
        );
        let is_newer = format > last;
        return Err(if is_newer { Defect::newer(TRIAL, reason) } else { Defect::older(TRIAL, reason) });
    }
    from_json::<Trial>(TRIAL, document)?.into_model(campaign_toml)
}

impl Trial {
    fn new(trial: &Model, format: u32) -> Self {
        Self {
            format,
            id: trial.id.clone(),
            run: Run {
                id: trial.run.id.clone(),
                campaign: trial.run.campaign.clone(),
                seed: trial.run.seed,
                processors: trial.run.processors,
                pgdyno_version: trial.run.pgdyno_version.clone(),
                tags: trial.run.tags.clone(),
                notes: trial.run.notes.clone(),
            },
            cell: Cell::new(&trial.cell, trial.imported.is_some()),
            repeat: trial.repeat,
            attempt: trial.attempt,
            position: trial.position,
            reason: trial.reason.clone(),
            agent: trial.agent.clone(),
            started: trial.started,
            load_started: trial.load_started,
            clocks: trial.clocks.map(Clocks::from),
            ended: trial.ended,
            server_version: trial.server_version.clone(),
            server_banner: trial.server_banner.clone(),
            server_build: trial.server_build.clone(),
            server_commit: trial.server_commit.clone().map(Commit::from),
            limits: trial.limits.clone().map(Limits::from),
            profile: trial.profile.as_ref().map(Profile::from),
            database_bytes: trial.database_bytes,
            raw_read: trial.raw_read.clone().map(RawRead::from),
            validity: Validity::from(&trial.validity),
            summary: trial.summary.as_ref().map(Summary::from),
            accounting: trial.accounting.into(),
            figures: trial.figures.clone(),
            phases: trial.phases.iter().map(Phase::from).collect(),
            load_hosts: trial.load_hosts.iter().cloned().map(LoadHost::from).collect(),
            paired: trial.paired.as_ref().map(PairedTrial::from),
            imported: trial.imported.clone().map(Imported::from),
        }
    }
}

impl Trial {
    fn into_model(self, campaign_toml: String) -> Result<Model, Defect> {
        Ok(Model {
            id: self.id,
            run: record::Run {
                id: self.run.id,
                campaign: self.run.campaign,
                campaign_toml,
                seed: self.run.seed,
                processors: self.run.processors,
                pgdyno_version: self.run.pgdyno_version,
                tags: self.run.tags,
                notes: self.run.notes,
            },
            cell: self.cell.into_model(self.imported.is_some())?,
            repeat: self.repeat,
            attempt: self.attempt,
            position: self.position,
            reason: self.reason,
            agent: self.agent,
            started: self.started,
            load_started: self.load_started,
            clocks: self.clocks.map(record::Clocks::from),
            ended: self.ended,
            server_version: self.server_version,
            server_banner: self.server_banner,
            server_build: self.server_build,
            server_commit: self.server_commit.map(record::Commit::from),
            limits: self.limits.map(limits::LimitsInForce::from),
            profile: self.profile.map(Profile::into_model).transpose()?,
            database_bytes: self.database_bytes,
            raw_read: self.raw_read.map(record::RawRead::from),
            validity: self.validity.into_model()?,
            summary: self.summary.map(Summary::into_model),
            accounting: self.accounting.into(),
            figures: self.figures,
            phases: self.phases.into_iter().map(Phase::into_model).collect::<Result<_, _>>()?,
            load_hosts: self.load_hosts.into_iter().map(Into::into).collect(),
            paired: self.paired.map(PairedTrial::into_model).transpose()?,
            imported: self.imported.map(record::Imported::from),
        })
    }
}

impl From<&record::PhaseOutcome> for Phase {
    fn from(phase: &record::PhaseOutcome) -> Self {
        Self {
            name: phase.name.clone(),
            load_started: phase.load_started,
            clocks: phase.clocks.map(Clocks::from),
            database_bytes: phase.database_bytes,
            validity: Validity::from(&phase.validity),
            summary: phase.summary.as_ref().map(Summary::from),
            accounting: phase.accounting.into(),
        }
    }
}

impl Phase {
    fn into_model(self) -> Result<record::PhaseOutcome, Defect> {
        Ok(record::PhaseOutcome {
            name: self.name,
            load_started: self.load_started,
            clocks: self.clocks.map(record::Clocks::from),
            database_bytes: self.database_bytes,
            validity: self.validity.into_model()?,
            summary: self.summary.map(Summary::into_model),
            accounting: self.accounting.into(),
        })
    }
}

impl From<&record::Validity> for Validity {
    fn from(validity: &record::Validity) -> Self {
        Self {
            status: validity.status.as_str().to_owned(),
            findings: validity.findings.iter().map(Finding::from).collect(),
        }
    }
}

impl Validity {
    fn into_model(self) -> Result<record::Validity, Defect> {
        let findings = self.findings.into_iter().map(Finding::into_model);
        Ok(record::Validity {
            status: known(TRIAL, "validity status", &self.status)?,
            findings: findings.collect::<Result<_, _>>()?,
        })
    }
}

impl From<&paired::PairedTrial> for PairedTrial {
    fn from(trial: &paired::PairedTrial) -> Self {
        Self {
            session: trial.session,
            side: trial.side.as_str().to_owned(),
            slices: trial.slices.iter().map(Slice::from).collect(),
        }
    }
}

impl PairedTrial {
    fn into_model(self) -> Result<paired::PairedTrial, Defect> {
        Ok(paired::PairedTrial {
            session: self.session,
            side: known(TRIAL, "side of a pair", &self.side)?,
            slices: self.slices.into_iter().map(paired::MeasuredSlice::from).collect(),
        })
    }
}

impl From<&paired::MeasuredSlice> for Slice {
    fn from(slice: &paired::MeasuredSlice) -> Self {
        let load = slice.load;
        Self {
            start_us: load.start_us,
            pause_us: load.pause_us,
            end_us: load.end_us,
            transactions: load.transactions,
            failed: load.failed,
            guarded: load.guarded,
            client_us: load.client_us,
            latency_us: load.latency_us,
            service_us: load.service_us,
            server_cpu_us: slice.server_cpu_us,
            paused_cpu_us: slice.paused_cpu_us,
            server_instructions: slice.server_instructions,
        }
    }
}

impl From<Slice> for paired::MeasuredSlice {
    fn from(slice: Slice) -> Self {
        Self {
            load: message::Slice {
                start_us: slice.start_us,
                pause_us: slice.pause_us,
                end_us: slice.end_us,
                transactions: slice.transactions,
                failed: slice.failed,
                guarded: slice.guarded,
                client_us: slice.client_us,
                latency_us: slice.latency_us,
                service_us: slice.service_us,
            },
            server_cpu_us: slice.server_cpu_us,
            paused_cpu_us: slice.paused_cpu_us,
            server_instructions: slice.server_instructions,
        }
    }
}

impl From<&record::Finding> for Finding {
    fn from(finding: &record::Finding) -> Self {
        Self {
            gate: finding.gate.clone(),
            status: finding.status.as_str().to_owned(),
            evidence: finding.evidence.clone(),
            threshold: finding.threshold.clone(),
            advice: finding.advice.clone(),
            processes: finding.processes.iter().map(ProcessShare::from).collect(),
        }
    }
}

impl Finding {
    fn into_model(self) -> Result<record::Finding, Defect> {
        let Self { gate, status, evidence, threshold, advice, processes } = self;
        let status = known(TRIAL, "validity status", &status)?;
        let processes = processes.into_iter().map(ProcessShare::into_model).collect();
        Ok(record::Finding { gate, status, evidence, threshold, advice, processes })
    }
}

impl From<&process_share::ProcessShare> for ProcessShare {
    fn from(process: &process_share::ProcessShare) -> Self {
        Self { name: process.name.clone(), share: process.share }
    }
}

impl ProcessShare {
    fn into_model(self) -> process_share::ProcessShare {
        let Self { name, share } = self;
        process_share::ProcessShare { name, share }
    }
}

impl From<&record::Summary> for Summary {
    fn from(summary: &record::Summary) -> Self {
        Self {
            window_us: summary.window_us,
            transactions: summary.transactions,
            failed: summary.failed,
            tps: summary.tps,
            instructions_per_transaction: summary.instructions_per_transaction,
            latency: summary.latency.clone().map(Latency::from),
            service: summary.service.clone().map(Latency::from),
            worst_second_tps: summary.worst_second_tps,
            longest_stall_us: summary.longest_stall_us,
            background: summary.background.iter().map(BackgroundSummary::from).collect(),
            connect_us: summary.connect_us,
            driver_cpu_us: summary.driver_cpu_us,
            driver_busy_max: summary.driver_busy_max,
            driver_lag_max_us: summary.driver_lag_max_us,
            driver_engine: summary.driver_engine.clone(),
            driver_engine_reason: summary.driver_engine_reason.clone(),
            statistics: summary.statistics.clone().map(Statistics::from),
        }
    }
}

impl Summary {
    fn into_model(self) -> record::Summary {
        record::Summary {
            window_us: self.window_us,
            transactions: self.transactions,
            failed: self.failed,
            tps: self.tps,
            instructions_per_transaction: self.instructions_per_transaction,
            latency: self.latency.map(record::Latency::from),
            service: self.service.map(record::Latency::from),
            worst_second_tps: self.worst_second_tps,
            longest_stall_us: self.longest_stall_us,
            background: self.background.into_iter().map(BackgroundSummary::into_model).collect(),
            connect_us: self.connect_us,
            driver_cpu_us: self.driver_cpu_us,
            driver_busy_max: self.driver_busy_max,
            driver_lag_max_us: self.driver_lag_max_us,
            driver_engine: self.driver_engine,
            driver_engine_reason: self.driver_engine_reason,
            statistics: self.statistics.map(Into::into),
        }
    }
}

impl From<&record::BackgroundSummary> for BackgroundSummary {
    fn from(background: &record::BackgroundSummary) -> Self {
        Self {
            workload: background.workload.clone(),
            transactions: background.transactions,
            failed: background.failed,
            tps: background.tps,
            rate: background.rate,
            missed: background.missed,
            latency: background.latency.clone().map(Latency::from),
        }
    }
}

impl BackgroundSummary {
    fn into_model(self) -> record::BackgroundSummary {
        record::BackgroundSummary {
            workload: self.workload,
            transactions: self.transactions,
            failed: self.failed,
            tps: self.tps,
            rate: self.rate,
            missed: self.missed,
            latency: self.latency.map(record::Latency::from),
        }
    }
}

mirrors!(Commit, record::Commit { id, position });
mirrors!(RawRead, record::RawRead { relation, bytes, elapsed_us });
mirrors!(ImportedFile, record::ImportedFile { name, sha256 });
mirrors!(Imported, record::Imported { format, line, at, trials } into {} each { files });
mirrors!(
    Limits,
    limits::LimitsInForce {
        cgroup,
        groups,
        memory_bytes,
        memory_limit_hits,
        oom_kills,
        device,
        read_bytes_s,
        read_iops,
        write_bytes_s,
        write_iops
    }
);
mirrors!(
    Accounting,
    record::Accounting {
        driver_transactions,
        driver_commits,
        has_unreported_commits,
        other_commits,
        server_commits
    }
);
mirrors!(
    Latency,
    record::Latency { mean_us, stddev_us, min_us, p50_us, p90_us, p95_us, p99_us, p999_us, max_us }
);
