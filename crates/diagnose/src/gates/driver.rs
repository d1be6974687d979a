//! Did the measurement measure the driver?

use super::{Gate, GateFinding, Observation, at_most, percent, suspect};

pub(super) const GATES: [Gate; 3] =
    [("driver-saturated", saturated), ("driver-lag", lag), ("driver-starved", starved)];

/// Advice to give the driver more CPU.
const ADVICE: &str = "raise run.threads, pin driver and server to separate CPUs, or run fewer clients: \
                      the result says little about the server";

fn saturated(observed: &Observation) -> Option<GateFinding> {
    let (mut busy_us, mut width_us) = (0.0, 0.0);
    for interval in observed.measured() {
        let us = interval.width_us as f64;
        busy_us += interval.busy? * us;
        width_us += us;
    }
    let busy = busy_us / width_us;
    let limit = observed.thresholds.driver_busy_share;
    if busy.is_nan() || busy <= limit {
        return None;
    }
    let evidence =
        format!("the driver was saturated: its busiest thread worked {} of the window", percent(busy));
    Some(suspect(evidence).with_threshold(at_most(limit)).with_advice(ADVICE))
}

/// Driver lag is part of every latency: the lag of all responses of a transaction together.
fn lag(observed: &Observation) -> Option<GateFinding> {
    let latency_us = observed.summary?.latency.as_ref()?.mean_us?;
    let (mut lag_us, mut transactions) = (0.0, 0.0);
    for interval in observed.measured() {
        let scripts = interval.scripts.iter().chain(&interval.background);
        transactions += scripts.map(|script| script.transactions as f64).sum::<f64>();
        lag_us += interval.lag_us().unwrap_or_default();
    }
    let lag_us = lag_us / transactions;
    let (share, limit) = (lag_us / latency_us, observed.thresholds.driver_lag_share);
    // Negated, because unknown values are NaN.
    if !(share > limit && lag_us > observed.thresholds.driver_lag_us) {
        return None;
    }
    let evidence =
        format!("the driver handled responses {lag_us:.0} µs late on average, {} of latency", percent(share));
    let threshold = format!("{}, or {:.0} µs", at_most(limit), observed.thresholds.driver_lag_us);
    Some(suspect(evidence).with_threshold(threshold).with_advice(ADVICE))
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

    use super::super::fixture::{TrialFixture, gates, summary};
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
