//! Boots that cells wait for.

use machine::reboot::{Boot, Machine, Sysctl};
use model::cell::Cell;
use model::plan::Plan;

use super::RebootError;
use crate::host_context::{HostContext, is_release};
use crate::without_kernel::OpenTrial;

/// The cells with open trials that wait for another kernel on this host, in the order of the campaign.
pub(super) fn waiting<'a>(plan: &'a Plan, open: &[OpenTrial<'a>]) -> impl Iterator<Item = &'a Cell> {
    let host = HostContext::detect();
    let waits = move |cell: &Cell| !host.runs(cell) && host.is_host(cell);
    let open: Vec<&Cell> = open.iter().map(|trial| trial.cell).collect();
    plan.cells.iter().filter(move |cell| waits(cell) && open.contains(cell))
}

/// The boot that a cell waits for: the newest installed kernel of its label.
pub(super) fn boot_of(cell: &Cell, machine: &Machine) -> Result<Boot, RebootError> {
    let label = cell.kernel.as_deref().unwrap_or_default();
    let installed = machine.installed()?;
    let Some(newest) = installed.iter().rev().find(|kernel| is_release(&kernel.release, label)) else {
        let installed = installed.into_iter().map(|kernel| kernel.release).collect();
        return Err(RebootError::NoKernel { label: label.to_owned(), installed });
    };
    let sysctl = Sysctl { name: cell.sysctl.name.clone(), values: cell.sysctl.values.clone() };
    Ok(Boot { release: newest.release.clone(), args: cell.kernel_args.clone(), sysctl })
}

/// Whether a cell's trials run under this boot.
pub(super) fn is_under(cell: &Cell, boot: &Boot) -> bool {
    !cell.acceleration.is_virtual()
        && cell.kernel.as_deref().is_some_and(|label| is_release(&boot.release, label))
        && cell.kernel_args == boot.args
        && cell.sysctl.name == boot.sysctl.name
}
