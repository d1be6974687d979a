//! `pgdyno resume`: goes on with a campaign that has not been run to its end.

use std::path::{Path, PathBuf};

use clap::Args;
use model::cell::Cell;
use model::changes::Changes;
use model::record::{Run, Trial};
use model::workload::Workloads;
use store::Store;

use crate::campaign_file::CampaignFile;
use crate::campaign_run::{CampaignRun, has_servers};
use crate::exit::{Exit, Usage};
use crate::kernels_by_reboot::{KernelsByReboot, RebootArgs, journaled};
use crate::output::{FormatArg, note};
use crate::overrides;
use crate::store_arg::StoreArg;

/// Go on with a campaign where it ended: after Ctrl-C, a crash, a reboot, or under another kernel
///
/// Runs the trials that are missing, in the order that was planned, and those again that were invalid. What has been
/// measured is never run twice. The campaign is the one in the store, to the letter; where FILE is given and says
/// something else by now, the differences are shown, and --edited goes on with FILE.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pgdyno resume campaigns/quick.toml\n  pgdyno resume --store /var/lib/pgdyno\n  \
                        pgdyno resume upgrade.toml --edited\n\n\
                        Exit codes: as those of `pgdyno run`; 2 also where the campaign was edited."
)]
pub(crate) struct ResumeArgs {
    /// The campaign file; its newest run is resumed [default: the newest run in the store]
    #[arg(value_name = "FILE")]
    campaign: Option<PathBuf>,

    /// Another value than FILE has, as in the `pgdyno run` that began it
    #[arg(long, value_name = "NAME=VALUE", requires = "campaign")]
    set: Vec<String>,

    /// Resume this run, by its id or how it begins
    #[arg(long, value_name = "ID")]
    run: Option<String>,

    /// Go on with FILE as it is now: run what is new, leave what is gone
    #[arg(long, requires = "campaign")]
    edited: bool,

    /// Measure nothing where cells that are to be compared differ in more than the factor they are compared by
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    reboots: RebootArgs,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl ResumeArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let beside = self.campaign.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let root = self.store.root_beside(beside);
        let store = Store::existing(&root)?;
        let all = store.trials()?;
        if self.reboots.is_asked()
            && !self.reboots.dry_run
            && let Some((journal, run)) = journaled(&root, self.run.as_deref())?
        {
            let mut known = Workloads::default();
            known.learn(
                all.iter()
                    .filter(|trial| trial.run.id == run.id)
                    .filter_map(|trial| trial.cell.workload.known()),
            );
            let text = run.campaign_toml.clone();
            let file = CampaignFile::with(&journal.campaign.file, text, run.seed, &known)?;
            let strict = journal.campaign.strict;
            let format = self.format.get();
            return KernelsByReboot { plan: &file.plan, run: &run, root: &root, strict, format }
                .after_boot(journal);
        }
        let text =
            self.campaign.as_deref().map(|path| overrides::apply(&read(path)?, &self.set)).transpose()?;
        let text = match self.reboots.is_asked() {
            true => text.map(|text| overrides::on_the_machine(&text)).transpose()?,
            false => text,
        };

        let name = match (&self.campaign, &text) {
            (Some(path), Some(text)) => Some(CampaignFile::of(path, text.clone(), Some(0))?.plan.campaign),
            _ => None,
        };
        let mut run = self.newest(&all, name.as_deref(), &root)?.run.clone();
        let trials: Vec<Trial> = all.into_iter().filter(|trial| trial.run.id == run.id).collect();

