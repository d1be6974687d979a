//! Running a campaign, from its beginning or from where it ended, under the eyes of a user.

use std::path::Path;

use anyhow::Context;
use host::Cache;
use machine::reboot::Machine;
use model::plan::Plan;
use model::record::{Run, Trial};
use model::server::Source;
use plaintext::table::Format;
use runner::campaign::{Campaign, RunOutcome};
use runner::live_file::LiveFile;
use runner::{BootedFor, HostContext, Progress, RunError};
use store::Store;

use crate::campaign_file::CampaignFile;
use crate::exit::{Exit, Usage};
use crate::interrupt;
use crate::output::{note, print};
use crate::progress::CampaignProgress;

/// A run of a campaign that begins or goes on.
pub(crate) struct CampaignRun<'a> {
    /// What it comes to.
    pub(crate) plan: &'a Plan,
    /// Which.
    pub(crate) run: &'a Run,
    /// What has been run of it.
    pub(crate) trials: &'a [Trial],
    /// Where its trials go.
    pub(crate) store: &'a Store,
    /// Whether nothing is to be measured where there are confounds.
    pub(crate) strict: bool,
}

/// How a run ended that did not fail.
pub(crate) enum Outcome {
    /// The user ended it before its first trial.
    Interrupted,
    /// Trials were run.
    Executed(RunOutcome),
}

/// Whether each downloaded server of a campaign can be had.
///
/// # Errors
/// [`Usage`] at its place in the campaign; or the archive can't be asked.
pub(crate) fn has_servers(file: &CampaignFile) -> anyhow::Result<()> {
    let cache = Cache::open()?;
    for server in &file.plan.servers {
        let Source::Embedded(version) = &server.source else { continue };
        match server::resolve(&cache, version) {
            Ok(_) => {}
            Err(server::Error::NoSuchVersion { available, .. }) => {
                let message = format!("there is no PostgreSQL {version} to be had");
                let help = format!("expected a major or one of: {}", available.join(", "));
                return Err(file.refuse_server(&server.name, message, help).into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Where pgdyno is.
pub(crate) fn here() -> HostContext {
    let uname = rustix::system::uname();
    HostContext {
        kernel: uname.release().to_string_lossy().into_owned(),
        command_line: std::fs::read_to_string("/proc/cmdline").unwrap_or_default(),
        booted: booted_for(),
        hostname: uname.nodename().to_string_lossy().into_owned(),
    }
}

/// What this kernel was booted for, by `--kernels-by-reboot`.
fn booted_for() -> Option<BootedFor> {
    let boot = Machine::here().journal().ok()??.last.filter(|last| last.came_up)?.boot;
    Some(BootedFor { kernel_args: boot.args, sysctl: boot.sysctl.name })
}

/// A new run of a campaign; `tags` are more than it has itself.
pub(crate) fn new_run(file: &CampaignFile, tags: &[String]) -> Run {
    Run {
        id: store::new_id(),
        campaign: file.plan.campaign.clone(),
        campaign_toml: file.text.clone(),
        seed: Some(file.plan.run.seed),
        pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        tags: file.plan.tags.iter().chain(tags).cloned().collect(),
        notes: file.plan.notes.clone(),
    }
}

impl CampaignRun<'_> {
    /// Runs what is still to be run, and prints the tables.
    ///
    /// # Errors
    /// As [`Campaign::execute`]; another pgdyno runs the same.
    pub(crate) fn execute(&self, format: Format) -> anyhow::Result<Exit> {
        match self.measure() {
            Ok(Outcome::Interrupted) => Ok(interrupted()),
            Err(error) => {
                self.print_tables(format)?;
                Err(error)
            }
            Ok(Outcome::Executed(executed)) => {
                self.print_tables(format)?;
                note(&last_lines(&executed, self.store.root()));
                Ok(exit(&executed))
            }
        }
    }

    /// Runs what is still to be run.
    ///
    /// # Errors
    /// As [`CampaignRun::execute`].
    pub(crate) fn measure(&self) -> anyhow::Result<Outcome> {
        let cache = Cache::open()?;
        let interrupt = interrupt::flag()?;
        let _claim = self.store.claim(&self.run.id)?;
        let progress = CampaignProgress::new();
        let live = LiveFile::begin(self.store, self.plan, self.run, self.trials, &progress);
        let executed = Campaign {
            plan: self.plan,
            run: self.run,
            trials: self.trials,
            host: &here(),
            strict: self.strict,
            store: self.store,
            cache: &cache,
            program: &std::env::current_exe().context("the path of pgdyno itself is not known")?,
            interrupt: &interrupt,
            observer: &live,
        }
        .execute();
        live.end(&executed);
        progress.finish();

        match executed {
            Err(RunError::Interrupted) => Ok(Outcome::Interrupted),
            Err(error @ RunError::Confounded { .. }) => Err(Usage(format!("error: {error}")).into()),
            Err(error) => Err(error.into()),
            Ok(executed) => Ok(Outcome::Executed(executed)),
        }
    }

    fn print_tables(&self, format: Format) -> anyhow::Result<()> {
        match analysis::overview::read_run(self.store, &self.run.id)? {
            Some(view) => print(&report::tables(&view, format)),
            None => Ok(()),
        }
    }
}

/// The user has ended it before its first trial.
pub(crate) fn interrupted() -> Exit {
    note("interrupted before the first trial\n");
    Exit::Interrupted
}

/// What a run of a campaign comes to.
pub(crate) fn exit(executed: &RunOutcome) -> Exit {
    match executed {
        RunOutcome { interrupted: true, .. } => Exit::Interrupted,
        RunOutcome { progress: Progress { invalid: 0, ahead: 0, elsewhere: 0, .. }, .. } => Exit::Ok,
        RunOutcome { progress: Progress { usable: 0, elsewhere: 0, .. }, .. } => Exit::InvalidMeasurement,
        _ => Exit::Partial,
    }
}

fn last_lines(executed: &RunOutcome, root: &Path) -> String {
    let RunOutcome { progress: Progress { usable, invalid, ahead, elsewhere }, interrupted } = executed;
    let root = root.display();
    let mut text = if *interrupted { "interrupted: ".to_owned() } else { String::new() };
    text += &format!("{usable} usable and {invalid} invalid trials are in {root}\n");
    if *ahead > 0 {
        text += &format!("{ahead} are still to be run: pgdyno resume --store {root}\n");
    }
    if *elsewhere > 0 {
        text +=
            &format!("{elsewhere} wait for another kernel or host: there, pgdyno resume --store {root}\n");
    }
    if *usable > 0 {
        text += &format!("As a page: pgdyno report --store {root} -o report.html\n");
        text += &format!(
            "Where the time goes: pgdyno explain --store {root} (the latest trial; FACTOR=LEVEL,… for a cell)\n"
        );
    }
    text
}
