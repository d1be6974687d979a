//! Transactions as pgbench counts them, for one script or for all.

use driver::{Failures, Moments, ScriptRecord};

/// Transactions by outcome. pgbench does not count the transaction of a client that is aborted, so it is not among the
/// failures here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) latency: Moments,
    pub(crate) lag: Moments,
    pub(crate) failures: Failures,
    pub(crate) skipped: u64,
    pub(crate) late: u64,
    pub(crate) retried: u64,
    pub(crate) retries: u64,
}

impl Counts {
    pub(crate) fn from_scripts(scripts: &[ScriptRecord]) -> Self {
        let mut counts = Self::default();
        for script in scripts {
            counts.latency.merge(&script.moments);
            counts.lag.merge(&script.start_lag);
            counts.failures.serialization += script.failures.serialization;
            counts.failures.deadlock += script.failures.deadlock;
            counts.skipped += script.skipped;
            counts.late += script.late;
            counts.retried += script.retried;
            counts.retries += script.retries;
        }
        counts
    }

    /// Successful transactions.
    pub(crate) fn done(&self) -> u64 {
        self.latency.count
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failures.serialization + self.failures.deadlock
    }

    /// Successful, failed and skipped transactions.
    pub(crate) fn all(&self) -> u64 {
        self.done() + self.failed() + self.skipped
    }
}
