//! pgdyno's targets, as ratios of its figures to pgbench's.

use model::workload::Transport;

use crate::cost::Setup;
use crate::servers::Kind;

/// A bound on a ratio.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

/// CPU time of the driver per transaction.
pub(crate) fn of_cpu(setup: &Setup) -> Option<Target> {
    let max = match (setup.kind, setup.transport, setup.clients) {
        (Kind::Null, Transport::Unix, 1) => 0.70,
        (Kind::Null, Transport::Unix, 16) => 0.68,
        (Kind::Null, Transport::Unix, 64) => 0.65,
        (Kind::Null, Transport::Unix, 256) => 0.62,
        (Kind::Null, Transport::Unix, 1000) => 0.52,
        (Kind::Null, Transport::Tcp, 16) => 0.85,
        (Kind::Null, Transport::Tcp, 256) => 0.75,
        (Kind::Real, Transport::Unix, 1 | 4 | 16) => 0.70,
        (Kind::Real, Transport::Unix, 64) => 0.58,
        (Kind::Real, Transport::Unix, 256 | 1000) => 0.50,
        _ => return None,
    };
    Some(Target::AtMost(max))
}

/// Transactions per second.
pub(crate) fn of_tps(setup: &Setup) -> Option<Target> {
    let min = match (setup.kind, setup.transport, setup.clients) {
        (Kind::Real, Transport::Unix, ..=64) => 1.05,
        (Kind::Real, Transport::Unix, 256) => 1.1,
        (Kind::Real, Transport::Unix, 1000) => 1.3,
        _ => return None,
    };
    Some(Target::AtLeast(min))
}

impl Target {
    pub(crate) fn is_met_by(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(max) => ratio <= max,
            Self::AtLeast(min) => ratio >= min,
        }
    }
}
