//! What pgbench counts, of one script or of all.

use driver::{Failures, Moments, ScriptRecord};

/// Transactions by what came of them. pgbench does not count the one that an aborted client was in, so that it is not
/// among the failures here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) latency: Moments,
    pub(super) lag: Moments,
    pub(super) failures: Failures,
    pub(super) skipped: u64,
    pub(super) late: u64,
    pub(super) retried: u64,
    pub(super) retries: u64,
}

impl Counts {
    pub(super) fn of_all(scripts: &[ScriptRecord]) -> Self {
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

    /// Succeeded ones.
    pub(super) fn done(&self) -> u64 {
        self.latency.count
    }

    pub(super) fn failed(&self) -> u64 {
        self.failures.serialization + self.failures.deadlock
    }

    /// Succeeded, failed and skipped ones.
    pub(super) fn all(&self) -> u64 {
        self.done() + self.failed() + self.skipped
    }
}
