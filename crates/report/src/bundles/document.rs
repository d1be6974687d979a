//! The JSON that `pgdyno store` prints, schema 1: types of the command line, separate from the stored types.

use std::collections::BTreeMap;

use crate::profile::ProfiledDocument;
use model::cell::RecordedCell;
use model::environment::{BlockDevice, Cpu, KernelFacts, Mount, NumaNode, ServerFacts, VirtualMachine};
use model::limits::LimitsInForce;
use model::load_hosts::LoadHost;
use model::message::{Interval, TransactionSpan};
use model::process_share::ProcessShare;
use model::record::{
    BackgroundSummary, Environment, Event, Finding, Imported, ImportedFile, Latency, Log, RawRead, Run,
    Setting, Summary, Trial, TrialRecord, Validity,
};
use model::statistics::Statistics;
use serde::Serialize;
use store::{Check, Listing, Problem, Reindexed};

const SCHEMA: u32 = 1;

/// `store list --format json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListDocument<'a> {
    schema: u32,
    trials: Vec<TrialLine<'a>>,
    unreadable: Vec<ProblemDocument<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TrialLine<'a> {
    id: &'a str,
    run: &'a str,
    campaign: &'a str,
    started: Option<String>,
    cell: &'a RecordedCell,
    repeat: u32,
    attempt: u32,
    tps: Option<f64>,
    validity: &'static str,
}

/// `store show --format json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShowDocument<'a> {
    schema: u32,
    trial: TrialDocument<'a>,
    environment: EnvironmentDocument<'a>,
    settings: Vec<SettingDocument<'a>>,
    intervals: &'a [Interval],
    spans: &'a [TransactionSpan],
    events: Vec<EventDocument<'a>>,
    logs: Vec<LogDocument<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TrialDocument<'a> {
    id: &'a str,
    run: RunDocument<'a>,
    cell: &'a RecordedCell,
    repeat: u32,
    attempt: u32,
    position: u32,
    reason: Option<&'a str>,
    agent: Option<&'a str>,
    started: Option<String>,
    ended: Option<String>,
    server_version: Option<&'a str>,
    server_banner: Option<&'a str>,
    server_build: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_commit: Option<&'a str>,
    limits: Option<LimitsDocument<'a>>,
    profile: Option<ProfiledDocument>,
    database_bytes: Option<u64>,
    raw_read: Option<&'a RawRead>,
    validity: ValidityDocument<'a>,
    summary: Option<SummaryDocument<'a>>,
    accounting: AccountingDocument,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    figures: &'a BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    load_hosts: &'a [LoadHost],
    imported: Option<ImportedDocument<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ImportedDocument<'a> {
    format: &'a str,
    files: Vec<ImportedFileDocument<'a>>,
    line: Option<u64>,
    at: String,
    trials: u32,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ImportedFileDocument<'a> {
    name: &'a str,
    sha256: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LimitsDocument<'a> {
    cgroup: &'a str,
    groups: &'a [String],
    memory_bytes: Option<u64>,
    memory_limit_hits: Option<u64>,
    oom_kills: Option<u64>,
    device: Option<&'a str>,
    read_bytes_s: Option<u64>,
    read_iops: Option<u64>,
    write_bytes_s: Option<u64>,
    write_iops: Option<u64>,
}

