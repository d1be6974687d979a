//! Coordinated omission: a client of a closed loop starts nothing while it waits, so a stall of seconds counts as one
//! slow transaction among thousands.
//!
//! Source: Gil Tene, "How NOT to Measure Latency" (2013), and HdrHistogram's `copyCorrectedForCoordinatedOmission`.

use driver::{Record, ScriptRecord};
use hdrhistogram::Histogram;

use crate::measure::Interval;

/// Sign of a server stall in a closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stall {
    /// A transaction that took much longer than the median, in nanoseconds.
    Transaction { max_ns: u64, p50_ns: u64 },
    /// A second with hardly any throughput, by its start within the window.
    Second { at_ns: u64, tps: f64, median_tps: f64 },
}

/// A transaction is a stall from this many times the median on …
const MIN_TIMES_MEDIAN: u64 = 20;

/// … and from this length on.
const MIN_STALL_NS: u64 = 100_000_000;

/// A second is a stall below this share of the running median.
const MAX_SHARE_OF_MEDIAN: f64 = 0.2;

/// Minimum number of seconds for a median, and minimum of that median in transactions per second: below it, most low
/// seconds are random.
const MIN_SECONDS_BEFORE: usize = 2;
const MIN_MEDIAN_TPS: f64 = 10.0;

/// The stall of a load, if any. Transactions of different scripts are not compared.
pub(crate) fn stall(window: &Record, intervals: &[Interval]) -> Option<Stall> {
    let slow = |script: &ScriptRecord| {
        let (max_ns, p50_ns) = (script.moments.max, script.latency.value_at_quantile(0.5));
        let is_stall = max_ns >= MIN_STALL_NS && max_ns >= p50_ns.saturating_mul(MIN_TIMES_MEDIAN);
        is_stall.then_some(Stall::Transaction { max_ns, p50_ns })
    };
    let length = |stall: &Stall| match stall {
        Stall::Transaction { max_ns, .. } => *max_ns,
        Stall::Second { .. } => 0,
    };
    let slowest = window.scripts.iter().filter_map(slow).max_by_key(length);
    slowest.or_else(|| stalled_second(&by_second(intervals)))
}

/// The first second whose throughput is far below the median of the seconds before it. Takes start and throughput.
fn stalled_second(seconds: &[(u64, f64)]) -> Option<Stall> {
    let mut before = Vec::with_capacity(seconds.len());
    for &(at_ns, tps) in seconds {
        if before.len() >= MIN_SECONDS_BEFORE {
            let median_tps = median(&before);
            if median_tps >= MIN_MEDIAN_TPS && tps < median_tps * MAX_SHARE_OF_MEDIAN {
                return Some(Stall::Second { at_ns, tps, median_tps });
            }
        }
        before.push(tps);
    }
    None
}

/// Throughput per second, or per interval if that is longer; without the rest at the end.
fn by_second(intervals: &[Interval]) -> Vec<(u64, f64)> {
    let mut seconds = Vec::new();
    let Some(origin_ns) = intervals.first().map(|first| first.start_ns) else { return seconds };
    let (mut from_ns, mut transactions) = (origin_ns, 0);
    for interval in intervals {
        transactions += interval.transactions;
        let length_ns = interval.end_ns.saturating_sub(from_ns);
        // Three intervals of a third make a second only up to rounding.
        if length_ns >= 999_000_000 {
            seconds.push((from_ns - origin_ns, transactions as f64 * 1e9 / length_ns as f64));
            (from_ns, transactions) = (interval.end_ns, 0);
        }
    }
    seconds
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Latencies as if each client had started a transaction every mean interval, also while it waited.
pub(crate) fn corrected(
    latency: &Histogram<u64>,
    transactions: u64,
    clients: u32,
    window_ns: u64,
) -> Histogram<u64> {
    let interval_ns = u128::from(window_ns) * u128::from(clients) / u128::from(transactions.max(1));
    latency.clone_correct(u64::try_from(interval_ns).unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(tps: &[f64]) -> Vec<(u64, f64)> {
        tps.iter().enumerate().map(|(second, tps)| (second as u64 * 1_000_000_000, *tps)).collect()
    }

    #[test]
    fn a_second_far_below_the_previous_median_is_a_stall() {
        let stall = stalled_second(&seconds(&[100.0, 110.0, 90.0, 15.0, 100.0]));
        assert_eq!(stall, Some(Stall::Second { at_ns: 3_000_000_000, tps: 15.0, median_tps: 100.0 }));
        assert_eq!(stalled_second(&seconds(&[100.0, 110.0, 25.0, 30.0])), None);
        // Too few seconds before, and too few transactions to exclude chance.
        assert_eq!(stalled_second(&seconds(&[100.0, 1.0])), None);
        assert_eq!(stalled_second(&seconds(&[5.0, 5.0, 5.0, 0.0])), None);
    }

    #[test]
    fn transactions_delayed_by_a_stall_are_added() {
        // One client, 1 ms a transaction, and a stall of 1 s: 1,000 that did not start waited for 999 ms, 998 ms, …
        let mut latency = Histogram::<u64>::new(3).unwrap();
        latency.record_n(1_000_000, 1_000).unwrap();
        latency.record(1_000_000_000).unwrap();
        assert!(latency.value_at_quantile(0.99) < 2_000_000);
        let corrected = corrected(&latency, 2_000, 1, 2_000_000_000);
        assert_eq!(corrected.len(), 2_000);
        let p75 = corrected.value_at_quantile(0.75) as f64;
        assert!((p75 / 500e6 - 1.0).abs() < 0.01, "{p75}");
    }
}
