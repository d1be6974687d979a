//! Checks of campaigns whose trials are paired.

use super::CheckedCampaign;
use crate::cell::Cell;
use crate::factor::Factor;
use crate::run::Order;
use crate::server::{ServerSpec, Source};
use crate::value::{Spanned, SpecError};

impl CheckedCampaign<'_> {
    /// Rejects cells that can't be measured in pairs, and cells without another to be paired with.
    pub(crate) fn check_pairs(
        &self,
        cells: &[Cell],
        servers: &[ServerSpec],
        comparisons: &[(usize, usize)],
    ) -> Result<(), SpecError> {
        let order = self.campaign.run.order.as_ref().map(Spanned::span);
        let rejected = |message: String, help: &str| {
            Err(SpecError { message, at: order.clone(), help: Some(help.to_owned()) })
        };
        let is_external = |cell: &Cell| {
            let mut of_cell = servers.iter().filter(|server| server.name == cell.server);
            of_cell.any(|server| matches!(server.source, Source::Dsn(_)))
        };
        let is_bisection = super::run::order(&self.campaign.run)? == Order::Bisect;
        if let (true, Some(more)) = (is_bisection, Factor::varied(cells).get(1)) {
            return rejected(
                format!(
                    "a bisection goes through the levels of one factor, but `{}` has several, too",
                    more.name()
                ),
                "expected one level of each other factor",
            );
        }
        for (place, cell) in cells.iter().enumerate() {
            let others = "expected `randomized-blocks` for these cells, in a campaign of their own";
            if cell.acceleration.is_virtual() || cell.kernel.is_some() {
                return rejected(
                    format!(
                        "the servers of a pair run on the same kernel, that of this machine: {cell} does not"
                    ),
                    others,
                );
            }
            if is_external(cell) {
                let message = format!(
                    "each session of paired trials starts its servers, but pgdyno does not own the server \"{}\"",
                    cell.server
                );
                return rejected(message, others);
            }
            if cell.workload.iterations().is_some() {
                let message = format!(
                    "the load of paired trials alternates until the session ends, but clients of the workload \"{}\" end after \
                     their iterations",
                    cell.workload.name()
                );
                return rejected(message, others);
            }
            if comparisons.iter().all(|(a, b)| ![a, b].contains(&&place)) {
                return rejected(
                    format!("{cell} has no other cell to be paired with"),
                    "expected several levels of the compared factor, and each other level with the first one: `compare` names the \
                     factor",
                );
            }
        }
        Ok(())
    }
}