impl<'a> LimitsDocument<'a> {
    fn new(limits: &'a LimitsInForce) -> Self {
        Self {
            cgroup: &limits.cgroup,
            groups: &limits.groups,
            memory_bytes: limits.memory_bytes,
            memory_limit_hits: limits.memory_limit_hits,
            oom_kills: limits.oom_kills,
            device: limits.device.as_deref(),
            read_bytes_s: limits.read_bytes_s,
            read_iops: limits.read_iops,
            write_bytes_s: limits.write_bytes_s,
            write_iops: limits.write_iops,
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunDocument<'a> {
    id: &'a str,
    campaign: &'a str,
    campaign_toml: &'a str,
    seed: Option<u64>,
    processors: Option<u32>,
    pgdyno_version: &'a str,
    tags: &'a [String],
    notes: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ValidityDocument<'a> {
    status: &'static str,
    findings: Vec<FindingDocument<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FindingDocument<'a> {
    gate: &'a str,
    status: &'static str,
    evidence: &'a str,
    threshold: Option<&'a str>,
    advice: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    processes: &'a [ProcessShare],
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SummaryDocument<'a> {
    window_us: Option<u64>,
    transactions: Option<u64>,
    failed: Option<u64>,
    tps: f64,
    latency: Option<&'a Latency>,
    #[serde(rename = "beside", skip_serializing_if = "<[_]>::is_empty")]
    background: &'a [BackgroundSummary],
    connect_us: Option<u64>,
    driver_cpu_us: Option<u64>,
    driver_busy_max: Option<f64>,
    driver_lag_max_us: Option<f64>,
    statistics: Option<&'a Statistics>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AccountingDocument {
    driver_transactions: Option<u64>,
    driver_commits: Option<u64>,
    untold_commits: bool,
    other_commits: Option<u64>,
    server_commits: Option<u64>,
    surplus: Option<i64>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EnvironmentDocument<'a> {
    hostname: Option<&'a str>,
    kernel: Option<&'a str>,
    kernel_version: Option<&'a str>,
    os: Option<&'a str>,
    architecture: Option<&'a str>,
    cpu_model: Option<&'a str>,
    cpus: Option<u32>,
    cpu_governor: Option<&'a str>,
    memory_bytes: Option<u64>,
    swap_bytes: Option<u64>,
    transparent_hugepages: Option<&'a str>,
    virtualization: Option<&'a str>,
    data_filesystem: Option<&'a str>,
    data_mount_options: Option<&'a str>,
    load_average_1m: Option<f64>,
    sysctl: &'a BTreeMap<String, String>,
    kernel_command_line: Option<&'a str>,
    libc: Option<&'a str>,
    cpu: &'a Cpu,
    numa_nodes: &'a [NumaNode],
    clocksource: Option<&'a str>,
    memory_available_bytes: Option<u64>,
    swap_used_bytes: Option<u64>,
    huge_pages: &'a BTreeMap<String, u64>,
    cgroup: &'a BTreeMap<String, String>,
    limits: &'a BTreeMap<String, String>,
    data_devices: &'a [BlockDevice],
    other_devices: &'a [String],
    mounts: &'a [Mount],
    server: &'a ServerFacts,
    kernel_facts: &'a KernelFacts,
    transparent_hugepages_defrag: Option<&'a str>,
    virtual_machine: Option<&'a VirtualMachine>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SettingDocument<'a> {
    name: &'a str,
    value: &'a str,
    unit: Option<&'a str>,
    source: &'a str,
    context: Option<&'a str>,
    pending_restart: Option<bool>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EventDocument<'a> {
    at: String,
    kind: &'a str,
    message: &'a str,
    of: Option<&'a str>,
    figures: &'a BTreeMap<String, f64>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LogDocument<'a> {
    name: &'a str,
    text: &'a str,
}

/// `store check --format json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckDocument<'a> {
    schema: u32,
    bundles: usize,
    problems: Vec<ProblemDocument<'a>>,
}

/// `store reindex --format json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReindexDocument<'a> {
    schema: u32,
    bundles: usize,
    rejected: Vec<ProblemDocument<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ProblemDocument<'a> {
    bundle: Option<&'a str>,
    file: Option<&'a str>,
    reason: &'a str,
    advice: &'a str,
}

impl<'a> ListDocument<'a> {
    /// Document of a list.
    pub fn new(listing: &'a Listing) -> Self {
        Self {
            schema: SCHEMA,
            trials: listing.trials.iter().map(TrialLine::new).collect(),
            unreadable: problems(&listing.rejected),
        }
    }
}

impl<'a> TrialLine<'a> {
    fn new(trial: &'a Trial) -> Self {
        Self {
            id: &trial.id,
            run: &trial.run.id,
            campaign: &trial.run.campaign,
            started: trial.started.map(|at| at.to_string()),
            cell: &trial.cell,
            repeat: trial.repeat,
            attempt: trial.attempt,
            tps: trial.summary.as_ref().map(|summary| summary.tps),
            validity: trial.validity.status.as_str(),
        }
    }
}

impl<'a> ShowDocument<'a> {
    /// Document of a record.
    pub fn new(record: &'a TrialRecord) -> Self {
        Self {
            schema: SCHEMA,
            trial: TrialDocument::new(&record.trial),
            environment: EnvironmentDocument::new(&record.environment),
            settings: record.settings.iter().map(SettingDocument::new).collect(),
            intervals: &record.intervals,
            spans: &record.spans,
            events: record.events.iter().map(EventDocument::new).collect(),
            logs: record.logs.iter().map(|Log { name, text }| LogDocument { name, text }).collect(),
        }
    }
}

impl<'a> TrialDocument<'a> {
    fn new(trial: &'a Trial) -> Self {
        Self {
            id: &trial.id,
            run: RunDocument::new(&trial.run),
            cell: &trial.cell,
            repeat: trial.repeat,
            attempt: trial.attempt,
            position: trial.position,
            reason: trial.reason.as_deref(),
            agent: trial.agent.as_deref(),
            started: trial.started.map(|at| at.to_string()),
            ended: trial.ended.map(|at| at.to_string()),
            server_version: trial.server_version.as_deref(),
            server_banner: trial.server_banner.as_deref(),
            server_build: trial.server_build.as_deref(),
            server_commit: trial.server_commit.as_ref().map(|commit| commit.id.as_str()),
            limits: trial.limits.as_ref().map(LimitsDocument::new),
            profile: trial.profile.as_ref().map(ProfiledDocument::new),
            database_bytes: trial.database_bytes,
            raw_read: trial.raw_read.as_ref(),
            validity: ValidityDocument::new(&trial.validity),
            summary: trial.summary.as_ref().map(SummaryDocument::new),
            accounting: AccountingDocument {
                driver_transactions: trial.accounting.driver_transactions,
                driver_commits: trial.accounting.driver_commits,
                untold_commits: trial.accounting.has_unreported_commits,
                other_commits: trial.accounting.other_commits,
                server_commits: trial.accounting.server_commits,
                surplus: trial.accounting.surplus(),
            },
            figures: &trial.figures,
            load_hosts: &trial.load_hosts,
            imported: trial.imported.as_ref().map(ImportedDocument::new),
        }
    }
}

impl<'a> ImportedDocument<'a> {
    fn new(imported: &'a Imported) -> Self {
        let file = |ImportedFile { name, sha256 }: &'a ImportedFile| ImportedFileDocument { name, sha256 };
        Self {
            format: &imported.format,
            files: imported.files.iter().map(file).collect(),
            line: imported.line,
            at: imported.at.to_string(),
            trials: imported.trials,
        }
    }
}

impl<'a> RunDocument<'a> {
    fn new(run: &'a Run) -> Self {
        let Run { id, campaign, campaign_toml, seed, processors, pgdyno_version, tags, notes } = run;
        Self {
            id,
            campaign,
            campaign_toml,
            seed: *seed,
            processors: *processors,
            pgdyno_version,
            tags,
            notes: notes.as_deref(),
        }
    }
}

impl<'a> ValidityDocument<'a> {
    fn new(validity: &'a Validity) -> Self {
        let finding =
            |Finding { gate, status, evidence, threshold, advice, processes }: &'a Finding| FindingDocument {
                gate,
                status: status.as_str(),
                evidence,
                threshold: threshold.as_deref(),
                advice: advice.as_deref(),
                processes,
            };
        Self { status: validity.status.as_str(), findings: validity.findings.iter().map(finding).collect() }
    }
}

impl<'a> SummaryDocument<'a> {
    fn new(summary: &'a Summary) -> Self {
        Self {
            window_us: summary.window_us,
            transactions: summary.transactions,
            failed: summary.failed,
            tps: summary.tps,
            latency: summary.latency.as_ref(),
            background: &summary.background,
            connect_us: summary.connect_us,
            driver_cpu_us: summary.driver_cpu_us,
            driver_busy_max: summary.driver_busy_max,
            driver_lag_max_us: summary.driver_lag_max_us,
            statistics: summary.statistics.as_ref(),
        }
    }
}

impl<'a> EnvironmentDocument<'a> {
    fn new(environment: &'a Environment) -> Self {
        Self {
            hostname: environment.hostname.as_deref(),
            kernel: environment.kernel.as_deref(),
            kernel_version: environment.kernel_version.as_deref(),
            os: environment.os.as_deref(),
            architecture: environment.architecture.as_deref(),
            cpu_model: environment.cpu_model.as_deref(),
            cpus: environment.cpus,
            cpu_governor: environment.cpu_governor.as_deref(),
            memory_bytes: environment.memory_bytes,
            swap_bytes: environment.swap_bytes,
            transparent_hugepages: environment.transparent_hugepages.as_deref(),
            virtualization: environment.virtualization.as_deref(),
            data_filesystem: environment.data_filesystem.as_deref(),
            data_mount_options: environment.data_mount_options.as_deref(),
            load_average_1m: environment.load_average_1m_centi.map(|centi| f64::from(centi) / 100.0),
            sysctl: &environment.sysctl,
            kernel_command_line: environment.kernel_command_line.as_deref(),
            libc: environment.libc.as_deref(),
            cpu: &environment.cpu,
            numa_nodes: &environment.numa_nodes,
            clocksource: environment.clocksource.as_deref(),
            memory_available_bytes: environment.memory_available_bytes,
            swap_used_bytes: environment.swap_used_bytes,
            huge_pages: &environment.huge_pages,
            cgroup: &environment.cgroup,
            limits: &environment.limits,
            data_devices: &environment.data_devices,
            other_devices: &environment.other_devices,
            mounts: &environment.mounts,
            server: &environment.server,
            kernel_facts: &environment.kernel_facts,
            transparent_hugepages_defrag: environment.transparent_hugepages_defrag.as_deref(),
            virtual_machine: environment.virtual_machine.as_ref(),
        }
    }
}

impl<'a> SettingDocument<'a> {
    fn new(setting: &'a Setting) -> Self {
        let Setting { name, value, unit, source, context, pending_restart } = setting;
        Self {
            name,
            value,
            unit: unit.as_deref(),
            source,
            context: context.as_deref(),
            pending_restart: *pending_restart,
        }
    }
}

impl<'a> EventDocument<'a> {
    fn new(event: &'a Event) -> Self {
        let Event { at, kind, message, object, figures } = event;
        Self { at: at.to_string(), kind, message, of: object.as_deref(), figures }
    }
}

impl<'a> CheckDocument<'a> {
    /// Document of a check.
    pub fn new(check: &'a Check) -> Self {
        Self { schema: SCHEMA, bundles: check.bundles, problems: problems(&check.problems) }
    }
}

impl<'a> ReindexDocument<'a> {
    /// Document of a new index.
    pub fn new(reindexed: &'a Reindexed) -> Self {
        Self { schema: SCHEMA, bundles: reindexed.bundles, rejected: problems(&reindexed.rejected) }
    }
}

fn problems(problems: &[Problem]) -> Vec<ProblemDocument<'_>> {
    problems.iter().map(ProblemDocument::new).collect()
}

impl<'a> ProblemDocument<'a> {
    fn new(problem: &'a Problem) -> Self {
        let Problem { bundle, file, reason, advice } = problem;
        Self { bundle: bundle.as_deref(), file: file.as_deref(), reason, advice }
    }
}
