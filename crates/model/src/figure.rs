//! The figure of merit of a cell, and its value in a trial.

use crate::cell::RecordedCell;
use crate::machine::Acceleration;
use crate::merit::Merit;
use crate::record::Summary;

impl Merit {
    /// The merit of a cell. Where instructions are counted, nothing else is comparable; at a rate, throughput is the
    /// schedule's; otherwise it is the workload's, which is the length of a transaction if each client runs a number
    /// of them: how many end per second then follows from that number.
    pub fn of(cell: &RecordedCell) -> Self {
        let custom = cell.workload.known().and_then(|workload| workload.custom());
        if cell.acceleration == Acceleration::Icount {
            Self::Instructions
        } else if cell.is_open_loop() {
            Self::Latency
        } else if let Some(merit) = custom.and_then(|custom| custom.figure.0) {
            merit
        } else if custom.is_some_and(|custom| custom.iterations.is_some()) {
            Self::Length
        } else {
            Self::Throughput
        }
    }

    /// Its value in a trial's summary, latencies in microseconds; none if unknown. Of blocks, which a summary does not
    /// have, the work units: each visits as many. Of new orders, all transactions: they are a share of them.
    pub fn value(self, summary: &Summary) -> Option<f64> {
        match self {
            Self::Throughput | Self::Blocks | Self::NewOrders => Some(summary.tps),
            Self::Latency => summary.latency.as_ref()?.p99_us,
            Self::Length => summary.latency.as_ref()?.mean_us,
            Self::Instructions => summary.instructions_per_transaction,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cell::Level;
    use crate::merit::NamedFigure;
    use crate::units::Rate;
    use crate::workload::{Custom, Workload};

    fn custom(change: impl FnOnce(&mut Custom)) -> RecordedCell {
        let mut custom = Custom::new("w", Vec::new());
        change(&mut custom);
        let workload = Level::Known(Workload::Custom(Arc::new(custom)));
        RecordedCell { workload, ..RecordedCell::default() }
    }

    #[test]
    fn a_cell_is_judged_by_what_its_load_can_move() {
        assert_eq!(Merit::of(&RecordedCell::default()), Merit::Throughput);
        assert_eq!(Merit::of(&custom(|custom| custom.iterations = Some(1))), Merit::Length);
        let blocks = custom(|custom| custom.figure = NamedFigure(Some(Merit::Blocks)));
        assert_eq!(Merit::of(&blocks), Merit::Blocks);
        let unlimited = RecordedCell { rate: Level::Known(Rate::MAX), ..blocks };
        assert_eq!(Merit::of(&unlimited), Merit::Blocks);
        let rate = Level::Known(Rate::per_second(100.0).unwrap());
        let at_a_rate = RecordedCell { rate, ..unlimited };
        assert_eq!(Merit::of(&at_a_rate), Merit::Latency);
        let acceleration = Level::Known(Acceleration::Icount);
        assert_eq!(Merit::of(&RecordedCell { acceleration, ..at_a_rate }), Merit::Instructions);
    }

    #[test]
    fn the_named_figure_does_not_make_another_workload() {
        let named = custom(|custom| custom.figure = NamedFigure(Some(Merit::Blocks)));
        let hash = |cell: &RecordedCell| cell.workload.known().and_then(Workload::content_hash);
        assert_eq!(named, custom(|_| {}));
        assert_eq!(hash(&named), hash(&custom(|_| {})));
    }
}
