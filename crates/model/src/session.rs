//! The figures of a session: those of its pairs of slices, or of its two trials.
//!
//! Virtual machines do not run at the same time. There, a session is two trials, one right after the other in an order drawn for
//! each session, and their figures are its only pair.

use crate::paired::{PairedFigure, PairedTrial};
use crate::record::{Status, Summary, Trial};

/// The figures that a usable trial contributes to its session.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionSide {
    /// Those of its slices, in turns with the other side's.
    Slices(PairedTrial),
    /// Those of all of it, before or after the other side's.
    Trial(Box<Summary>),
}

impl SessionSide {
    /// The figures of a trial; none if it is invalid, or has no results.
    pub fn from_trial(trial: &Trial) -> Option<Self> {
        let summary = trial.summary.as_ref().filter(|_| trial.validity.status != Status::Invalid)?;
        Some(match &trial.paired {
            Some(slices) => Self::Slices(slices.clone()),
            None => Self::Trial(Box::new(summary.clone())),
        })
    }
}

impl PairedFigure {
    /// Its values in the pairs of a session, (a, b), whose sides have so many clients; pairs in which one is unknown are left out.
    pub fn pairs_of_session(self, sides: [&SessionSide; 2], clients: [u32; 2]) -> Vec<(f64, f64)> {
        match sides {
            [SessionSide::Slices(a), SessionSide::Slices(b)] => self.pairs([a, b], clients),
            [SessionSide::Trial(a), SessionSide::Trial(b)] => {
                self.of_trial(a).zip(self.of_trial(b)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Its value in a whole trial; none if unknown, or if only slices have it.
    fn of_trial(self, summary: &Summary) -> Option<f64> {
        match self {
            Self::Throughput => Some(summary.tps),
            Self::Latency => summary.latency.as_ref()?.mean_us,
            Self::Instructions => summary.instructions_per_transaction,
            Self::ServerCpu | Self::ServerInstructions => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Latency;

    #[test]
    fn trials_of_a_session_are_its_pair() {
        let summary = |tps: f64| {
            let latency = Some(Latency { mean_us: Some(1e6 / tps), ..Latency::default() });
            let instructions_per_transaction = Some(1e9 / tps);
            let summary = Summary { tps, latency, instructions_per_transaction, ..Summary::default() };
            SessionSide::Trial(Box::new(summary))
        };
        let (a, b) = (summary(500.0), summary(400.0));
        let pairs = |figure: PairedFigure| figure.pairs_of_session([&a, &b], [1, 1]);
        assert_eq!(pairs(PairedFigure::Throughput), [(500.0, 400.0)]);
        assert_eq!(pairs(PairedFigure::Latency), [(2000.0, 2500.0)]);
        assert_eq!(pairs(PairedFigure::Instructions), [(2e6, 2.5e6)]);
        assert!(pairs(PairedFigure::ServerCpu).is_empty(), "only slices have it");
    }
}
