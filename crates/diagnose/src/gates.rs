//! The gates, each a function from what was observed to at most one finding.

use model::message::{ClientDeath, Interval, Phase};
use model::record::{Accounting, Finding, Status, Summary, Validity};

/// The gate of a trial that the user ended: it says nothing against the cell.
pub const INTERRUPTED: &str = "interrupted";

/// What the gates look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation<'a> {
    /// Number of clients that were to run.
    pub clients: u32,
    /// Whether clients wait for the time of their next transaction: an open loop.
    pub open_loop: bool,
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
}

/// Judges a trial: the findings of all gates, and the worst of them.
pub fn judge(observed: &Observation) -> Validity {
    const GATES: [fn(&Observation) -> Option<Finding>; 8] = [
        interrupted,
        server_exited,
        load_failed,
        clients_died,
        nothing_done,
        transaction_count,
        driver_saturated,
        littles_law,
    ];
    let findings: Vec<Finding> = GATES.iter().filter_map(|gate| gate(observed)).collect();
    let status = findings.iter().map(|finding| finding.status).max().unwrap_or(Status::Valid);
    Validity { status, findings }
}

fn finding(gate: &str, status: Status, evidence: String) -> Option<Finding> {
    Some(Finding { gate: gate.to_owned(), status, evidence })
}

fn interrupted(observed: &Observation) -> Option<Finding> {
    if !observed.interrupted {
        return None;
    }
    let evidence = match observed.summary {
        Some(summary) => {
            format!("ended by the user after {:.1} s of the window", summary.window_us as f64 / 1e6)
        }
        None => "ended by the user before the load began".to_owned(),
    };
    finding(INTERRUPTED, Status::Invalid, evidence)
}

fn server_exited(observed: &Observation) -> Option<Finding> {
    let exit = observed.server_exit?;
    finding("server-exited", Status::Invalid, format!("the server ended during the trial: {exit}"))
}

fn load_failed(observed: &Observation) -> Option<Finding> {
    finding("load-failed", Status::Invalid, observed.load_failure?.to_owned())
}

fn clients_died(observed: &Observation) -> Option<Finding> {
    let first = observed.deaths.first()?;
    let state = first.sqlstate.as_ref().map(|state| format!(" (SQLSTATE {state})")).unwrap_or_default();
    finding(
        "client-died",
        Status::Invalid,
        format!(
            "{} of {} clients could not go on; client {} after {:.3} s: {}{state}",
            observed.deaths.len(),
            observed.clients,
            first.client,
            first.at_us as f64 / 1e6,
            first.message
        ),
    )
}

fn nothing_done(observed: &Observation) -> Option<Finding> {
    match observed.summary {
        Some(summary) if summary.transactions == 0 => finding(
            "nothing-done",
            Status::Invalid,
            format!("no transaction ended in the window of {:.1} s", summary.window_us as f64 / 1e6),
        ),
        _ => None,
    }
}

/// The most commits that autovacuum's workers may add in one trial before they, too, must be explained: a fixed part
/// for a round of workers that find nothing to do, and a thousandth of the load.
const AUTOVACUUM_COMMITS: i64 = 200;

fn transaction_count(observed: &Observation) -> Option<Finding> {
    const GATE: &str = "transaction-count";
    observed.summary?;
    let accounting = &observed.accounting;
    let (Some(surplus), Some(transactions)) = (accounting.surplus(), accounting.driver_transactions) else {
        return finding(GATE, Status::Suspect, "the server's own count could not be read".to_owned());
    };
    let counts = format!(
        "the driver counts {transactions} transactions and {} other commits, the server {}",
        accounting.other_commits.unwrap_or_default(),
        accounting.server_commits.unwrap_or_default()
    );
    let explained_by_autovacuum = surplus > 0
        && observed.autovacuum != Some(false)
        && surplus <= AUTOVACUUM_COMMITS + transactions as i64 / 1000;
    match surplus {
        0 => None,
        _ if explained_by_autovacuum => finding(
            GATE,
            Status::Valid,
            format!("{counts}: {surplus} more, as autovacuum's workers add them"),
        ),
        ..0 => finding(GATE, Status::Invalid, format!("{counts}: {} fewer", -surplus)),
        _ => finding(
            GATE,
            Status::Suspect,
            format!("{counts}: {surplus} more; does someone else use this database?"),
        ),
    }
}

/// A driver thread busier than this, on the mean of the window, may itself be what was measured.
const BUSY_LIMIT: f64 = 0.9;

fn driver_saturated(observed: &Observation) -> Option<Finding> {
    let window = observed.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    let (busy_us, width_us) = window.fold((0.0, 0.0), |(busy, width), interval| {
        let us = interval.width_us as f64;
        (busy + interval.busy * us, width + us)
    });
    let busy = busy_us / width_us;
    if busy.is_nan() || busy <= BUSY_LIMIT {
        return None;
    }
    finding(
        "driver-saturated",
        Status::Suspect,
        format!(
            "the busiest driver thread worked {:.0}% of the window (limit {:.0}%): raise run.threads, or the driver \
             is what was measured",
            busy * 100.0,
            BUSY_LIMIT * 100.0
        ),
    )
}

/// Clients that are neither waiting for a transaction nor explained by the driver's own work, as a share of all.
const LITTLE_LIMIT: f64 = 0.1;

