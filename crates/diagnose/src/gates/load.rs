//! Did the load run as planned, and do its counts agree?

use super::{
    Gate, GateFinding, INTERRUPTED, Observation, at_most, finding, invalid, noted, percent, suspect,
};
use model::record::{Finding, Status};

/// Before all others: the rest is irrelevant then.
pub(super) const INTERRUPTED_GATES: [Gate; 1] = [(INTERRUPTED, interrupted)];

pub(super) const GATES: [Gate; 7] = [
    ("load-failed", load_failed),
    ("client-died", clients_died),
    ("nothing-done", nothing_done),
    ("transaction-count", transaction_count),
    ("transactions-failed", transactions_failed),
    ("littles-law", littles_law),
    ("consistency", consistency),
];

fn interrupted(observed: &Observation) -> Option<GateFinding> {
    if !observed.interrupted {
        return None;
    }
    let evidence = match observed.summary {
        Some(summary) => {
            let window_us = summary.window_us.unwrap_or_default();
            format!("ended by the user after {:.1} s of the window", window_us as f64 / 1e6)
        }
        None => "ended by the user before the load began".to_owned(),
    };
    Some(invalid(evidence))
}

/// The gate of a trial whose server could not be provided.
pub const NO_SERVER: &str = "no-server";

/// The finding on a trial whose server can't be downloaded, built, filled or started, with the reason. It is not among the gates, because
/// such a trial does not begin.
pub fn no_server(reason: impl Into<String>) -> Finding {
    invalid(reason.into()).named(NO_SERVER)
}

/// The gate of a trial whose kernel could not be provided.
pub const NO_KERNEL: &str = "no-kernel";

/// The finding on a trial whose kernel does not exist or can't be used, with the reason. As [`no_server`], it is not among the gates.
pub fn no_kernel(reason: impl Into<String>) -> Finding {
    invalid(reason.into()).named(NO_KERNEL)
}

fn load_failed(observed: &Observation) -> Option<GateFinding> {
    // Their loss is the reason, and a finding of its own.
    if observed.load_hosts.iter().any(|host| host.lost.is_some()) {
        return None;
    }
    Some(invalid(observed.load_failure?.to_owned()))
}

fn clients_died(observed: &Observation) -> Option<GateFinding> {
    let first = observed.deaths.first()?;
    let state = first.sqlstate.as_ref().map(|state| format!(" (SQLSTATE {state})")).unwrap_or_default();
    let evidence = format!(
        "{} of {} clients failed; client {} after {:.3} s: {}{state}",
        observed.deaths.len(),
        observed.clients,
        first.client,
        first.at_us as f64 / 1e6,
        first.message
    );
    // SQLSTATE object_not_in_prerequisite_state, of tables without a primary key in the topology `logical`.
    let has_no_identity = first.message.contains("replica identity");
    Some(invalid(evidence).with_advice(if has_no_identity {
        "the topology `logical` publishes all tables: give this one a primary key or a REPLICA IDENTITY in the workload's setup, \
         or leave that topology out for this workload"
    } else {
        "fix the cause in the message; the server's log may have more"
    }))
}

fn nothing_done(observed: &Observation) -> Option<GateFinding> {
    let summary = observed.summary.filter(|summary| summary.transactions == Some(0))?;
    let window_us = summary.window_us.unwrap_or_default();
    let evidence = format!("no transaction ended in the window of {:.1} s", window_us as f64 / 1e6);
    Some(invalid(evidence).with_advice("use a longer window, or find out what transactions wait for"))
}

/// The largest number of commits that autovacuum workers may add in one trial without explanation: a fixed number for a
/// round of workers that find nothing to do, plus a thousandth of the load.
const AUTOVACUUM_COMMITS: i64 = 200;

