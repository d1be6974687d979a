//! Checks of campaigns whose trials are sides of sessions: paired trials and bisections.

use std::ops::Range;

use super::CheckedCampaign;
use crate::cell::Cell;
use crate::factor::Factor;
use crate::machine::Acceleration;
use crate::paired::PairedFigure;
use crate::run::Order;
use crate::server::{ServerSpec, Source};
use crate::value::{Spanned, SpecError, word};

/// What other orders there are for cells without sessions.
const OTHERS: &str = "expected `randomized-blocks` for these cells, in a campaign of their own";

impl CheckedCampaign<'_> {
    /// Rejects cells that can't be measured in sessions, and cells without another to be compared with.
    pub(crate) fn check_pairs(
        &self,
        cells: &[Cell],
        servers: &[ServerSpec],
        comparisons: &[(usize, usize)],
    ) -> Result<(), SpecError> {
        let order = self.campaign.run.order.as_ref().map(Spanned::span);
        let rejected = |message: String, help: &str| Err(error(message, order.clone(), help));
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
            if is_bisection && cell.kernel.is_some() {
                self.check_kernel_of_bisection(cell, order.clone())?;
            } else if cell.kernel.is_some() {
                return rejected(
                    format!(
                        "the servers of a pair run on the same kernel, that of this machine: {cell} does not"
                    ),
                    OTHERS,
                );
            }
            if is_external(cell) {
                let message = format!(
                    "each session of paired trials starts its servers, but pgdyno does not own the server \"{}\"",
                    cell.server
                );
                return rejected(message, OTHERS);
            }
            if cell.workload.has_phases() {
                let message = format!(
                    "the load of paired trials alternates between two servers, but the workload \"{}\" has phases, which run one \
                     after the other",
                    cell.workload.name()
                );
                return rejected(message, OTHERS);
            }
            if cell.workload.trace().is_some() {
                let message = format!(
                    "the load of paired trials alternates between two servers, but the trace of the workload \"{}\" is played \
                     at its own times",
                    cell.workload.name()
                );
                return rejected(message, OTHERS);
            }
            if cell.workload.iterations().is_some() && !cell.acceleration.is_virtual() {
                let message = format!(
                    "the load of paired trials alternates until the session ends, but clients of the workload \"{}\" end after \
                     their iterations",
                    cell.workload.name()
                );
                return rejected(message, OTHERS);
            }
            if comparisons.iter().all(|(a, b)| ![a, b].contains(&&place)) {
                return rejected(
                    format!("{cell} has no other cell to be paired with"),
                    "expected several levels of the compared factor, and each other level with the first one: `compare` names the \
                     factor",
                );
            }
        }
        cells.first().map_or(Ok(()), |cell| self.check_figure(cell))
    }

    /// Rejects a kernel that no session of a bisection boots, or whose figures have no verdict.
    fn check_kernel_of_bisection(&self, cell: &Cell, order: Option<Range<usize>>) -> Result<(), SpecError> {
        let message = match cell.acceleration {
            Acceleration::Kvm | Acceleration::Icount => return Ok(()),
            Acceleration::Tcg => {
                "kernels that are emulated in real time (`tcg`) can't be bisected: their figures depend on this machine, and \
                 are never a verdict"
            }
            Acceleration::None => {
                "each session of a bisection boots both kernels, but with the acceleration `none` they run on the machine \
                 itself, one reboot after the other"
            }
        };
        let at = self.place(Factor::Acceleration, cell)?.or(order);
        Err(error(message.to_owned(), at, "expected the acceleration `kvm` or `icount`"))
    }

    /// Rejects a figure of a bisection that its sessions do not measure.
    fn check_figure(&self, cell: &Cell) -> Result<(), SpecError> {
        let Some(given) = &self.campaign.run.figure else { return Ok(()) };
        let figure: PairedFigure = word(given, "figure")?;
        let measured: &[PairedFigure] = match cell.acceleration {
            Acceleration::Icount => &[PairedFigure::Instructions],
            Acceleration::Kvm | Acceleration::Tcg => &[PairedFigure::Throughput, PairedFigure::Latency],
            Acceleration::None => &[
                PairedFigure::Throughput,
                PairedFigure::Latency,
                PairedFigure::ServerCpu,
                PairedFigure::ServerInstructions,
            ],
        };
        if measured.contains(&figure) {
            return Ok(());
        }
        let place = match cell.acceleration {
            Acceleration::None => "of servers on the machine itself".to_owned(),
            virtual_machine => {
                format!("in virtual machines with the acceleration `{}`", virtual_machine.as_str())
            }
        };
        let expected: Vec<String> =
            measured.iter().map(|figure| format!("\"{}\"", figure.as_str())).collect();
        Err(SpecError::at(
            given,
            format!("sessions {place} do not measure the figure `{}`", figure.as_str()),
            format!("expected {}", expected.join(", ")),
        ))
    }
}

fn error(message: String, at: Option<Range<usize>>, help: &str) -> SpecError {
    SpecError { message, at, help: Some(help.to_owned()) }
}
