//! The end of a trial: judges its results and makes its record.

use std::mem;

use jiff::{SignedDuration, Timestamp};
use model::cell::Cell;
use model::factor::pin::cpu_list;
use model::limits::MemoryLimit;
use model::message::ClientDeath;
use model::outage::Outage;
use model::paired::PairedTrial;
use model::record::{Clocks, Event, Finding, Log, Trial, TrialRecord, Validity};
use model::units::Rate;

use diagnose::{Observation, judge};

use super::measure::Measured;
use super::{ActiveTrial, FinishedTrial, Results};
use crate::load::LoadResult;
use crate::outage::TrialOutage;
use crate::summary;

/// The record of a trial with these results.
pub(super) fn record(trial: &ActiveTrial, results: Results) -> FinishedTrial {
    let (plan, cell, next) = (trial.context.plan, trial.cell, trial.next);
    let Results { environment, server_build, prepared, measured, concluded, logs } = results;
    let Measured { before, mut load, collected, accounting, lost_statistics } = measured;
    let paired = trial.context.side.map(|side| PairedTrial {
        session: next.trial.repeat,
        side: side.side(),
        slices: mem::take(&mut load.slices),
    });
    let summary = load.outcome.as_ref().map(|outcome| {
        summary::summarize(
            &load,
            outcome,
            cell,
            trial.lead(),
            &collected.metrics,
            paired.as_ref().and_then(|paired| paired.tps(cell.clients)),
        )
    });
    load.failure = load.failure.take().or_else(|| missed_iterations(&load, cell));
    let clocks = load.started.zip(load.ended).map(|(started, ended)| Clocks { started, ended });
    let ended = Timestamp::now();

    let notes = [prepared.notes, collected.notes, concluded.notes].concat();
    let mut events = [
        collected.events,
        concluded.events,
        notes.into_iter().map(|note| event(trial.started, "note", note)).collect(),
        events_of_load(&load, concluded.server_exit.as_deref(), ended),
    ]
    .concat();
    // Stable: events reported by the server precede those that pgdyno derives.
    events.sort_by_key(|event| event.at);
    let processors = plan.run.processors.unwrap_or(1);
    let driver_cpus = cell.pin.driver.as_deref().and_then(cpu_list).unwrap_or_default();
    let validity = judge(&Observation {
        thresholds: plan.validity,
        acceleration: cell.acceleration,
        clients: cell.clients,
        // CPUs that idle here are of no use to drivers elsewhere.
        driver_threads: load.hosts.is_empty().then(|| cell.driver_threads(processors)),
        default_driver_threads: Some(cell.default_driver_threads(processors)),
        load_hosts: &load.hosts,
        driver_cpus: &driver_cpus,
        open_loop: cell.rate != Rate::MAX,
        paired: paired.as_ref(),
        idle_at_times: !cell.workload.is_steady(),
        writes: cell.workload.writes(),
        memory_is_limited: cell.memory != MemoryLimit::NONE,
        load_failure: load.failure.as_deref(),
        server_exit: concluded.server_exit.as_deref(),
        interrupted: load.interrupted,
        deaths: &load.deaths,
        accounting,
        autovacuum: before.setting("autovacuum").map(|value| value == "on"),
        lost_statistics,
        summary: summary.as_ref(),
        intervals: &load.intervals,
        window: summary
            .as_ref()
            .and_then(|summary| summary.window_us)
            .map(|window_us| summary::window_after(trial.lead(), window_us)),
        clocks,
        metrics: &collected.metrics,
        waits: &collected.waits,
        events: &events,
        log_was_read: concluded.log_was_read,
        settings: &before.settings,
        settings_after: &concluded.settings,
    });
    events.extend(validity.findings.iter().map(|finding| event_of(finding, ended)));

    let loaded = load.started.is_some();
    let outage = outage(trial, &load, concluded.exhaustion);
    let refusal = load.refusal().map(|death| death.message.clone());
    let server_log = concluded.server_log.into_iter();
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
            stacks: collected.stacks,
            off_cpu: collected.off_cpu,
            logs: server_log.chain(logs).collect::<Vec<Log>>(),
        },
        loaded,
        outage,
        refusal,
    }
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

/// Reason why clients did not complete their iterations; none if they did, or the load ended for another reason.
fn missed_iterations(load: &LoadResult, cell: &Cell) -> Option<String> {
    let iterations = cell.workload.iterations()?;
    let stopped_early = load.outcome.as_ref().is_some_and(|outcome| outcome.stopped_early);
    (stopped_early && !load.interrupted && load.deaths.is_empty()).then(|| {
        format!(
            "some clients had not completed their iterations ({iterations}) after {}: set a longer `duration` \
             for the workload",
            cell.duration
        )
    })
}

fn event(at: Timestamp, kind: &str, message: String) -> Event {
    Event { at, kind: kind.to_owned(), message, ..Event::default() }
}

/// Clients and servers that died.
fn events_of_load(load: &LoadResult, server_exit: Option<&str>, ended: Timestamp) -> Vec<Event> {
    let deaths = load.deaths.iter().map(|death| {
        let after = SignedDuration::from_micros(i64::try_from(death.at_us).unwrap_or(i64::MAX));
        let at = load.load_started().and_then(|start| start.checked_add(after).ok()).unwrap_or(ended);
        event(at, "client-died", format!("client {}: {}", death.client, death.message))
    });
    let exit = server_exit.map(|exit| event(ended, "server-exited", exit.to_owned()));
    deaths.chain(exit).collect()
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
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.status));
}