        // Where no file is given, relative paths are relative to where the store is.
        let path = self.campaign.clone().unwrap_or_else(|| root.with_file_name("campaign.toml"));
        // What was run is in the bundles, whatever has become of its files.
        let mut known = Workloads::default();
        known.learn(trials.iter().filter_map(|trial| trial.cell.workload.known()));
        let begun = CampaignFile::with(&path, run.campaign_toml.clone(), run.seed, &known)?;
        let file = match text {
            None => begun,
            Some(text) => {
                let now = CampaignFile::of(&path, text, run.seed)?;
                let changes = Changes::between(&begun.plan, &now.plan);
                self.heed(&path, &changes)?;
                run.campaign_toml.clone_from(&now.text);
                // Those of the command line stay.
                run.tags.retain(|tag| !begun.plan.tags.contains(tag));
                run.tags.splice(0..0, now.plan.tags.iter().cloned());
                run.notes.clone_from(&now.plan.notes);
                now
            }
        };
        has_servers(&file)?;
        note(&format!(
            "{}: going on with run {} of {} trials\n",
            run.campaign,
            run.id,
            file.plan.trials.len()
        ));
        if self.reboots.is_asked() {
            let format = self.format.get();
            return KernelsByReboot { plan: &file.plan, run: &run, root: &root, strict: self.strict, format }
                .begin(&self.reboots, &path);
        }
        CampaignRun { plan: &file.plan, run: &run, trials: &trials, store: &store, strict: self.strict }
            .execute(self.format.get())
    }

    /// A trial of the run that is meant.
    fn newest<'t>(&self, trials: &'t [Trial], name: Option<&str>, root: &Path) -> Result<&'t Trial, Usage> {
        let fits = |run: &Run| {
            name.is_none_or(|name| run.campaign == name)
                && self.run.as_ref().is_none_or(|id| run.id.starts_with(&id.to_uppercase()))
        };
        // An imported run can't be run.
        let own = trials.iter().filter(|trial| trial.imported.is_none() && fits(&trial.run));
        own.max_by(|a, b| a.run.id.cmp(&b.run.id)).ok_or_else(|| {
            let which = match (name, &self.run) {
                (_, Some(id)) => format!("run {id}"),
                (Some(name), None) => format!("run of the campaign {name}"),
                (None, None) => "run".to_owned(),
            };
            Usage(format!(
                "error: there is no {which} in {}\nBegin one with `pgdyno run`, or name another store by --store",
                root.display()
            ))
        })
    }

    /// Whether an edited campaign may go on.
    fn heed(&self, path: &Path, changes: &Changes) -> Result<(), Usage> {
        if changes.is_empty() {
            return Ok(());
        }
        let text = explain(changes);
        let path = path.display();
        if !changes.conflicting.is_empty() {
            return Err(Usage(format!(
                "error: {path} has been edited so that its trials would be others than those of this run\n{text}\
                 Begin a new run with `pgdyno run {path}`, or take these changes back"
            )));
        }
        if self.edited {
            note(&text);
            return Ok(());
        }
        Err(Usage(format!(
            "error: {path} has been edited since this run began, or the run was begun with --set\n{text}\
             Go on with it as it is now by `pgdyno resume {path} --edited`, or as it was by `pgdyno resume --store …`"
        )))
    }
}

fn read(path: &Path) -> Result<String, Usage> {
    std::fs::read_to_string(path)
        .map_err(|error| Usage(format!("error: the campaign {} can't be read: {error}", path.display())))
}

fn explain(changes: &Changes) -> String {
    const MOST: usize = 10;
    let list = |title: &str, cells: &[Cell]| -> String {
        if cells.is_empty() {
            return String::new();
        }
        let shown: String = cells.iter().take(MOST).map(|cell| format!("    {cell}\n")).collect();
        let more = cells.len().saturating_sub(MOST);
        let more = if more > 0 { format!("    and {more} more\n") } else { String::new() };
        format!("  {title}: {} cells\n{shown}{more}", cells.len())
    };
    let mut text = list("new", &changes.added);
    text += &list("gone (their trials stay in the store)", &changes.gone);
    text += &format!("  unchanged: {} cells\n", changes.kept);
    for change in changes.settled.iter().chain(&changes.conflicting) {
        text += &format!("  {change}\n");
    }
    text
}
