//! Large parts of bundles, read only if needed.

use crate::{hlog, metrics, series, spans, stacks};

/// A large part of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Throughput per interval, without histograms.
    Series,
    /// Histograms of latency of [`Part::Series`].
    Latency,
    /// Start and end of each transaction.
    Spans,
    /// Readings of the collectors.
    Metrics,
    /// Profiles.
    Stacks,
}

impl Part {
    pub(crate) fn has(self, file: &str) -> bool {
        match self {
            Self::Series => file == series::FILE,
            Self::Latency => file == hlog::FILE,
            Self::Spans => file == spans::FILE,
            Self::Metrics => file == metrics::FILE,
            Self::Stacks => file.starts_with(stacks::STACKS) || file.starts_with(stacks::OFF_CPU),
        }
    }
}
