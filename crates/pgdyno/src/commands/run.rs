//! `pgdyno run`: runs a campaign and prints its tables.

use clap::Args;
use host::Cache;
use report::plan::headline;
use store::Store;

use crate::campaign_arg::CampaignArg;
use crate::campaign_run::{CampaignRun, program};
use crate::commands::plan::{expected_time, power_of_plan};
use crate::exit::Exit;
use crate::fleet_args::OnFleetArgs;
use crate::output::{FormatArg, note};
use crate::progress::PreparationProgress;
use crate::reboot_args::RebootArgs;
use crate::run_and_print::run_and_print;
use crate::store_arg::StoreArg;

/// Run a campaign: store each trial as a bundle, then print the tables
///
/// Servers and data sets are fetched and built when they are first needed. Each trial is stored as soon as it has
/// ended; Ctrl-C ends the running one and keeps all others, and `pgdyno resume` continues from there, as it does after a
/// crash. Trials of another kernel or host wait for a `resume` there; with --kernels-by-reboot, the machine boots each
/// kernel without intervention. With --fleet, the machines of a fleet run the trials: Ctrl-C then leaves them at work, and
/// `pgdyno resume --fleet` collects what they have measured. Tables go to standard output, progress to standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno run campaigns/quick.toml\n  \
                        pgdyno run campaigns/versions.toml --set scale=100 --set duration=60s\n  \
                        pgdyno run kernels.toml --kernels-by-reboot --dry-run\n  \
                        pgdyno run sweep.toml --fleet --nats nats://nats.example\n  \
                        pgdyno run upgrade.toml --store /var/lib/pgdyno && pgdyno report --store /var/lib/pgdyno\n\n\
                        Exit codes: 0 ok, 1 error, 2 usage or campaign wrong (nothing was measured), 4 no trial is \
                        usable,\n5 some trials are invalid or wait for another kernel or host, 130 interrupted.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    campaign: CampaignArg,

    /// Measure nothing if compared cells differ in more than the factor they are compared by
    #[arg(long)]
    strict: bool,

    /// Do not wait for other pgdynos that measure on this host: each makes the other's trials suspect
    #[arg(long)]
    allow_concurrent: bool,

    /// Tag to find the trials by, in addition to the campaign's own; may be repeated
    #[arg(long, value_name = "NAME")]
    tag: Vec<String>,

    #[command(flatten)]
    reboots: RebootArgs,

    #[command(flatten)]
    fleet: OnFleetArgs,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl RunArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let boots_kernels = self.reboots.is_given();
        let file = if boots_kernels { self.campaign.read_for_reboots()? } else { self.campaign.read()? };
        let fleet = self.fleet.connect()?;
        let cache = Cache::open()?;
        file.check_servers(&cache)?;
        let bar = PreparationProgress::new();
        let file = file.choose_acceleration(&cache, &program()?, &bar);
        bar.clear();
        let file = file?;
        let root = self.store.root_next_to(self.campaign.directory());
        note(&headline(&file.plan));
        let power = power_of_plan(&file.plan, &root).and_then(|power| power.warning());
        let expected = expected_time(&file.plan, &root);
        for warning in file.plan.warnings().into_iter().chain(power).chain(expected) {
            note(&format!("{warning}\n"));
        }
        let run = file.new_run(&self.tag);
        let (strict, allow_concurrent) = (self.strict, self.allow_concurrent);
        let run = CampaignRun {
            file: &file,
            run: &run,
            trials: &[],
            fleet: fleet.as_ref(),
            strict,
            allow_concurrent,
        };
        if boots_kernels {
            return self.reboots.begin(run, &self.campaign.path, &root, self.format.get());
        }
        run_and_print(run, &Store::open(&root)?, self.format.get())
    }
}
