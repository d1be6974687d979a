//! The end of a trial: judges its results and makes its record.

use std::cmp::Reverse;
use std::mem;

use collect::Collected;
use jiff::{SignedDuration, Timestamp};
use model::message::ClientDeath;
use model::outage::Outage;
use model::paired::PairedTrial;
use model::record::{Event, Finding, Log, PhaseOutcome, PhaseRecord, Status, Trial, TrialRecord, Validity};

use super::judge::{Ending, JudgedLoad, judge_load};
use super::measure::Measured;
use super::phases::MeasuredPhase;
use super::{ActiveTrial, FinishedTrial, Results};
use crate::load::LoadResult;
use crate::outage::TrialOutage;

/// The record of a trial with these results.
pub(super) fn record(trial: &ActiveTrial, results: Results) -> FinishedTrial {
    let (cell, next) = (trial.cell, trial.next);
    let Results { environment, server_build, prepared, mut measured, phases, concluded, logs, .. } = results;
    let paired = trial.context.side.map(|side| PairedTrial {
        session: next.trial.repeat,
        side: side.side(),
        slices: mem::take(&mut measured.load.slices),
    });
    let ended = Timestamp::now();
    let loads = || phases.iter().map(|phase| &phase.measured).chain([&measured]);
    let notes = prepared.notes.iter().chain(loads().flat_map(|load| &load.collected.notes));
    let notes = notes.chain(&concluded.notes).cloned();
    let mut events = [
        loads().flat_map(|load| load.collected.events.clone()).collect(),
        concluded.events,
        notes.map(|note| event(trial.started, "note", note)).collect(),
        loads().flat_map(|load| events_of_load(&load.load, ended)).collect(),
        concluded.server_exit.iter().map(|exit| event(ended, "server-exited", exit.clone())).collect(),
    ]
    .concat();
    // Stable: events reported by the server precede those that pgdyno derives.
    events.sort_by_key(|event| event.at);

    let mut phases = phases;
    let mut ending = Ending {
        paired: None,
        server_exit: None,
        companion_failure: None,
        settings: &[],
        inconsistency: None,
        events: &events,
        log_was_read: concluded.log_was_read,
    };
    let of_phases: Vec<JudgedLoad> = phases
        .iter_mut()
        .map(|phase| judge_load(&trial.in_phase(&phase.phase), &mut phase.measured, &ending))
        .collect();
    ending = Ending {
        paired: paired.as_ref(),
        server_exit: concluded.server_exit.as_deref(),
        companion_failure: concluded.companion_failure.as_deref(),
        settings: &concluded.settings,
        inconsistency: concluded.inconsistency.as_deref(),
        ..ending
    };
    let all = cell.phases();
    let judged = all.iter().find(|phase| phase.is_judged).map(|phase| trial.in_phase(phase));
    let JudgedLoad { summary, clocks, mut validity } =
        judge_load(judged.as_ref().unwrap_or(trial), &mut measured, &ending);
    for (phase, judged) in phases.iter().zip(&of_phases) {
        add_findings_of_phase(&mut validity, &phase.name, &judged.validity);
    }
    events.extend(validity.findings.iter().map(|finding| event_of(finding, ended)));

    let loads = || phases.iter().map(|phase| &phase.measured.load).chain([&measured.load]);
    let loaded = loads().any(|load| load.started.is_some());
    // A phase that fails is the last one.
    let failed = loads().find(|load| load.failure.is_some() || !load.deaths.is_empty());
    let outage = outage(trial, failed.unwrap_or(&measured.load), concluded.exhaustion);
    let refusal = loads().find_map(LoadResult::refusal).map(|death| death.message.clone());
    let server_logs = concluded.server_log.into_iter().chain(concluded.companion_log);
    let (outcomes, phases) =
        phases.into_iter().zip(of_phases).map(|(phase, judged)| phase_record(phase, judged)).unzip();
    let Measured { before, load, collected, accounting, .. } = measured;
    FinishedTrial {
        record: TrialRecord {
            events,
            trial: Trial {
                id: store::new_id(),
                run: trial.context.run.clone(),
                cell: cell.clone().into(),
                repeat: next.trial.repeat,
                attempt: next.attempt,
                position: next.trial.position,
                reason: next.reason.clone(),
                // Set when it is stored.
                agent: None,
                started: Some(trial.started),
                load_started: load.load_started(),
                clocks,
                ended: Some(ended),
                server_version: before.version,
                server_banner: before.banner,
                server_build,
                // Set by the campaign, which has the source.
                server_commit: None,
                limits: concluded.limits,
                profile: collected.profile,
                database_bytes: before.database_bytes,
                raw_read: prepared.raw_read,
                validity,
                summary,
                accounting,
                figures: concluded.figures,
                phases: outcomes,
                load_hosts: load.hosts,
                paired,
                imported: None,
            },
            environment,
            settings: before.settings,
            intervals: load.intervals,
            spans: load.spans,
            metrics: collected.metrics,
            waits: collected.waits,
            statements: collected.statements,
            played: load.played,
            stacks: collected.stacks,
            off_cpu: collected.off_cpu,
            logs: server_logs.chain(logs).collect::<Vec<Log>>(),
            phases,
        },
        loaded,
        outage,
        refusal,
    }
}