/// Little's law in a closed loop: clients = throughput × time per transaction (Little 1961).
fn littles_law(observed: &Observation) -> Option<Finding> {
    let summary = observed.summary?;
    let latency = summary.latency.as_ref()?;
    let busy = summary.tps * latency.mean_us / 1e6;
    let clients = f64::from(observed.clients);
    // In an open loop, clients are idle at times, and latency has waiting in it for which there is no client.
    if observed.open_loop {
        return None;
    }
    if (busy / clients - 1.0).abs() <= LITTLE_LIMIT || !observed.deaths.is_empty() || observed.interrupted {
        return None;
    }
    finding(
        "littles-law",
        Status::Suspect,
        format!(
            "{:.0} transactions/s × {:.3} ms = {busy:.2} clients at work, where {clients} should be",
            summary.tps,
            latency.mean_us / 1e3
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::message::Latency;

    fn summary(tps: f64, mean_us: f64) -> Summary {
        Summary {
            window_us: 2_000_000,
            transactions: (tps * 2.0) as u64,
            failed: 0,
            tps,
            latency: Some(Latency {
                mean_us,
                stddev_us: 1.0,
                min_us: mean_us,
                p50_us: mean_us,
                p90_us: mean_us,
                p95_us: mean_us,
                p99_us: mean_us,
                p999_us: mean_us,
                max_us: mean_us,
            }),
            service: None,
            connect_us: 1000,
            driver_cpu_us: 1000,
            driver_busy_max: 0.5,
            driver_lag_max_us: 10.0,
            driver_engine: None,
            driver_engine_reason: None,
        }
    }

    fn counted(driver: u64, other: u64, server: u64) -> Accounting {
        Accounting {
            driver_transactions: Some(driver),
            other_commits: Some(other),
            server_commits: Some(server),
        }
    }

    /// The status and the names of the gates that found something.
    fn gates(observed: &Observation) -> (Status, Vec<String>) {
        let validity = judge(observed);
        (validity.status, validity.findings.into_iter().map(|finding| finding.gate).collect())
    }

    #[test]
    fn a_sound_trial_has_no_findings() {
        let summary = summary(10_000.0, 400.0);
        let observed = Observation {
            clients: 4,
            summary: Some(&summary),
            accounting: counted(20_500, 8, 20_508),
            autovacuum: Some(false),
            ..Observation::default()
        };
        assert_eq!(gates(&observed), (Status::Valid, vec![]));
    }

    #[test]
    fn the_servers_count_must_agree() {
        let summary = summary(10_000.0, 400.0);
        let with = |server, autovacuum| {
            gates(&Observation {
                clients: 4,
                summary: Some(&summary),
                accounting: counted(20_500, 8, server),
                autovacuum: Some(autovacuum),
                ..Observation::default()
            })
        };
        let found = vec!["transaction-count".to_owned()];
        assert_eq!(
            with(20_507, true),
            (Status::Invalid, found.clone()),
            "a transaction the server never saw"
        );
        assert_eq!(with(20_509, false), (Status::Suspect, found.clone()), "someone else's commit");
        assert_eq!(with(20_515, true), (Status::Valid, found.clone()), "autovacuum's, noted");
        assert_eq!(with(25_000, true), (Status::Suspect, found), "too many for autovacuum");
    }

    #[test]
    fn a_count_that_is_missing_is_not_taken_for_zero() {
        let summary = summary(10_000.0, 400.0);
        let observed = Observation { clients: 4, summary: Some(&summary), ..Observation::default() };
        assert_eq!(gates(&observed), (Status::Suspect, vec!["transaction-count".to_owned()]));
    }

    #[test]
    fn time_that_is_missing_breaks_littles_law() {
        let summary = summary(10_000.0, 300.0);
        let observed = Observation {
            clients: 4,
            summary: Some(&summary),
            accounting: counted(20_000, 8, 20_008),
            ..Observation::default()
        };
        let validity = judge(&observed);
        assert_eq!(validity.status, Status::Suspect);
        assert_eq!(
            validity.findings[0].evidence,
            "10000 transactions/s × 0.300 ms = 3.00 clients at work, where 4 should be"
        );
    }

    #[test]
    fn a_dead_server_makes_the_trial_invalid_with_its_reason() {
        let deaths = [ClientDeath {
            at_us: 1_500_000,
            client: 3,
            sqlstate: Some("57P02".to_owned()),
            message: "terminating connection because of crash of another server process".to_owned(),
        }];
        let observed = Observation {
            clients: 4,
            server_exit: Some("signal 9"),
            deaths: &deaths,
            ..Observation::default()
        };
        let validity = judge(&observed);
        assert_eq!(validity.status, Status::Invalid);
        assert_eq!(validity.findings[0].evidence, "the server ended during the trial: signal 9");
        assert!(
            validity.findings[1]
                .evidence
                .starts_with("1 of 4 clients could not go on; client 3 after 1.500 s")
        );
    }

    #[test]
    fn a_driver_that_never_waits_is_suspected() {
        let interval = |phase, busy| Interval {
            start_us: 0,
            width_us: 1_000_000,
            phase,
            scripts: vec![],
            busy,
            lag_max_us: 1.0,
            lag_mean_us: None,
            responses: None,
            send_lag_max_us: None,
        };
        let with = |busy| {
            let intervals = [interval(Phase::Warmup, 1.0), interval(Phase::Measure, busy)];
            gates(&Observation { clients: 1, intervals: &intervals, ..Observation::default() })
        };
        assert_eq!(with(0.8), (Status::Valid, vec![]), "the warm-up does not count");
        assert_eq!(with(0.95), (Status::Suspect, vec!["driver-saturated".to_owned()]));
    }

    #[test]
    fn a_window_without_a_transaction_is_invalid() {
        let empty = Summary { transactions: 0, tps: 0.0, latency: None, ..summary(0.0, 1.0) };
        let observed = Observation {
            clients: 1,
            summary: Some(&empty),
            accounting: counted(0, 1, 1),
            ..Observation::default()
        };
        assert_eq!(gates(&observed), (Status::Invalid, vec!["nothing-done".to_owned()]));
    }
}
