//! Running totals of a load by phase, as monitoring systems want them: counters and the counts of a histogram, which lose
//! nothing between two readings.

use model::message::{Interval, Phase};
use serde::{Deserialize, Serialize};

use crate::hlog::Latencies;

/// Upper bounds of the latency histogram, in microseconds, inclusive: five per decade (the preferred numbers R5 of ISO 3),
/// from 10 µs to 10 s. Larger latencies are in one more bucket.
pub const LATENCY_BOUNDS_US: [u64; 31] = [
    10, 16, 25, 40, 63, 100, 160, 250, 400, 630, 1_000, 1_600, 2_500, 4_000, 6_300, 10_000, 16_000, 25_000,
    40_000, 63_000, 100_000, 160_000, 250_000, 400_000, 630_000, 1_000_000, 1_600_000, 2_500_000, 4_000_000,
    6_300_000, 10_000_000,
];

/// Transactions of the measured workload so far, one entry per phase that has begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals(pub Vec<PhaseTotals>);

/// Totals of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseTotals {
    /// The phase.
    pub phase: Phase,
    /// Transactions that succeeded and ended in this phase.
    pub transactions: u64,
    /// Transactions that failed; null if unknown.
    pub failed: Option<u64>,
    /// Sum of the latencies that count in this phase.
    pub latency_sum_us: f64,
    /// Number of these latencies by bucket: one per [`LATENCY_BOUNDS_US`], and one above them.
    pub latency_counts: Vec<u64>,
}

impl PhaseTotals {
    fn new(phase: Phase) -> Self {
        let latency_counts = vec![0; LATENCY_BOUNDS_US.len() + 1];
        Self { phase, transactions: 0, failed: Some(0), latency_sum_us: 0.0, latency_counts }
    }
}

impl Totals {
    /// Whether no phase has begun.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an interval and its latencies by the phase that they count in.
    pub fn add(&mut self, interval: &Interval, latencies: &[(Phase, Latencies)]) {
        let totals = self.of_phase(interval.phase);
        for script in &interval.scripts {
            totals.transactions += script.transactions;
            totals.failed = totals.failed.zip(script.failed).map(|(before, more)| before + more);
        }
        for (phase, latencies) in latencies {
            let totals = self.of_phase(*phase);
            for &(ns, count) in latencies {
                let bucket = LATENCY_BOUNDS_US.partition_point(|bound_us| bound_us * 1000 < ns);
                totals.latency_counts[bucket] += count;
                totals.latency_sum_us += ns as f64 * count as f64 / 1e3;
            }
        }
    }

    fn of_phase(&mut self, phase: Phase) -> &mut PhaseTotals {
        let known = self.0.iter().position(|totals| totals.phase == phase);
        let at = known.unwrap_or_else(|| {
            self.0.push(PhaseTotals::new(phase));
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

#[cfg(test)]
mod tests {
    use model::message::ScriptInterval;

    use super::*;

    fn interval(phase: Phase, transactions: u64, failed: Option<u64>) -> Interval {
        let script = |script: &str, transactions| ScriptInterval {
            script: script.to_owned(),
            transactions,
            failed,
            unfinished: None,
            latencies: Vec::new(),
        };
        Interval {
            start_us: 0,
            width_us: 1_000_000,
            phase,
            scripts: vec![script("a", transactions), script("b", 1)],
            background: vec![script("c", 1000)],
            spans: Vec::new(),
            busy: None,
            lag_max_us: None,
            lag_mean_us: None,
            responses: None,
            send_lag_max_us: None,
        }
    }

    #[test]
    fn intervals_add_up_by_phase() {
        let mut totals = Totals::default();
        totals.add(&interval(Phase::Warmup, 5, Some(1)), &[]);
        totals.add(&interval(Phase::Measure, 7, Some(0)), &[]);
        totals.add(&interval(Phase::Measure, 8, None), &[]);
        let found: Vec<_> = totals.0.iter().map(|of| (of.phase, of.transactions, of.failed)).collect();
        assert_eq!(found, [(Phase::Warmup, 6, Some(2)), (Phase::Measure, 17, None)]);
    }

    /// A transaction of an open loop that ended in the drain counts in the window if it was to start there.
    #[test]
    fn latencies_are_in_the_bucket_that_they_do_not_exceed() {
        let mut totals = Totals::default();
        let latencies = vec![(1, 1), (10_000, 2), (10_001, 3), (10_000_000_000, 4), (10_000_000_001, 5)];
        totals.add(&interval(Phase::Drain, 0, Some(0)), &[(Phase::Measure, latencies)]);
        let measured = &totals.0[1];
        assert_eq!((measured.phase, measured.transactions), (Phase::Measure, 0));
        let found: Vec<_> =
            measured.latency_counts.iter().enumerate().filter(|(_, count)| **count > 0).collect();
        assert_eq!(found, [(0, &3), (1, &3), (30, &4), (31, &5)]);
        assert!((measured.latency_sum_us - 90_000_050.0).abs() < 0.1, "{}", measured.latency_sum_us);
        assert!(LATENCY_BOUNDS_US.is_sorted());
    }
}
