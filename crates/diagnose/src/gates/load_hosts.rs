//! Of a load that comes from several hosts: did all take part, at the same time?

use model::load_hosts::{LoadHost, start_spread_us};

use super::{Gate, GateFinding, Observation, invalid, suspect};

/// In place of `load-failed`.
pub(super) const LOSS_GATES: [Gate; 1] = [("load-host-lost", lost)];

pub(super) const GATES: [Gate; 2] = [("load-host-clock", clock), ("load-host-start", start)];

fn lost(observed: &Observation) -> Option<GateFinding> {
    let losses: Vec<String> = observed.load_hosts.iter().filter_map(LoadHost::loss).collect();
    if losses.is_empty() {
        return None;
    }
    Some(invalid(losses.join("; ")).with_advice("see the agent's log on that host"))
}

/// A clock whose error is a share of the interval that matters: its host's transactions then count in another second than
/// those of the others.
fn clock(observed: &Observation) -> Option<GateFinding> {
    let limit = observed.thresholds.load_host_clock_us;
    // The clock of a host that was lost is known at one time only.
    let took_part =
        || observed.load_hosts.iter().filter(|host| host.lost.is_none() && host.late_us.is_some());
    let unknown: Vec<&str> =
        took_part().filter(|host| host.bound_us.is_none()).map(|host| host.name.as_str()).collect();
    let evidence = if unknown.is_empty() {
        let by_bound = |host: &&LoadHost| host.bound_us;
        let worst = took_part().max_by_key(by_bound)?;
        let bound_us = worst.bound_us.filter(|us| *us as f64 > limit)?;
        format!("the clock of load host {} is known to ± {} only", worst.name, ms(bound_us as f64))
    } else {
        format!("the clock of load host {} could not be read after the load", unknown.join(", "))
    };
    let advice = "use hosts nearer to this one, or a quieter network; raise load_host_clock_us if seconds do not matter";
    Some(suspect(evidence).with_threshold(at_most_ms(limit)).with_advice(advice))
}

fn start(observed: &Observation) -> Option<GateFinding> {
    let spread_us = start_spread_us(observed.load_hosts)?;
    let limit = observed.thresholds.load_host_start_us;
    if spread_us as f64 <= limit {
        return None;
    }
    let late = |host: &&LoadHost| host.late_us;
    let last = observed.load_hosts.iter().max_by_key(late)?;
    let evidence = format!("load host {} began {} after the first one", last.name, ms(spread_us as f64));
    let advice = "stop other programs on that host: its driver waited for a CPU";
    Some(suspect(evidence).with_threshold(at_most_ms(limit)).with_advice(advice))
}

fn ms(us: f64) -> String {
    format!("{:.1} ms", us / 1e3)
}

fn at_most_ms(us: f64) -> String {
    format!("at most {} ms", us / 1e3)
}

#[cfg(test)]
mod tests {
    use model::record::Status;

    use super::super::fixture::{TrialFixture, gates, load_hosts};
    use super::*;

    fn found(change: impl FnOnce(&mut Vec<LoadHost>)) -> (Status, Vec<&'static str>) {
        let trial = TrialFixture::new();
        let mut hosts = load_hosts();
        change(&mut hosts);
        gates(&Observation { load_hosts: &hosts, ..trial.observed() })
    }

    #[test]
    fn hosts_that_take_part_at_the_same_time_have_no_findings() {
        assert_eq!(found(|_| ()), (Status::Valid, vec![]));
    }

    #[test]
    fn a_lost_host_makes_the_trial_invalid_in_place_of_the_failed_load() {
        let trial = TrialFixture::new();
        let mut hosts = load_hosts();
        hosts[1].lost = Some("no answer".to_owned());
        hosts[1].bound_us = None;
        let loss = hosts[1].loss();
        let observed = Observation { load_hosts: &hosts, load_failure: loss.as_deref(), ..trial.observed() };
        assert_eq!(gates(&observed), (Status::Invalid, vec!["load-host-lost"]));
        assert_eq!(lost(&observed).unwrap().evidence, "lost load host b with its 2 clients: no answer");
        let observed = Observation { load_failure: Some("the disk is full"), ..trial.observed() };
        assert_eq!(gates(&observed), (Status::Invalid, vec!["load-failed"]));
    }

    #[test]
    fn a_clock_with_a_large_error_makes_the_trial_suspect() {
        assert_eq!(found(|hosts| hosts[1].bound_us = Some(10_000)), (Status::Valid, vec![]));
        let suspect = (Status::Suspect, vec!["load-host-clock"]);
        assert_eq!(found(|hosts| hosts[1].bound_us = Some(10_001)), suspect);
        assert_eq!(found(|hosts| hosts[1].bound_us = None), suspect);
        let trial = TrialFixture::new();
        let mut hosts = load_hosts();
        hosts[1].bound_us = Some(23_400);
        let evidence = clock(&Observation { load_hosts: &hosts, ..trial.observed() }).unwrap().evidence;
        assert_eq!(evidence, "the clock of load host b is known to ± 23.4 ms only");
    }

    #[test]
    fn a_host_that_began_late_makes_the_trial_suspect() {
        assert_eq!(found(|hosts| hosts[0].late_us = Some(10_050)), (Status::Valid, vec![]));
        assert_eq!(
            found(|hosts| hosts[0].late_us = Some(10_051)),
            (Status::Suspect, vec!["load-host-start"]),
            "the other one was 50 µs late"
        );
        // The load is stopped before its start.
        assert_eq!(found(|hosts| hosts[1].late_us = None), (Status::Valid, vec![]));
    }
}
