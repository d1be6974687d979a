//! Thresholds of the validity gates.

use serde::{Deserialize, Serialize};

/// Names of all gates, and of what is found like by one: `kernel` of a trial whose kernel did not come up, `imported`.
pub const GATES: [&str; 39] = [
    "interrupted",
    "kernel",
    "no-server",
    "imported",
    "load-failed",
    "load-host-lost",
    "client-died",
    "nothing-done",
    "transaction-count",
    "transactions-failed",
    "background-rate",
    "littles-law",
    "trend",
    "emulated",
    "disk-wait",
    "driver-saturated",
    "driver-threads",
    "driver-lag",
    "driver-starved",
    "load-host-clock",
    "load-host-start",
    "server-exited",
    "server-restarted",
    "topology",
    "settings-changed",
    "autovacuum",
    "no-checkpoint",
    "cpu-steal",
    "foreign-cpu",
    "other-pgdyno",
    "lost-agent",
    "cpu-frequency",
    "memory-pressure",
    "swap",
    "out-of-memory",
    "clock-stepped",
    "window-mismatch",
    "collectors",
    "consistency",
];

/// The thresholds of the validity gates, which `docs/validity.md` explains. A value beyond a threshold is a finding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(transform = crate::schema::no_negative_numbers))]
pub struct Thresholds {
    /// Share of the window that the busiest driver thread may be busy.
    pub driver_busy_share: f64,
    /// Share of the window in which CPUs may idle, if there are fewer driver threads than by default and sessions wait for
    /// them.
    pub driver_threads_share: f64,
    /// Driver lag as a share of the mean latency, if it is also above `driver_lag_us`.
    pub driver_lag_share: f64,
    /// Driver lag per transaction that is always acceptable, in microseconds.
    pub driver_lag_us: f64,
    /// Share of the window that the busiest driver thread may wait for a CPU.
    pub driver_wait_share: f64,
    /// Error of a load host's clock, in microseconds: what may be missing from a second of the load, or in it too much.
    pub load_host_clock_us: f64,
    /// Time between the first start of a load host and the last, in microseconds.
    pub load_host_start_us: f64,
    /// Deviation from Little's law, as a share of the clients.
    pub littles_law_share: f64,
    /// Failed transactions, as a share of all.
    pub failed_share: f64,
    /// Failed transactions, as a share of all, beyond which the trial measures another load than the workload's.
    pub failed_invalid_share: f64,
    /// Transactions of a background workload that were due and had not begun at the load's end, as a share of all that were due.
    pub background_missed_share: f64,
    /// CPU steal, as a share of the machine's CPU time.
    pub steal_share: f64,
    /// CPU time of other processes, as a share of the machine's.
    pub foreign_cpu_share: f64,
    /// Waiting for a CPU that other processes had, as a share of latency; only beyond it is `foreign_cpu_share` a finding.
    pub foreign_wait_share: f64,
    /// Change of the CPUs' mean frequency in the window, as a share.
    pub frequency_share: f64,
    /// Share of the window in which tasks wait for memory (PSI).
    pub memory_pressure_share: f64,
    /// Memory that must be available throughout, as a share of all.
    pub memory_available_share: f64,
    /// Pages swapped in and out in the window.
    pub swap_pages: f64,
    /// Step of the wall clock against the monotonic clock, in microseconds.
    pub clock_step_us: f64,
    /// p-value below which a trend counts, if it also changes throughput by `trend_share`.
    pub trend_p: f64,
    /// Drift of throughput in the window, as a share of its median.
    pub trend_share: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            driver_busy_share: 0.9,
            driver_threads_share: 0.05,
            driver_lag_share: 0.1,
            driver_lag_us: 50.0,
            driver_wait_share: 0.5,
            load_host_clock_us: 10_000.0,
            load_host_start_us: 10_000.0,
            littles_law_share: 0.1,
            failed_share: 0.01,
            failed_invalid_share: 0.1,
            background_missed_share: 0.05,
            steal_share: 0.02,
            foreign_cpu_share: 0.05,
            foreign_wait_share: 0.05,
            frequency_share: 0.1,
            memory_pressure_share: 0.01,
            memory_available_share: 0.05,
            swap_pages: 0.0,
            clock_step_us: 100_000.0,
            trend_p: 0.01,
            trend_share: 0.05,
        }
    }
}

impl Thresholds {
    /// All thresholds by name.
    pub const fn all(&self) -> [(&'static str, f64); 21] {
        [
            ("driver_busy_share", self.driver_busy_share),
            ("driver_threads_share", self.driver_threads_share),
            ("driver_lag_share", self.driver_lag_share),
            ("driver_lag_us", self.driver_lag_us),
            ("driver_wait_share", self.driver_wait_share),
            ("load_host_clock_us", self.load_host_clock_us),
            ("load_host_start_us", self.load_host_start_us),
            ("littles_law_share", self.littles_law_share),
            ("failed_share", self.failed_share),
            ("failed_invalid_share", self.failed_invalid_share),
            ("background_missed_share", self.background_missed_share),
            ("steal_share", self.steal_share),
            ("foreign_cpu_share", self.foreign_cpu_share),
            ("foreign_wait_share", self.foreign_wait_share),
            ("frequency_share", self.frequency_share),
            ("memory_pressure_share", self.memory_pressure_share),
            ("memory_available_share", self.memory_available_share),
            ("swap_pages", self.swap_pages),
            ("clock_step_us", self.clock_step_us),
            ("trend_p", self.trend_p),
            ("trend_share", self.trend_share),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_thresholds_have_defaults_and_unknown_ones_are_rejected() {
        let thresholds: Thresholds = toml::from_str("steal_share = 0.1").unwrap();
        assert_eq!(thresholds, Thresholds { steal_share: 0.1, ..Thresholds::default() });
        assert!(toml::from_str::<Thresholds>("stealing = 0.1").is_err());
    }

    #[test]
    fn the_documentation_lists_every_threshold_with_its_default() {
        let guide = include_str!("../../../docs/validity.md");
        let toml::Value::Table(all) = toml::Value::try_from(Thresholds::default()).unwrap() else {
            unreachable!("a struct is a table")
        };
        for (name, value) in all {
            let value = value.as_float().unwrap();
            let figure = guide.split_once(&format!("**`{name}`** = ")).map(|(_, rest)| {
                rest.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default()
            });
            assert_eq!(figure, Some(value.to_string().as_str()), "{name}");
        }
    }
}
