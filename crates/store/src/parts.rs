//! Parts of bundles, read only if needed.

use crate::format::{event, setting};
use crate::{hlog, metrics, phases, played, series, spans, stacks, waits};

/// A part of a bundle.
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
    /// Activity of the server's sessions.
    Waits,
    /// Events of the server's log.
    Events,
    /// The server's settings.
    Settings,
    /// What became of the statements of a trace.
    Played,
}

impl Part {
    /// Whether a file belongs to the part, of the trial or of one of its phases.
    pub(crate) fn has(self, file: &str) -> bool {
        let file = phases::file_of_phase(file).unwrap_or(file);
        match self {
            Self::Series => file == series::FILE,
            Self::Latency => file == hlog::FILE,
            Self::Spans => file == spans::FILE,
            Self::Metrics => file == metrics::FILE,
            Self::Waits => file == waits::FILE,
            Self::Events => file == event::FILE,
            Self::Settings => file == setting::FILE,
            Self::Played => file == played::FILE,
            Self::Stacks => file.starts_with(stacks::STACKS) || file.starts_with(stacks::OFF_CPU),
        }
    }
}