fn transaction_count(observed: &Observation) -> Option<GateFinding> {
    observed.summary?;
    let accounting = &observed.accounting;
    let (Some(surplus), Some(transactions)) = (accounting.surplus(), accounting.driver_transactions) else {
        return Some(suspect("the server's own count could not be read".to_owned()));
    };
    let commits = match accounting.driver_commits.filter(|commits| *commits != transactions) {
        Some(commits) => format!(" in {commits} commits"),
        None => String::new(),
    };
    let counts = format!(
        "the driver counts {transactions} transactions{commits} and {} other commits, the server {}",
        accounting.other_commits.unwrap_or_default(),
        accounting.server_commits.unwrap_or_default()
    );
    let explained_by_autovacuum = surplus > 0
        && observed.autovacuum != Some(false)
        && surplus <= AUTOVACUUM_COMMITS + transactions as i64 / 1000;
    match surplus {
        0 => None,
        _ if explained_by_autovacuum => {
            Some(noted(format!("{counts}: {surplus} more, which autovacuum workers can add")))
        }
        1.. if accounting.has_unreported_commits => Some(noted(format!(
            "{counts}: {surplus} more, not comparable: CALL, DO, parallel workers, LISTEN, changes of objects and poolers lead to commits that are not reported"
        ))),
        // A session may report several commits at once.
        ..0 if observed.lost_statistics > 0 => Some(noted(format!(
            "{counts}: {} fewer; the kernel dropped {} datagrams, by which servers before PostgreSQL 15 count commits",
            -surplus, observed.lost_statistics
        ))),
        ..0 => Some(
            invalid(format!("{counts}: {} fewer", -surplus))
                .with_advice("this is a bug in pgdyno or the server: please report it"),
        ),
        _ => Some(
            suspect(format!("{counts}: {surplus} more, perhaps of another client"))
                .with_advice("keep other clients off the tested database"),
        ),
    }
}

fn transactions_failed(observed: &Observation) -> Option<GateFinding> {
    let failed = observed.summary?.failed?;
    let succeeded = observed.accounting.driver_transactions?;
    if failed == 0 {
        return None;
    }
    let share = failed as f64 / (failed + succeeded) as f64;
    let (limit, most) = (observed.thresholds.failed_share, observed.thresholds.failed_invalid_share);
    let (status, limit) = match share {
        share if share > most => (Status::Invalid, most),
        share if share > limit => (Status::Suspect, limit),
        _ => (Status::Valid, limit),
    };
    let evidence = format!("{failed} of {} transactions failed ({})", failed + succeeded, percent(share));
    Some(
        finding(status, evidence).with_threshold(at_most(limit)).with_advice(
            "see the server's log for the errors; throughput counts successful transactions only; if they are part of the \
             workload, raise failed_share and failed_invalid_share",
        ),
    )
}

/// Little's law in a closed loop: clients = throughput × time per transaction (Little 1961).
fn littles_law(observed: &Observation) -> Option<GateFinding> {
    let summary = observed.summary?;
    let mean_us = summary.latency.as_ref()?.mean_us?;
    let busy = summary.tps * mean_us / 1e6;
    let clients = f64::from(observed.clients);
    // In an open loop, clients are idle at times, and latency includes waiting for a free client.
    if observed.open_loop || observed.idle_at_times || !observed.deaths.is_empty() || observed.interrupted {
        return None;
    }
    let limit = observed.thresholds.littles_law_share;
    if (busy / clients - 1.0).abs() <= limit {
        return None;
    }
    let evidence = format!(
        "{:.0} transactions/s × {:.3} ms = {busy:.2} busy clients instead of {clients}",
        summary.tps,
        mean_us / 1e3
    );
    Some(suspect(evidence).with_threshold(format!("{} of them off", at_most(limit))).with_advice(
        "latency does not account for the clients' time: the window may be short compared with the latency, or scripts \
         may sleep",
    ))
}

fn consistency(observed: &Observation) -> Option<GateFinding> {
    let evidence = observed.inconsistency?.to_owned();
    Some(invalid(evidence).with_advice(
        "transactions of the load left the data inconsistent, or the workload's check is wrong: run its statements on such data",
    ))
}

#[cfg(test)]
mod tests {
    use model::message::ClientDeath;
    use model::record::{Accounting, Summary};

    use super::super::fixture::{TrialFixture, gates, summary};
    use super::*;

