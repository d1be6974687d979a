//! Did the measurement measure the driver?

use model::load_hosts::LoadHost;
use model::waits::SessionKind;

use super::machine::cpu_time;
use super::{Gate, GateFinding, Observation, at_most, percent, suspect};

pub(super) const GATES: [Gate; 4] = [
    ("driver-saturated", saturated),
    ("driver-threads", threads),
    ("driver-lag", lag),
    ("driver-starved", starved),
];

/// Advice to give the driver more CPU.
const ADVICE: &str = "raise run.threads, pin driver and server to separate CPUs, or run fewer clients: \
                      the result says little about the server";

/// The same, if the load comes from several hosts.
const ADVICE_ON_LOAD_HOSTS: &str =
    "raise run.threads, add load hosts, or run fewer clients: the result says little about the server";

/// Advice to give the driver more CPU, which is here or on a load host.
fn advice(host: Option<&str>) -> &'static str {
    if host.is_some() { ADVICE_ON_LOAD_HOSTS } else { ADVICE }
}

/// Share of the window in which the busiest thread worked; of a paired trial, without its pauses.
fn busy(observed: &Observation) -> Option<f64> {
    let (mut busy_us, mut width_us) = (0.0, 0.0);
    for interval in observed.measured() {
        let us = interval.width_us as f64;
        busy_us += interval.busy? * us;
        width_us += us;
    }
    let in_slices = || {
        let summary = observed.summary?;
        let transactions = summary.transactions? + summary.failed.unwrap_or(0);
        observed.paired?.load_time_us(transactions as f64)
    };
    // Both times are estimates if there are pauses.
    Some(busy_us / in_slices().unwrap_or(width_us)).filter(|busy| busy.is_finite()).map(|busy| busy.min(1.0))
}

/// Share of the window in which the busiest thread of the busiest driver worked, and the load host that it is on, if any.
fn busiest<'a>(observed: &Observation<'a>) -> Option<(f64, Option<&'a str>)> {
    if observed.load_hosts.is_empty() {
        return Some((busy(observed)?, None));
    }
    worst(observed.load_hosts, |host| host.busy)
}

/// The largest figure of the load hosts, and the host that it is of.
fn worst(hosts: &[LoadHost], figure: fn(&LoadHost) -> Option<f64>) -> Option<(f64, Option<&str>)> {
    let known = hosts.iter().filter_map(|host| Some((figure(host)?, Some(host.name.as_str()))));
    known.max_by(|(one, _), (other, _)| one.total_cmp(other))
}

/// `the driver`, or the one on this load host.
fn the_driver(host: Option<&str>) -> String {
    host.map_or("the driver".to_owned(), |host| format!("the driver on load host {host}"))
}

fn saturated(observed: &Observation) -> Option<GateFinding> {
    let (busy, host) = busiest(observed)?;
    let limit = observed.thresholds.driver_busy_share;
    if busy <= limit {
        return None;
    }
    let evidence = format!(
        "{} was saturated: its busiest thread worked {} of the window",
        the_driver(host),
        percent(busy)
    );
    Some(suspect(evidence).with_threshold(at_most(limit)).with_advice(advice(host)))
}

/// Share of their time that sessions of a load wait for its driver, at least, if the server is not the limit.
const MIN_WAITING: f64 = 0.65;
/// Share of the window that the busiest thread works, at least, if it is the driver that sessions wait for and not the
/// network.
const MIN_BUSY: f64 = 0.1;

/// Fewer threads than by default, although CPUs idled and sessions waited for the driver. CPUs that wait for a disk do
/// not count: more threads would not use them. If these are most of the idle ones, the disk is the limit.
fn threads(observed: &Observation) -> Option<GateFinding> {
    let (threads, default) = (observed.driver_threads?, observed.default_driver_threads?);
    // The rate of an open loop does not depend on the driver as long as it keeps up, which other gates check.
    if threads >= default || observed.open_loop || observed.idle_at_times {
        return None;
    }
    let (busy, waiting) = (busy(observed)?, waiting_for_driver(observed)?);
    let idle_us = observed.growth("cpu.idle_us", Some("all"))?;
    let waits_for_disk = observed.growth("cpu.iowait_us", Some("all")).is_some_and(|us| us >= idle_us);
    let idle = idle_us / cpu_time(observed)?.total_us;
    let limit = observed.thresholds.driver_threads_share;
    if waits_for_disk || waiting < MIN_WAITING || busy < MIN_BUSY || idle <= limit || idle.is_nan() {
        return None;
    }
    let evidence = format!(
        "the driver had {threads} of the default {default} threads, and more may have given more: CPUs idled {} of the \
         window, while {:.1} of {} sessions waited for the driver on average",
        percent(idle),
        waiting * f64::from(observed.clients),
        observed.clients
    );
    let advice = "leave out run.threads, or compare with more threads (factor threads)";
    Some(suspect(evidence).with_threshold(at_most(limit)).with_advice(advice))
}

