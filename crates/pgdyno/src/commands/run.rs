//! `pgdyno run`: runs a campaign and prints its tables.

use clap::Args;
use store::Store;

use crate::acceleration;
use crate::campaign_file::CampaignArg;
use crate::campaign_run::{CampaignRun, has_servers, new_run};
use crate::commands::plan::{headline, power_of_plan};
use crate::exit::Exit;
use crate::kernels_by_reboot::{KernelsByReboot, RebootArgs};
use crate::output::{FormatArg, note};
use crate::store_arg::StoreArg;

/// Run a campaign: every trial becomes a bundle in the store, then the tables are printed
///
/// Servers and data sets are fetched and built when they are first needed. Each trial is stored as soon as it has
/// ended; Ctrl-C ends the running one and keeps all others, and `pgdyno resume` goes on from there, as it does after a
/// crash. Trials that name another kernel or host than this one wait for a `resume` there; with --kernels-by-reboot, the
/// machine is booted into each kernel by itself. Tables go to standard output, progress to standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno run campaigns/quick.toml\n  \
                        pgdyno run campaigns/versions.toml --set scale=100 --set duration=60s\n  \
                        pgdyno run kernels.toml --kernels-by-reboot --dry-run\n  \
                        pgdyno run upgrade.toml --store /var/lib/pgdyno && pgdyno report --store /var/lib/pgdyno\n\n\
                        Exit codes: 0 ok, 1 error, 2 usage or campaign wrong (nothing was measured), 4 no trial is \
                        usable,\n5 some trials are invalid or wait for another kernel or host, 130 interrupted.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    campaign: CampaignArg,

    /// Measure nothing where cells that are to be compared differ in more than the factor they are compared by
    #[arg(long)]
    strict: bool,

    /// A word to find the trials by, beside the campaign's own tags; may be given several times
    #[arg(long, value_name = "NAME")]
    tag: Vec<String>,

    #[command(flatten)]
    reboots: RebootArgs,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl RunArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let file = match self.reboots.is_asked() {
            true => self.campaign.read_for_the_machine()?,
            false => self.campaign.read(None)?,
        };
        has_servers(&file)?;
        let file = acceleration::decide(file)?;
        let root = self.store.root_beside(self.campaign.directory());
        let run = new_run(&file, &self.tag);
        note(&headline(&file.plan));
        let power = power_of_plan(&file.plan, &root).and_then(|power| power.warning());
        for warning in file.plan.warnings().into_iter().chain(power) {
            note(&format!("{warning}\n"));
        }
        if self.reboots.is_asked() {
            let format = self.format.get();
            return KernelsByReboot { plan: &file.plan, run: &run, root: &root, strict: self.strict, format }
                .begin(&self.reboots, &self.campaign.campaign);
        }
        let store = Store::open(&root)?;
        CampaignRun { plan: &file.plan, run: &run, trials: &[], store: &store, strict: self.strict }
            .execute(self.format.get())
    }
}
