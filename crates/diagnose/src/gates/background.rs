//! Did background workloads run at their rates?

use model::record::BackgroundSummary;

use super::{Gate, GateFinding, Observation, at_most, noted, percent};

pub(super) const GATES: [Gate; 1] = [(BACKGROUND_RATE, rate)];

/// The gate of a rate that was not held.
pub const BACKGROUND_RATE: &str = "background-rate";

/// A background workload whose transactions were due earlier than the server let them begin. It is a result, and the trial is as
/// good as others: the server did not do what it had to.
fn rate(observed: &Observation) -> Option<GateFinding> {
    let limit = observed.thresholds.background_missed_share;
    let missed = |background: &&BackgroundSummary| {
        // One may have been due just before the end.
        background.missed.is_some_and(|missed| missed > 1)
            && background.missed_share().is_some_and(|share| share > limit)
    };
    let missed: Vec<String> =
        observed.summary?.background.iter().filter(missed).filter_map(evidence).collect();
    if missed.is_empty() {
        return None;
    }
    let evidence = format!("SLA missed: {}", missed.join("; "));
    Some(noted(evidence).with_threshold(at_most(limit)))
}

fn evidence(background: &BackgroundSummary) -> Option<String> {
    let BackgroundSummary { workload, tps, rate, missed, .. } = background;
    let share = percent(background.missed_share()?);
    let rate = rate.map(|rate| format!(" of {rate}")).unwrap_or_default();
    let missed = (*missed)?;
    Some(format!(
        "{workload} ran {tps:.2}{rate} transactions per second, and {missed} that were due ({share}) never began"
    ))
}

#[cfg(test)]
mod tests {
    use model::record::Status;

    use super::super::fixture::{TrialFixture, gates, summary};
    use super::*;

    #[test]
    fn a_rate_that_was_not_held_is_noted() {
        let trial = TrialFixture::new();
        let with = |transactions, missed| {
            let background = BackgroundSummary {
                workload: "inserts".to_owned(),
                transactions,
                failed: 0,
                tps: transactions as f64 / 10.0,
                rate: Some(20.0),
                missed,
                latency: None,
            };
            let summary =
                Some(model::record::Summary { background: vec![background], ..summary(10_000.0, 400.0) });
            let observed = Observation { summary: summary.as_ref(), ..trial.observed() };
            (gates(&observed), rate(&observed).map(|finding| finding.evidence))
        };
        let held = (Status::Valid, vec![]);
        assert_eq!(with(195, Some(5)).0, held);
        assert_eq!(with(1, Some(1)).0, held, "one may have been due just before the end");
        assert_eq!(with(100, None).0, held, "without a rate, and in older bundles");
        let (found, evidence) = with(120, Some(80));
        assert_eq!(found, (Status::Valid, vec!["background-rate"]));
        assert_eq!(
            evidence.unwrap(),
            "SLA missed: inserts ran 12.00 of 20 transactions per second, and 80 that were due (40%) never began"
        );
    }
}
