//! `pgdyno resume`: continues an unfinished campaign.

use std::path::{Path, PathBuf};

use clap::Args;
use host::{Cache, NoProgress};
use model::changes::Changes;
use report::bundles::left_out_lines;
use runner::campaign_file::{CampaignFile, directory, overrides};
use runner::reboots::journaled_run;
use runner::resume::{Request, ResumeError, Resumption, resume, summary};
use store::Store;

use crate::campaign_arg;
use crate::campaign_run::CampaignRun;
use crate::completion;
use crate::exit::Exit;
use crate::fleet_args::{OnFleet, OnFleetArgs};
use crate::output::{FormatArg, note};
use crate::progress::PreparationProgress;
use crate::reboot_args::{RebootArgs, continue_after_boot};
use crate::run_and_print::run_and_print;
use crate::store_arg::StoreArg;

/// Continue a campaign where it stopped: after Ctrl-C, a crash, a reboot, or under another kernel
///
/// Runs the missing trials in their planned order, and then again those that have only invalid attempts, with as many
/// attempts as `run`. Usable trials never run twice. The campaign
/// is the one in the store; if FILE is given and differs from it, the differences are shown, and --edited continues
/// with FILE.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pgdyno resume campaigns/quick.toml\n  pgdyno resume --store /var/lib/pgdyno\n  \
                        pgdyno resume upgrade.toml --edited\n  \
                        pgdyno resume --set repeats=10        more repeats of the newest run\n  \
                        pgdyno resume --run 01KAK3 --set clients=8 --set repeats=10\n\n\
                        Exit codes: those of `pgdyno run`; 2 also if the campaign was edited."
)]
pub(crate) struct ResumeArgs {
    /// The campaign file; its newest run is resumed [default: the newest run in the store]
    #[arg(value_name = "FILE", add = completion::campaign_files())]
    campaign: Option<PathBuf>,

    /// Override a value of FILE, as in the `pgdyno run` that began the run; without FILE, continue with the stored campaign
    /// changed like this, such as more repeats, or fewer cells
    #[arg(long, value_name = "NAME=VALUE", add = completion::overrides())]
    set: Vec<String>,

    /// Resume this run: its id or the beginning of it
    #[arg(long, value_name = "ID", add = completion::runs())]
    run: Option<String>,

    /// Continue with FILE as it is now: run new cells, skip removed ones
    #[arg(long, requires = "campaign")]
    edited: bool,

    /// Measure nothing if compared cells differ in more than the factor they are compared by
    #[arg(long)]
    strict: bool,

    /// Do not wait for other pgdynos that measure on this host: each makes the other's trials suspect
    #[arg(long)]
    allow_concurrent: bool,

    #[command(flatten)]
    reboots: RebootArgs,

    #[command(flatten)]
    fleet: OnFleetArgs,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl ResumeArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let root = self.store.root_next_to(self.campaign.as_deref().map_or(Path::new(""), directory));
        let store = Store::existing(&root)?;
        let format = self.format.get();
        if self.reboots.is_given()
            && !self.reboots.dry_run
            && let Some(journaled) = journaled_run(&root, self.run.as_deref())?
        {
            let file = journaled.campaign_file(&store.trials()?)?;
            let machine::reboot::Campaign { strict, allow_concurrent, insecure_mirror, .. } =
                journaled.journal.campaign;
            if insecure_mirror {
                server::allow_insecure_mirror();
            }
            let run = CampaignRun {
                file: &file,
                run: &journaled.run,
                trials: &[],
                fleet: None,
                strict,
                allow_concurrent,
            };
            return continue_after_boot(run, journaled.journal, &root, format);
        }
        // A trial that can't be read is missing, and runs again.
        note(&left_out_lines(&store.list()?.rejected));
        let text = self.text()?;
        let progress = PreparationProgress::new();
        let resumption = resume(
            &store,
            Request {
                file: self.campaign.as_deref().zip(text.as_deref()),
                run: self.run.as_deref(),
                accepts_edits: self.edited,
                overrides: if self.campaign.is_none() { &self.set } else { &[] },
                progress: &progress,
            },
        );
        progress.clear();
        let fleet = self.fleet.connect()?;
        let resumption = match (resumption, &fleet) {
            // No trial of it has been collected yet.
            (Err(ResumeError::NoRun { .. }), Some(fleet)) => self.run_of_fleet(fleet, &root, text)?,
            (resumption, _) => resumption?,
        };
        let Resumption { file, path, run, trials, changes } = &resumption;
        if !changes.is_empty() {
            note(&summary(changes));
        }
        file.check_servers(&Cache::open()?)?;
        note(&format!("{}: continuing run {} of {} trials\n", run.campaign, run.id, file.plan.trials.len()));
        let (strict, allow_concurrent) = (self.strict, self.allow_concurrent);
        let run = CampaignRun { file, run, trials, fleet: fleet.as_ref(), strict, allow_concurrent };
        if self.reboots.is_given() {
            return self.reboots.begin(run, path, &root, format);
        }
        run_and_print(run, &store, format)
    }

    /// A run of the fleet, of which nothing is in the store.
    fn run_of_fleet(&self, fleet: &OnFleet, root: &Path, text: Option<String>) -> anyhow::Result<Resumption> {
        let campaign = match (&self.campaign, text) {
            (Some(path), Some(text)) => Some(CampaignFile::parse(path, text, None)?.plan.campaign),
            _ => None,
        };
        let (run, workloads) = fleet.connection.queued_run(self.run.as_deref(), campaign.as_deref())?;
        let path = self.campaign.clone().unwrap_or_else(|| root.with_file_name("campaign.toml"));
        let text = run.campaign_toml.clone();
        let file = CampaignFile::parse_with(&path, text, run.basis(), &workloads, &NoProgress)?;
        Ok(Resumption { file, path, run, trials: Vec::new(), changes: Changes::default() })
    }

    /// The text of FILE, if it is given.
    fn text(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.campaign else { return Ok(None) };
        let text = campaign_arg::text(path, &self.set)?;
        Ok(Some(if self.reboots.is_given() { overrides::without_virtual_machines(&text) } else { text }))
    }
}
