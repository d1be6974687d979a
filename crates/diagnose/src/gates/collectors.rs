//! Do the collectors' readings cover the load's window, and are they complete?

use std::collections::BTreeMap;

use model::metrics::{Kind, Series};

use super::{Gate, GateFinding, Observation, noted, suspect};

pub(super) const GATES: [Gate; 3] =
    [("clock-stepped", clock_stepped), ("window-mismatch", window_mismatch), ("collectors", collectors)];

fn clock_stepped(observed: &Observation) -> Option<GateFinding> {
    let step_us = observed.clocks?.step_us() as f64;
    let limit = observed.thresholds.clock_step_us;
    if step_us.abs() <= limit {
        return None;
    }
    let evidence = format!("the wall clock stepped by {:+.3} s during the load", step_us / 1e6);
    Some(suspect(evidence).with_threshold(format!("at most {} s", limit / 1e6)).with_advice(
        "times in the server's log may be wrong; let the clock be slewed, not stepped, during measurements",
    ))
}

/// Largest distance of a reading from an end of the window.
const MAX_DISTANCE_US: i64 = 50_000;

/// Sources whose counters all begin after the window or end before it: they have no growth in it.
fn window_mismatch(observed: &Observation) -> Option<GateFinding> {
    let (from_us, to_us) = observed.window?;
    let mut ends: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for series in observed.metrics.0.iter().filter(|series| series.kind == Kind::Counter) {
        let Some((first_us, last_us)) = span(series) else { continue };
        let source = series.metric.split('.').next().unwrap_or_default();
        let (begin, end) = ends.entry(source).or_default();
        *begin |= first_us <= from_us + MAX_DISTANCE_US;
        *end |= last_us >= to_us - MAX_DISTANCE_US;
    }
    let without = |pick: fn(&(bool, bool)) -> bool| {
        ends.iter().filter(|(_, ends)| !pick(ends)).map(|(source, _)| *source).collect::<Vec<_>>().join(", ")
    };
    let parts: Vec<String> = [("start", without(|ends| ends.0)), ("end", without(|ends| ends.1))]
        .into_iter()
        .filter(|(_, sources)| !sources.is_empty())
        .map(|(end, sources)| format!("at its {end}: {sources}"))
        .collect();
    if parts.is_empty() {
        return None;
    }
    let evidence = format!("the readings do not cover the window; none {}", parts.join("; none "));
    Some(
        suspect(evidence)
            .with_threshold(format!("readings within {} ms of both ends", MAX_DISTANCE_US / 1000))
            .with_advice(
                "these metrics do not cover the window: find out why their sources failed or were late",
            ),
    )
}

/// Times of a series' first and last reading.
fn span(series: &Series) -> Option<(i64, i64)> {
    let known = || series.points.iter().filter(|point| point.value.is_some()).map(|point| point.at_us);
    Some((known().next()?, known().next_back()?))
}

fn collectors(observed: &Observation) -> Option<GateFinding> {
    let mut parts = Vec::new();
    for (metric, what) in [("collector.failed", "failed"), ("collector.late", "were late")] {
        for series in observed.metrics.all(metric) {
            let values = || series.points.iter().filter_map(|point| point.value);
            let times = values().next_back().unwrap_or_default() - values().next().unwrap_or_default();
            if times > 0.0 {
                let source = series.label.as_deref().unwrap_or("all");
                parts.push(format!("{times} of {source} {what}"));
            }
        }
    }
    if parts.is_empty() {
        return None;
    }
    Some(noted(format!("readings are missing: {}", parts.join(", "))))
}

#[cfg(test)]
mod tests {
    use model::record::{ClockReading, Clocks, Status};

    use super::super::fixture::{TrialFixture, WINDOW, gates};
    use super::*;

    #[test]
    fn a_clock_step_makes_the_trial_suspect() {
        let trial = TrialFixture::new();
        let clocks = trial.observed().clocks.unwrap();
        let with = |step_us| {
            let ended = ClockReading { unix_us: clocks.ended.unix_us + step_us, ..clocks.ended };
            gates(&Observation { clocks: Some(Clocks { ended, ..clocks }), ..trial.observed() })
        };
        assert_eq!(with(5_000), (Status::Valid, vec![]));
        assert_eq!(with(-3_600_000_000), (Status::Suspect, vec!["clock-stepped"]));
    }

    #[test]
    fn a_source_without_a_reading_at_an_end_of_the_window_is_named() {
        let mut trial = TrialFixture::new();
        trial.readings(
            "disk.read_bytes",
            Some("sda"),
            Kind::Counter,
            &[(WINDOW.0 + 60_000, 1.0), (WINDOW.1, 2.0)],
        );
        assert_eq!(gates(&trial.observed()), (Status::Suspect, vec!["window-mismatch"]));
        let evidence = window_mismatch(&trial.observed()).unwrap().evidence;
        assert_eq!(evidence, "the readings do not cover the window; none at its start: disk");
        // Another disk was present from the start: this one was added later.
        trial.readings(
            "disk.read_bytes",
            Some("sdb"),
            Kind::Counter,
            &[(WINDOW.0, 1.0), (WINDOW.1 - 40_000, 2.0)],
        );
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec![]));
        assert_eq!(gates(&Observation { window: None, ..trial.observed() }), (Status::Valid, vec![]));
    }

    #[test]
    fn failed_and_late_readings_are_noted() {
        let mut trial = TrialFixture::new();
        trial.counter("collector.late", Some("cpu"), 0.0);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec![]));
        trial.counter("collector.late", Some("cpu"), 1.0);
        trial.counter("collector.failed", Some("pg.database"), 1.0);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec!["collectors"]));
        let evidence = collectors(&trial.observed()).unwrap().evidence;
        assert_eq!(evidence, "readings are missing: 4 of pg.database failed, 4 of cpu were late");
    }
}