/// Share of the time in which the load's sessions waited for their clients' next statement.
fn waiting_for_driver(observed: &Observation) -> Option<f64> {
    let (from_us, to_us) = observed.window?;
    let (mut waiting, mut all) = (0.0, 0.0);
    for waits in observed.waits {
        if waits.session == SessionKind::Load && (from_us..to_us).contains(&waits.at_us) {
            let is_waiting = waits.state.as_deref().is_some_and(|state| state.starts_with("idle"));
            waiting += if is_waiting { f64::from(waits.seen) } else { 0.0 };
            all += f64::from(waits.seen);
        }
    }
    Some(waiting / all).filter(|share| share.is_finite())
}

/// Lag of all responses of a transaction, and the load host where it is largest, if the load came from any.
fn lag_us<'a>(observed: &Observation<'a>) -> Option<(f64, Option<&'a str>)> {
    if !observed.load_hosts.is_empty() {
        return worst(observed.load_hosts, |host| host.lag_us);
    }
    let (mut lag_us, mut transactions) = (0.0, 0.0);
    for interval in observed.measured() {
        let scripts = interval.scripts.iter().chain(&interval.background);
        transactions += scripts.map(|script| script.transactions as f64).sum::<f64>();
        lag_us += interval.lag_us().unwrap_or_default();
    }
    Some((lag_us / transactions, None))
}

/// Driver lag is part of every latency: the lag of all responses of a transaction together.
fn lag(observed: &Observation) -> Option<GateFinding> {
    let latency_us = observed.summary?.latency.as_ref()?.mean_us?;
    let (lag_us, host) = lag_us(observed)?;
    let (share, limit) = (lag_us / latency_us, observed.thresholds.driver_lag_share);
    // Negated, because unknown values are NaN.
    if !(share > limit && lag_us > observed.thresholds.driver_lag_us) {
        return None;
    }
    let evidence = format!(
        "{} handled responses {lag_us:.0} µs late on average, {} of latency",
        the_driver(host),
        percent(share)
    );
    let threshold = format!("{}, or {:.0} µs", at_most(limit), observed.thresholds.driver_lag_us);
    Some(suspect(evidence).with_threshold(threshold).with_advice(advice(host)))
}

fn starved(observed: &Observation) -> Option<GateFinding> {
    let waited = observed.share_of_window("role.busiest_wait_us", Some("driver"))?;
    let limit = observed.thresholds.driver_wait_share;
    if waited <= limit {
        return None;
    }
    let evidence = format!(
        "the driver was starved: its busiest thread waited for a CPU {} of the window",
        percent(waited)
    );
    Some(suspect(evidence).with_threshold(at_most(limit)).with_advice(ADVICE))
}

#[cfg(test)]
mod tests {
    use model::message::Interval;
    use model::record::Status;

    use super::super::fixture::{TrialFixture, gates, load_hosts, sessions, summary};
    use super::super::judge;
    use super::*;

    #[test]
    fn a_saturated_driver_makes_the_trial_suspect() {
        let with = |busy| {
            let mut trial = TrialFixture::new();
            trial.intervals[0].busy = Some(1.0);
            trial.intervals[1..].iter_mut().for_each(|interval| interval.busy = Some(busy));
            gates(&trial.observed())
        };
        assert_eq!(with(0.8), (Status::Valid, vec![]), "the warm-up does not count");
        assert_eq!(with(0.95), (Status::Suspect, vec!["driver-saturated"]));
    }

    #[test]
    fn drivers_of_load_hosts_are_judged_one_by_one_and_named() {
        let mut trial = TrialFixture::new();
        // What all of them together report is not judged.
        for interval in &mut trial.intervals {
            (interval.busy, interval.lag_mean_us) = (Some(1.0), Some(1e4));
        }
        let with = |busy, lag_us| {
            let mut hosts = load_hosts();
            (hosts[1].busy, hosts[1].lag_us) = (Some(busy), Some(lag_us));
            let found = judge(&Observation { load_hosts: &hosts, ..trial.observed() }).findings;
            found.into_iter().map(|finding| finding.evidence).collect::<Vec<_>>()
        };
        assert_eq!(with(0.9, 50.0), [""; 0]);
        assert_eq!(
            with(0.91, 60.0),
            [
                "the driver on load host b was saturated: its busiest thread worked 91% of the window",
                "the driver on load host b handled responses 60 µs late on average, 15% of latency",
            ]
        );
    }

