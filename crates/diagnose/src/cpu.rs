//! CPU time in a time span.

use std::iter::Sum;

use model::metrics::Metrics;

/// CPU time, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuTime {
    /// Time in programs, in the kernel, and in interrupts.
    pub busy_us: f64,
    /// Time taken by the hypervisor (steal).
    pub steal_us: f64,
    /// Total time: busy, stolen, and idle.
    pub total_us: f64,
}

impl CpuTime {
    /// CPU time of `all` CPUs, or of one: `cpu0`. `None` if idle time is unknown.
    pub fn new(metrics: &Metrics, cpu: &str, from_us: i64, to_us: i64) -> Option<Self> {
        let us = |metric: &str| metrics.growth(metric, Some(cpu), from_us, to_us);
        let busy = ["cpu.user_us", "cpu.nice_us", "cpu.system_us", "cpu.irq_us", "cpu.softirq_us"];
        let busy_us = busy.into_iter().filter_map(us).sum();
        // A kernel without this counter has no steal.
        let steal_us = us("cpu.steal_us").unwrap_or_default();
        let idle_us = us("cpu.idle_us")? + us("cpu.iowait_us").unwrap_or_default();
        Some(Self { busy_us, steal_us, total_us: busy_us + steal_us + idle_us })
    }

    /// The idle share; NaN if there was no time at all.
    pub fn idle(self) -> f64 {
        1.0 - (self.busy_us + self.steal_us) / self.total_us
    }

    /// The busy share; NaN if there was no time at all.
    pub fn busy(self) -> f64 {
        self.busy_us / self.total_us
    }
}

/// Instructions per transaction, on a machine that takes one nanosecond per instruction: the time in which its only CPU
/// was not idle, between two times, divided by the number of transactions. `None` if unknown.
pub fn instructions_per_transaction(
    metrics: &Metrics,
    from_us: i64,
    to_us: i64,
    transactions: u64,
) -> Option<f64> {
    let us = |metric: &str| metrics.growth(metric, Some("all"), from_us, to_us);
    // The kernel samples busy time, but measures idle time.
    let idle_us = us("cpu.idle_us")? + us("cpu.iowait_us").unwrap_or_default();
    let busy_us = (to_us - from_us) as f64 - idle_us;
    (transactions > 0 && busy_us > 0.0).then(|| busy_us * 1000.0 / transactions as f64)
}

impl Sum for CpuTime {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self { busy_us: 0.0, steal_us: 0.0, total_us: 0.0 }, |sum, time| Self {
            busy_us: sum.busy_us + time.busy_us,
            steal_us: sum.steal_us + time.steal_us,
            total_us: sum.total_us + time.total_us,
        })
    }
}

#[cfg(test)]
mod tests {
    use model::metrics::{Kind, Point, Series};

    use super::*;

    fn counter(metric: &str, per_s: f64) -> Series {
        let point = |second: i64| Point { at_us: second * 1_000_000, value: Some(second as f64 * per_s) };
        let label = Some("all".to_owned());
        Series {
            metric: metric.to_owned(),
            label,
            kind: Kind::Counter,
            points: (0..=10).map(point).collect(),
        }
    }

    #[test]
    fn instructions_are_the_nanoseconds_of_non_idle_time() {
        let metrics = Metrics(vec![
            counter("cpu.idle_us", 150_000.0),
            counter("cpu.iowait_us", 50_000.0),
            // As sampled by its ticks.
            counter("cpu.user_us", 700_000.0),
        ]);
        let instructions =
            |transactions| instructions_per_transaction(&metrics, 2_000_000, 7_000_000, transactions);
        // Four fifths of 5 s, for 50,000 transactions.
        assert_eq!(instructions(50_000), Some(80_000.0));
        assert_eq!(instructions(0), None);
        assert_eq!(
            instructions_per_transaction(&metrics, 2_000_000, 12_000_000, 1),
            None,
            "not read until then"
        );
        assert_eq!(instructions_per_transaction(&Metrics::default(), 0, 1_000_000, 1), None);
    }
}
