//! Phases of trials.

use analysis::overview::view::{Finding, Latency, Phase};
use model::record::{Trial, TrialRecord};

use super::Kind::{Integer, Json, Real, Text};
use super::head::FindingJson;
use super::{Field, Value, field, json};

/// A phase of a trial.
pub(super) struct PhaseRow<'r> {
    trial: &'r Trial,
    /// From 1.
    position: usize,
    phase: Phase,
}

pub(super) fn all_phases(record: &TrialRecord) -> impl Iterator<Item = PhaseRow<'_>> {
    let phases = Phase::of(&record.trial).into_iter().zip(1..);
    phases.map(|(phase, position)| PhaseRow { trial: &record.trial, position, phase })
}

fn latency(row: &PhaseRow<'_>, of: fn(&Latency) -> Option<f64>) -> Value<'static> {
    Value::from(row.phase.latency.as_ref().and_then(of))
}

fn finding_json(finding: &Finding) -> FindingJson<'_> {
    FindingJson { gate: &finding.gate, status: finding.validity, evidence: &finding.evidence }
}

pub(super) fn phases<'r>() -> Vec<Field<PhaseRow<'r>>> {
    vec![
        field("trial", Text, "id of the trial", |row: &PhaseRow<'r>| Value::from(row.trial.id.as_str())),
        field("phase", Text, "name of the phase", |row| Value::from(row.phase.phase.as_str())),
        field("position", Integer, "position in the trial, from 1", |row| Value::from(row.position)),
        field("judged", Json, "true for the phase whose figures are those of the trial, else false", |row| {
            json(&row.phase.judged)
        }),
        field("clients", Integer, "number of its clients, without those of background workloads", |row| {
            Value::from(row.phase.clients)
        }),
        field("validity", Text, "valid, suspect or invalid; null if it did not run", |row| {
            Value::from(row.phase.validity)
        }),
        field("findings", Json, "findings of the gates: gate, status and evidence of each", |row| {
            json(&row.phase.findings.iter().map(finding_json).collect::<Vec<_>>())
        }),
        field("window_us", Integer, "length of its measured window", |row| Value::from(row.phase.window_us)),
        field("transactions", Integer, "successful transactions that ended in the window", |row| {
            Value::from(row.phase.transactions)
        }),
        field("failed", Integer, "transactions that failed", |row| Value::from(row.phase.failed)),
        field("tps", Real, "transactions per second in the window", |row| Value::from(row.phase.tps)),
        field(
            "rows_per_second",
            Real,
            "rows inserted, changed or deleted per second; null if the workload does not say how many a transaction has",
            |row| Value::from(row.phase.rows_per_second),
        ),
        field("latency_mean_us", Real, "mean latency from the intended start", |row| {
            latency(row, |latency| latency.mean_us)
        }),
        field("latency_p50_us", Real, "median latency", |row| latency(row, |latency| latency.p50_us)),
        field("latency_p95_us", Real, "95th percentile of latency", |row| {
            latency(row, |latency| latency.p95_us)
        }),
        field("latency_p99_us", Real, "99th percentile of latency", |row| {
            latency(row, |latency| latency.p99_us)
        }),
        field("latency_max_us", Real, "largest latency", |row| Value::from(row.phase.max_us)),
        field(
            "worst_second_tps",
            Real,
            "fewest transactions per second in a full second of the window",
            |row| Value::from(row.phase.worst_second_tps),
        ),
        field(
            "longest_stall_us",
            Integer,
            "longest time in the window without the end of a successful transaction",
            |row| Value::from(row.phase.longest_stall_us),
        ),
    ]
}
