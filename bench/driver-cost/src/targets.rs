//! pgdyno's targets, as ratios of its figures to those of another load driver.

use model::workload::Transport;

use crate::peer::Competitor::{self, Pgbench, Sysbench};
use crate::servers::{Kind, Setup};

/// A bound on a ratio.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

/// CPU time of the driver per transaction.
pub(crate) fn of_cpu(competitor: Competitor, setup: &Setup) -> Option<Target> {
    let max = match (competitor, setup.kind, setup.transport, setup.clients) {
        (Pgbench, Kind::Null, Transport::Unix, 1) => 0.70,
        (Pgbench, Kind::Null, Transport::Unix, 16) => 0.68,
        (Pgbench, Kind::Null, Transport::Unix, 64) => 0.65,
        (Pgbench, Kind::Null, Transport::Unix, 256) => 0.62,
        (Pgbench, Kind::Null, Transport::Unix, 1000) => 0.52,
        (Pgbench, Kind::Null, Transport::Tcp, 16) => 0.85,
        (Pgbench, Kind::Null, Transport::Tcp, 256) => 0.75,
        (Pgbench, Kind::Real, Transport::Unix, 1 | 4 | 16) => 0.70,
        (Pgbench, Kind::Real, Transport::Unix, 64) => 0.58,
        (Pgbench, Kind::Real, Transport::Unix, 256 | 1000) => 0.50,
        (Sysbench, Kind::Real, Transport::Unix, 4) => 0.65,
        (Sysbench, Kind::Real, Transport::Unix, 16) => 0.45,
        (Sysbench, Kind::Real, Transport::Unix, 64) => 0.30,
        _ => return None,
    };
    Some(Target::AtMost(max))
}

/// Transactions per second.
pub(crate) fn of_tps(competitor: Competitor, setup: &Setup) -> Option<Target> {
    let min = match (competitor, setup.kind, setup.transport, setup.clients) {
        (Pgbench, Kind::Real, Transport::Unix, ..=64) => 1.05,
        (Pgbench, Kind::Real, Transport::Unix, 256) => 1.1,
        (Pgbench, Kind::Real, Transport::Unix, 1000) => 1.3,
        (Sysbench, Kind::Real, Transport::Unix, 4 | 64) => 1.0,
        (Sysbench, Kind::Real, Transport::Unix, 16) => 1.15,
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
