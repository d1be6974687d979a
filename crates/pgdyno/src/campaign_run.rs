//! A campaign's run with progress on standard error, and its tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use fleet::coordinator::Coordinator;
use host::Cache;
use model::record::{Run, Trial};
use plaintext::table::Format;
use runner::campaign::{Campaign, RunOutcome};
use runner::campaign_file::CampaignFile;
use runner::reboots::Reboots;
use runner::{HostContext, Progress, RunError};
use store::Store;

use crate::exit::Exit;
use crate::fleet_args::OnFleet;
use crate::interrupt;
use crate::output::{print, terminal};
use crate::progress::CampaignProgress;
use crate::reading::Reading;

/// A run to start or to continue.
#[derive(Clone, Copy)]
pub(crate) struct CampaignRun<'a> {
    /// Its campaign.
    pub(crate) file: &'a CampaignFile,
    /// The run.
    pub(crate) run: &'a Run,
    /// Its trials in the store.
    pub(crate) trials: &'a [Trial],
    /// The fleet whose machines run the trials; none for this one.
    pub(crate) fleet: Option<&'a OnFleet>,
    /// Whether confounds are an error, before anything is measured.
    pub(crate) strict: bool,
    /// Whether to measure at the same time as other pgdynos on this host.
    pub(crate) allow_concurrent: bool,
}

impl CampaignRun<'_> {
    /// Runs the remaining trials.
    ///
    /// # Errors
    /// As [`Campaign::execute`]; another pgdyno has claimed the run.
    pub(crate) fn measure(self, store: &Store) -> anyhow::Result<RunOutcome> {
        let (cache, program, interrupt) = (Cache::open()?, program()?, interrupt::flag()?);
        let Self { file, run, trials, fleet, strict, allow_concurrent } = self;
        let plan = &file.plan;
        let progress = CampaignProgress::new(plan);
        if let Some(OnFleet { connection, key }) = fleet {
            let outcome = Coordinator {
                connection,
                plan,
                run,
                trials,
                key: key.as_ref(),
                store,
                interrupt: &interrupt,
                observer: &progress,
            }
            .execute();
            progress.finish();
            return Ok(outcome?);
        }
        let earlier = trials.iter().map(|trial| trial.id.clone()).collect();
        let outcome = runner::run(&Campaign {
            plan,
            run,
            trials,
            earlier: &earlier,
            block: None,
            more_blocks: None,
            host: &HostContext::detect(),
            strict,
            allow_concurrent,
            store,
            cache: &cache,
            program: &program,
            load_hosts: None,
            interrupt: &interrupt,
            observer: &progress,
        });
        progress.finish();
        Ok(outcome?)
    }

    /// Calls `boot` with the run, for booting its kernels.
    pub(crate) fn with_reboots<T>(
        self,
        root: &Path,
        interrupt: Arc<AtomicBool>,
        boot: impl FnOnce(Reboots<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let Self { file, run, strict, allow_concurrent, .. } = self;
        let plan = &file.plan;
        let (cache, program, progress) = (Cache::open()?, program()?, CampaignProgress::new(plan));
        let outcome = boot(Reboots {
            plan,
            run,
            root,
            strict,
            allow_concurrent,
            cache: &cache,
            program: &program,
            interrupt: &interrupt,
            observer: &progress,
        });
        progress.finish();
        outcome
    }
}

/// Path of the pgdyno executable, which driver processes and guests run.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("could not find the path of the pgdyno executable")
}

/// Whether tables would only distract from an error.
pub(crate) fn says_all(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::Interrupted | RunError::Refused { .. }))
}

/// Prints the tables of a run.
///
/// # Errors
/// The store can't be read.
pub(crate) fn print_tables(store: &Store, run: &Run, format: Format) -> anyhow::Result<()> {
    let reading = Reading::of(store)?;
    match analysis::overview::read_run(&reading, &run.id)? {
        Some(view) => print(&report::tables(&view, format, terminal())),
        None => Ok(()),
    }
}

/// Exit code of a run.
pub(crate) fn exit(outcome: &RunOutcome) -> Exit {
    match outcome {
        RunOutcome { interrupted: true, .. } => Exit::Interrupted,
        RunOutcome { progress: Progress { invalid: 0, remaining: 0, elsewhere: 0, .. }, .. } => Exit::Ok,
        RunOutcome { progress: Progress { usable: 0, elsewhere: 0, .. }, .. } => Exit::InvalidMeasurement,
        _ => Exit::Partial,
    }
}

/// Numbers of trials, and the commands to run next.
pub(crate) fn closing_lines(outcome: &RunOutcome, root: &Path, on_fleet: bool) -> String {
    let RunOutcome { progress: Progress { usable, invalid, remaining, elsewhere }, interrupted } = outcome;
    let root = root.display();
    let on_fleet = if on_fleet { " --fleet" } else { "" };
    let mut text = if *interrupted { "interrupted: ".to_owned() } else { String::new() };
    text += &format!("{usable} usable and {invalid} invalid trials are in {root}\n");
    if *remaining > 0 && !on_fleet.is_empty() && *interrupted {
        text += "The fleet goes on measuring. ";
    }
    if *remaining > 0 {
        text += &format!("{remaining} remain: pgdyno resume{on_fleet} --store {root}\n");
    }
    if *invalid > 0 && *remaining == 0 {
        text += &format!("to try the invalid ones again: pgdyno resume{on_fleet} --store {root}\n");
    }
    if *elsewhere > 0 {
        text +=
            &format!("{elsewhere} wait for another kernel or host: there, pgdyno resume --store {root}\n");
    }
    if *usable > 0 {
        text += &format!("As a page: pgdyno report --store {root} -o report.html\n");
        text += &format!("Where the time goes: pgdyno explain --store {root}\n");
    }
    text
}