    #[test]
    fn pauses_do_not_hide_a_saturated_driver() {
        let mut trial = TrialFixture::new();
        // Half of the window.
        let side = trial.side(1_500_000);
        let mut with = |busy| {
            trial.intervals.iter_mut().for_each(|interval| interval.busy = Some(busy));
            gates(&Observation { paired: Some(&side), ..trial.observed() })
        };
        assert_eq!(with(0.4), (Status::Valid, vec![]));
        assert_eq!(with(0.48), (Status::Suspect, vec!["driver-saturated"]));
    }

    #[test]
    fn fewer_threads_than_by_default_count_if_sessions_wait_for_the_driver_while_cpus_idle() {
        let with = |busy, waiting, idle_us: f64, change: fn(&mut Observation)| {
            let mut trial = TrialFixture::new();
            trial.intervals.iter_mut().for_each(|interval| interval.busy = Some(busy));
            trial.waits = sessions(waiting);
            trial.counter("cpu.idle_us", Some("all"), idle_us);
            let mut observed =
                Observation { driver_threads: Some(1), default_driver_threads: Some(4), ..trial.observed() };
            change(&mut observed);
            gates(&observed)
        };
        // Of the 2 s of two CPUs in a second, 1.455 s are busy.
        let sound = (Status::Valid, vec![]);
        assert_eq!(with(0.36, 70, 200_000.0, |_| {}), (Status::Suspect, vec!["driver-threads"]));
        assert_eq!(with(0.02, 70, 200_000.0, |_| {}), sound, "a network that takes its time");
        assert_eq!(with(0.36, 45, 200_000.0, |_| {}), sound, "a server that is the limit");
        assert_eq!(with(0.36, 70, 50_000.0, |_| {}), sound, "no CPU was free");
        assert_eq!(
            with(0.36, 70, 200_000.0, |observed| observed.idle_at_times = true),
            sound,
            "clients that think"
        );
        assert_eq!(with(0.36, 70, 200_000.0, |observed| observed.driver_threads = Some(4)), sound);
        assert_eq!(with(0.36, 70, 200_000.0, |observed| observed.open_loop = true), sound);
        assert_eq!(with(0.36, 70, 200_000.0, |observed| observed.driver_threads = None), sound);
        assert_eq!(with(0.36, 70, 200_000.0, |observed| observed.waits = &[]), sound);
    }

    #[test]
    fn cpus_that_wait_for_a_disk_are_not_idle_for_more_threads() {
        let mut trial = TrialFixture::new();
        trial.intervals.iter_mut().for_each(|interval| interval.busy = Some(0.36));
        trial.waits = sessions(70);
        let mut with = |idle_us, iowait_us| {
            trial.counter("cpu.idle_us", Some("all"), idle_us);
            trial.counter("cpu.iowait_us", Some("all"), iowait_us);
            gates(&Observation {
                driver_threads: Some(1),
                default_driver_threads: Some(4),
                ..trial.observed()
            })
            .1
        };
        assert_eq!(with(200_000.0, 60_000.0), ["driver-threads"]);
        assert!(with(60_000.0, 40_000.0).is_empty(), "they idle 4 %");
        assert!(with(200_000.0, 300_000.0).is_empty(), "the disk is the limit");
    }

    #[test]
    fn driver_lag_counts_only_if_long_and_a_share_of_the_latency() {
        let mut trial = TrialFixture::new();
        let lag = |intervals: &mut Vec<Interval>, mean_us| {
            intervals.iter_mut().for_each(|interval| interval.lag_mean_us = Some(mean_us));
        };
        // Of 400 µs; each transaction has two responses.
        lag(&mut trial.intervals, 30.0);
        assert_eq!(gates(&trial.observed()), (Status::Suspect, vec!["driver-lag"]));
        lag(&mut trial.intervals, 19.0);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec![]));

        lag(&mut trial.intervals, 24.0);
        let fast = summary(40_000.0, 100.0);
        assert_eq!(gates(&Observation { summary: Some(&fast), ..trial.observed() }), (Status::Valid, vec![]));

        lag(&mut trial.intervals, 30.0);
        trial.intervals.iter_mut().for_each(|interval| interval.responses = None);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec![]), "nothing is known of the responses");
    }

    #[test]
    fn a_starved_driver_makes_the_trial_suspect() {
        let mut trial = TrialFixture::new();
        trial.counter("role.busiest_wait_us", Some("driver"), 50_000.0);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec![]));
        trial.counter("role.busiest_wait_us", Some("driver"), 550_000.0);
        assert_eq!(gates(&trial.observed()), (Status::Suspect, vec!["driver-starved"]));
        let found = starved(&trial.observed()).unwrap();
        assert_eq!(
            found.evidence,
            "the driver was starved: its busiest thread waited for a CPU 55% of the window"
        );
        trial.metrics.0.clear();
        assert!(starved(&trial.observed()).is_none());
    }
}