    #[test]
    fn the_servers_count_must_agree() {
        let trial = TrialFixture::new();
        let with = |server, autovacuum| {
            let accounting = Accounting { server_commits: Some(server), ..trial.observed().accounting };
            gates(&Observation { accounting, autovacuum: Some(autovacuum), ..trial.observed() })
        };
        let found = |status| (status, vec!["transaction-count"]);
        assert_eq!(with(20_507, true), found(Status::Invalid), "a transaction the server never saw");
        let accounting = Accounting { server_commits: Some(20_507), ..trial.observed().accounting };
        let dropped = Observation { accounting, lost_statistics: 2, ..trial.observed() };
        assert_eq!(gates(&dropped), found(Status::Valid), "lost on the way, noted");
        assert_eq!(with(20_509, false), found(Status::Suspect), "someone else's commit");
        assert_eq!(with(20_515, true), found(Status::Valid), "autovacuum's, noted");
        assert_eq!(with(25_000, true), found(Status::Suspect), "too many for autovacuum");
        let unknown = Observation { accounting: Accounting::default(), ..trial.observed() };
        assert_eq!(gates(&unknown), found(Status::Suspect), "missing is not zero");
    }

    #[test]
    fn missing_time_violates_littles_law_in_a_closed_loop() {
        let trial = TrialFixture::new();
        let short = summary(10_000.0, 300.0);
        let observed = Observation { summary: Some(&short), ..trial.observed() };
        assert_eq!(gates(&observed), (Status::Suspect, vec!["littles-law"]));
        let found = littles_law(&observed).unwrap();
        assert_eq!(found.evidence, "10000 transactions/s × 0.300 ms = 3.00 busy clients instead of 4");
        assert_eq!(found.threshold.as_deref(), Some("at most 10% of them off"));
        assert!(littles_law(&Observation { open_loop: true, ..observed }).is_none());
        assert!(littles_law(&Observation { idle_at_times: true, ..observed }).is_none());
    }

    #[test]
    fn failed_transactions_are_noted_and_many_are_suspected() {
        let trial = TrialFixture::new();
        let with = |failed| {
            let failed = Summary { failed: Some(failed), ..summary(10_000.0, 400.0) };
            gates(&Observation { summary: Some(&failed), ..trial.observed() })
        };
        assert_eq!(with(1), (Status::Valid, vec!["transactions-failed"]));
        assert_eq!(with(1000), (Status::Suspect, vec!["transactions-failed"]));
        assert_eq!(with(2000), (Status::Suspect, vec!["transactions-failed"]));
        // Three of ten.
        assert_eq!(with(8786), (Status::Invalid, vec!["transactions-failed"]));
    }

    #[test]
    fn a_load_that_did_not_run_as_planned_is_invalid() {
        let trial = TrialFixture::new();
        let deaths = [ClientDeath {
            at_us: 1_500_000,
            client: 3,
            sqlstate: Some("57P02".to_owned()),
            message: "terminating connection because of crash of another server process".to_owned(),
        }];
        let empty = Summary { transactions: Some(0), tps: 0.0, latency: None, ..summary(0.0, 1.0) };
        let died = Observation { deaths: &deaths, ..trial.observed() };
        assert_eq!(gates(&died), (Status::Invalid, vec!["client-died"]));
        let evidence = clients_died(&died).unwrap().evidence;
        assert!(evidence.starts_with("1 of 4 clients failed; client 3 after 1.500 s: "), "{evidence}");
        let nothing = Observation { summary: Some(&empty), ..trial.observed() };
        assert_eq!(gates(&nothing), (Status::Invalid, vec!["nothing-done"]));
        let failed = Observation { load_failure: Some("no room"), ..Observation::default() };
        assert_eq!(gates(&failed), (Status::Invalid, vec!["load-failed"]));
        let ended = Observation { interrupted: true, server_exit: Some("signal 2"), ..trial.observed() };
        assert_eq!(gates(&ended), (Status::Invalid, vec![INTERRUPTED, "server-exited"]));
    }
}
