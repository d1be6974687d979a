//! `--kernels-by-reboot`: the kernels of a campaign on the machine itself, one after the other.

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use machine::reboot::{Journal, Loader, execute};
use plaintext::table::Format;
use runner::reboots::{PlannedBoot, Preparation, RebootOutcome};
use store::Store;

use crate::campaign_run::{CampaignRun, closing_lines, exit, print_tables};
use crate::exit::{Exit, Usage};
use crate::interrupt;
use crate::output::{note, print};
use crate::run_and_print::run_and_print;

/// `--kernels-by-reboot`, for the commands that run campaigns.
#[derive(Debug, Args)]
pub(crate) struct RebootArgs {
    /// Boot the installed kernels that trials wait for, one after the other, each once, and continue after each boot
    /// without intervention
    #[arg(long)]
    kernels_by_reboot: bool,

    /// How kernels are booted [default: grub if it can boot an entry once, else kexec]
    #[arg(long, value_enum, value_name = "LOADER", requires = "kernels_by_reboot")]
    by: Option<LoaderName>,

    /// With --kernels-by-reboot: print each step without doing it
    #[arg(long, requires = "kernels_by_reboot")]
    pub(crate) dry_run: bool,

    /// With --kernels-by-reboot: do not ask for confirmation before the machine is changed
    #[arg(long, requires = "kernels_by_reboot")]
    yes: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LoaderName {
    Grub,
    Kexec,
}

impl From<LoaderName> for Loader {
    fn from(name: LoaderName) -> Self {
        match name {
            LoaderName::Grub => Self::Grub,
            LoaderName::Kexec => Self::Kexec,
        }
    }
}

impl RebootArgs {
    /// Whether kernels are booted.
    pub(crate) fn is_given(&self) -> bool {
        self.kernels_by_reboot
    }

    /// Begins a run: prepares the machine, runs the trials of the running kernel, and boots the first other one.
    /// `file` is the campaign file, `root` the directory of the store.
    ///
    /// # Errors
    /// The machine can't boot these kernels, the user declines, or as [`run_and_print`].
    pub(crate) fn begin(
        &self,
        run: CampaignRun<'_>,
        file: &Path,
        root: &Path,
        format: Format,
    ) -> anyhow::Result<Exit> {
        let by = self.by.map(Loader::from);
        let Some(preparation) =
            run.with_reboots(root, Arc::default(), |reboots| Ok(reboots.prepare(file, by)?))?
        else {
            note("no trial waits for another kernel: no reboot is needed\n");
            if self.dry_run {
                return Ok(Exit::Ok);
            }
            return run_and_print(run, &Store::open(root)?, format);
        };
        if self.dry_run {
            print(&preparation.steps()?)?;
            return Ok(Exit::Ok);
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Usage("error: only root may boot other kernels".to_owned()).into());
        }
        self.confirm(&preparation)?;
        let outcome =
            run.with_reboots(root, interrupt::flag()?, |reboots| Ok(reboots.begin(preparation)?))?;
        conclude(run, root, format, outcome)
    }

    /// Asks for confirmation on a terminal.
    fn confirm(&self, preparation: &Preparation) -> Result<(), Usage> {
        if self.yes {
            return Ok(());
        }
        let line = |PlannedBoot { boot, trials }: &PlannedBoot| format!("  {boot}: {trials} trials\n");
        let boots: String = preparation.boots.iter().map(line).collect();
        note(&format!("This machine will reboot repeatedly, by {}:\n{boots}", preparation.loader()));
        if !io::stdin().is_terminal() {
            let message = "error: confirmation requires a terminal: use --yes to skip it";
            return Err(Usage(message.to_owned()));
        }
        note("Each reboot ends everything else that runs on it. Continue? [y/N] ");
        let mut answer = String::new();
        let _ = io::stdin().lock().read_line(&mut answer);
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Usage("nothing was changed".to_owned())),
        }
    }
}

/// Continues a run after a boot.
///
/// # Errors
/// As [`RebootArgs::begin`].
pub(crate) fn continue_after_boot(
    run: CampaignRun<'_>,
    journal: Journal,
    root: &Path,
    format: Format,
) -> anyhow::Result<Exit> {
    let outcome =
        run.with_reboots(root, interrupt::flag()?, |reboots| Ok(reboots.continue_after_boot(journal)?))?;
    conclude(run, root, format, outcome)
}

/// Reports the outcome; at the end, prints the tables and boots the machine's own kernel.
fn conclude(
    run: CampaignRun<'_>,
    root: &Path,
    format: Format,
    outcome: RebootOutcome,
) -> anyhow::Result<Exit> {
    match outcome {
        RebootOutcome::Booting => Ok(Exit::Partial),
        RebootOutcome::Interrupted { is_restored } => {
            note(if is_restored {
                "interrupted: the machine has been restored\n"
            } else {
                "interrupted: the run continues after the next boot; `pgdyno kernel restore` prevents that\n"
            });
            Ok(Exit::Interrupted)
        }
        RebootOutcome::Finished { outcome, boot } => {
            print_tables(&Store::existing(root)?, run.run, format)?;
            note(&closing_lines(&outcome, root, false));
            if let Some(boot) = boot {
                note("all kernels are done: booting the machine's own\n");
                execute(&[boot])?;
            }
            Ok(exit(&outcome))
        }
    }
}
