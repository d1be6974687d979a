//! What processors did in a span of time.

use std::iter::Sum;

use model::metrics::Metrics;

/// CPU time, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuTime {
    /// In programs, in the kernel, and in interrupts.
    pub busy_us: f64,
    /// Taken by the machine's host.
    pub steal_us: f64,
    /// All that there was: busy, taken, and idle.
    pub total_us: f64,
}

impl CpuTime {
    /// Of `all` processors, or of one: `cpu0`. None where it is not known how long it was idle.
    pub fn of(metrics: &Metrics, cpu: &str, from_us: i64, to_us: i64) -> Option<Self> {
        let us = |metric: &str| metrics.growth(metric, Some(cpu), from_us, to_us);
        let busy = ["cpu.user_us", "cpu.nice_us", "cpu.system_us", "cpu.irq_us", "cpu.softirq_us"];
        let busy_us = busy.into_iter().filter_map(us).sum();
        // What a kernel does not count does not happen.
        let steal_us = us("cpu.steal_us").unwrap_or_default();
        let idle_us = us("cpu.idle_us")? + us("cpu.iowait_us").unwrap_or_default();
        Some(Self { busy_us, steal_us, total_us: busy_us + steal_us + idle_us })
    }

    /// The busy share; not a number of no time at all.
    pub fn busy(self) -> f64 {
        self.busy_us / self.total_us
    }
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