/// The results and the measurements of a phase.
fn phase_record(phase: MeasuredPhase, judged: JudgedLoad) -> (PhaseOutcome, PhaseRecord) {
    let MeasuredPhase { name, measured: Measured { before, load, collected, accounting, .. }, .. } = phase;
    let outcome = PhaseOutcome {
        name: name.clone(),
        load_started: load.load_started(),
        clocks: judged.clocks,
        database_bytes: before.database_bytes,
        validity: judged.validity,
        summary: judged.summary,
        accounting,
    };
    let Collected { metrics, waits, statements, .. } = collected;
    (outcome, PhaseRecord { name, intervals: load.intervals, metrics, waits, statements })
}

/// Adds what a phase that is not judged means for its trial: without it, the trial is not what it had to be, and a rate that was
/// not held is a result. The rest is only about the phase.
fn add_findings_of_phase(validity: &mut Validity, phase: &str, of_phase: &Validity) {
    let is_of_trial =
        |finding: &&Finding| finding.status == Status::Invalid || finding.gate == diagnose::BACKGROUND_RATE;
    for finding in of_phase.findings.iter().filter(is_of_trial) {
        let evidence = format!("phase {phase}: {}", finding.evidence);
        validity.findings.push(Finding { evidence, ..finding.clone() });
        validity.status = validity.status.max(finding.status);
    }
    validity.findings.sort_by_key(|finding| Reverse(finding.status));
}

/// The outage that kept the load from running to its end, if it is one. A server that pgdyno started is part of the
/// trial: if it can't be reached, the trial has failed.
fn outage(trial: &ActiveTrial, load: &LoadResult, logged: Option<String>) -> Option<TrialOutage> {
    let exhausted = |reason| Some(TrialOutage { kind: Outage::Exhausted, reason });
    if load.started.is_some() {
        let is_full = |death: &&ClientDeath| death.sqlstate.as_deref() == Some(server::DISK_FULL);
        let death = load.deaths.iter().find(is_full).map(|death| death.message.clone());
        return exhausted(death.or_else(|| logged.filter(|_| load.leaves_server_in_doubt()))?);
    }
    let reason = load.failure.clone()?;
    match (load.outage, logged) {
        (Some(Outage::Exhausted), _) => exhausted(reason),
        (_, Some(line)) => exhausted(line),
        (Some(kind), None) => trial.has_external_server().then_some(TrialOutage { kind, reason }),
        (None, None) => None,
    }
}

fn event(at: Timestamp, kind: &str, message: String) -> Event {
    Event { at, kind: kind.to_owned(), message, ..Event::default() }
}

/// Clients that died.
fn events_of_load(load: &LoadResult, ended: Timestamp) -> Vec<Event> {
    let deaths = load.deaths.iter().map(|death| {
        let after = SignedDuration::from_micros(i64::try_from(death.at_us).unwrap_or(i64::MAX));
        let at = load.load_started().and_then(|start| start.checked_add(after).ok()).unwrap_or(ended);
        event(at, "client-died", format!("client {}: {}", death.client, death.message))
    });
    deaths.collect()
}

/// The event of a gate's finding.
fn event_of(finding: &Finding, at: Timestamp) -> Event {
    let kind = format!("judged-{}", finding.status.as_str());
    event(at, &kind, format!("{}: {}", finding.gate, finding.evidence))
}

/// Adds a finding that was made after the trial was judged.
pub(crate) fn add_finding(record: &mut TrialRecord, finding: Finding) {
    record.events.push(event_of(&finding, record.trial.ended.unwrap_or_else(Timestamp::now)));
    let Validity { status, findings } = &mut record.trial.validity;
    *status = finding.status.max(*status);
    findings.push(finding);
    findings.sort_by_key(|finding| Reverse(finding.status));
}
