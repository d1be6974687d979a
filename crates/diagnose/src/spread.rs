//! How much the runs of a figure of merit may spread.

use model::merit::Merit;
use stats::Spread;

/// The spreads at which the runs of a cell with this figure are noisy and wide.
pub const fn spread(merit: Merit) -> Spread {
    match merit {
        Merit::Latency => Spread::P99,
        Merit::Throughput | Merit::Length | Merit::Blocks | Merit::NewOrders | Merit::Instructions => {
            Spread::MEAN
        }
    }
}
