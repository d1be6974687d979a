//! What one thread counts in one interval.

use hdrhistogram::Histogram;
use model::message::Phase;

use crate::error::LoadError;

/// The largest latency that is told apart, in nanoseconds: one hour. Longer ones count as this.
const MAX_LATENCY_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// The counts of one thread in one interval; added up, those of all threads.
pub(crate) struct Record {
    /// Number of the interval in the schedule.
    pub(crate) number: u64,
    pub(crate) phase: Phase,
    /// Start and end as they were, after the load's start.
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// By script, in the load's order.
    pub(crate) scripts: Vec<ScriptRecord>,
    pub(crate) lag: Lag,
    /// Time spent waiting for sockets.
    pub(crate) waited_ns: u64,
    /// Share of the time not spent waiting; of several threads, the largest.
    pub(crate) busy: f64,
}

/// The transactions of one script.
pub(crate) struct ScriptRecord {
    /// One entry a succeeded transaction, in nanoseconds.
    pub(crate) latency: Histogram<u64>,
    pub(crate) failed: u64,
}

/// Time from a wake-up to the handling of each response that it announced.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lag {
    pub(crate) responses: u64,
    pub(crate) sum_ns: u64,
    pub(crate) max_ns: u64,
}

/// An empty histogram of latencies.
pub(crate) fn latencies() -> Result<Histogram<u64>, LoadError> {
    Histogram::new_with_bounds(1, MAX_LATENCY_NS, DIGITS)
        .map_err(|error| LoadError::Internal(format!("cannot make a histogram: {error}")))
}

impl Record {
    pub(crate) fn new(scripts: usize) -> Result<Self, LoadError> {
        let script = |_| Ok(ScriptRecord { latency: latencies()?, failed: 0 });
        Ok(Self {
            number: 0,
            phase: Phase::Warmup,
            start_ns: 0,
            end_ns: 0,
            scripts: (0..scripts).map(script).collect::<Result<_, LoadError>>()?,
            lag: Lag::default(),
            waited_ns: 0,
            busy: 0.0,
        })
    }

    pub(crate) fn clear(&mut self) {
        for script in &mut self.scripts {
            script.latency.reset();
            script.failed = 0;
        }
        self.lag = Lag::default();
        self.waited_ns = 0;
        self.busy = 0.0;
    }

    /// Adds another thread's counts of the same interval.
    pub(crate) fn add(&mut self, other: &Self) -> Result<(), LoadError> {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        for (script, others) in self.scripts.iter_mut().zip(&other.scripts) {
            script.add(others)?;
        }
        self.lag.responses += other.lag.responses;
        self.lag.sum_ns += other.lag.sum_ns;
        self.lag.max_ns = self.lag.max_ns.max(other.lag.max_ns);
        self.busy = self.busy.max(other.busy);
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start_ns == self.end_ns
            && self.scripts.iter().all(|script| script.latency.is_empty() && script.failed == 0)
    }
}

impl ScriptRecord {
    fn add(&mut self, other: &Self) -> Result<(), LoadError> {
        self.failed += other.failed;
        self.latency
            .add(&other.latency)
            .map_err(|error| LoadError::Internal(format!("cannot add histograms: {error}")))
    }
}

impl Lag {
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        self.responses += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }
}
