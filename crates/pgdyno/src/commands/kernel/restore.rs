//! `pgdyno kernel restore`: restores a machine whose kernels a campaign boots.

use clap::Args;
use runner::reboots::Restored;

use crate::exit::Exit;
use crate::output::note;

/// Restore the machine to its state before `pgdyno run --kernels-by-reboot`
///
/// Removes the systemd unit that continues after boots and the boot loader's entry, and stops booting kernels. Trials stay,
/// and `pgdyno resume --kernels-by-reboot` continues the run. Without anything to restore, nothing is done.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {}

impl RestoreArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let Some(Restored { campaign, store, next_kernel }) = runner::reboots::restore()? else {
            note("no campaign boots kernels on this machine: there is nothing to restore\n");
            return Ok(Exit::Ok);
        };
        note(&format!(
            "restored the machine to its state before the campaign {campaign}; its trials are in {}\n",
            store.display()
        ));
        if let Some(release) = next_kernel {
            note(&format!("the next boot starts the machine's own kernel, {release}\n"));
        }
        Ok(Exit::Ok)
    }
}
