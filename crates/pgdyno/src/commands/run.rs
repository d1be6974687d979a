//! `pgdyno run`: runs a campaign and prints its tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use clap::Args;
use model::record::Run;
use runner::RunError;
use runner::campaign::{Campaign, Executed};
use signal_hook::consts::{SIGINT, SIGTERM};
use store::Store;
use target::{Cache, TargetError};

use crate::campaign_file::CampaignFile;
use crate::commands::plan::headline;
use crate::exit::Exit;
use crate::output::{FormatArg, note, print};
use crate::progress::Progress;
use crate::store_arg::StoreArg;

/// Run a campaign: every trial becomes a bundle in the store, then the tables are printed
///
/// Servers and data sets are fetched and built when they are first needed. Each trial is stored as soon as it has
/// ended; Ctrl-C ends the running one and keeps all others. Tables go to standard output, progress to standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno run campaigns/quick.toml\n  \
                        pgdyno run upgrade.toml --store /var/lib/pgdyno && pgdyno report --store /var/lib/pgdyno\n\n\
                        Exit codes: 0 ok, 1 error, 2 usage or campaign wrong (nothing was started), 4 no trial is \
                        usable,\n5 some trials are invalid, 130 interrupted.")]
pub(crate) struct RunArgs {
    /// The campaign: a TOML file
    #[arg(value_name = "FILE")]
    campaign: PathBuf,

    #[command(flatten)]
    store: StoreArg,

    #[command(flatten)]
    format: FormatArg,
}

impl RunArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let file = CampaignFile::read(&self.campaign)?;
        let cache = Cache::open()?;
        for server in file.plan.servers() {
            match target::resolve(&cache, server) {
                Ok(_) => {}
                Err(TargetError::NoSuchVersion { available, .. }) => {
                    let message = format!("there is no PostgreSQL {server} to be had");
                    return Err(file
                        .refuse_server(
                            server,
                            message,
                            format!("expected a major or one of: {}", available.join(", ")),
                        )
                        .into());
                }
                Err(error) => return Err(error.into()),
            }
        }

        let interrupt = stop_on_signals()?;
        let store = Store::open(&self.store_root())?;
        let run = Run {
            id: store::new_id(),
            campaign: file.plan.campaign.clone(),
            campaign_toml: file.text.clone(),
            seed: file.plan.run.seed,
            pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        note(&headline(&file.plan));
        let progress = Progress::new();
        let executed = Campaign {
            plan: &file.plan,
            run: &run,
            store: &store,
            cache: &cache,
            program: &std::env::current_exe().context("the path of pgdyno itself is not known")?,
            interrupt: &interrupt,
            observer: &progress,
        }
        .execute();
        progress.finish();

        match executed {
            Err(RunError::Interrupted) => {
                note("interrupted before the first trial\n");
                Ok(Exit::Interrupted)
            }
            Err(error) => {
                self.print_tables(&store, &run)?;
                Err(error.into())
            }
            Ok(executed) => {
                self.print_tables(&store, &run)?;
                note(&last_line(&executed, store.root()));
                Ok(exit(&executed))
            }
        }
    }

    /// The store beside the campaign, unless another one is named.
    fn store_root(&self) -> PathBuf {
        self.store.root_beside(self.campaign.parent().unwrap_or(Path::new("")))
    }

    fn print_tables(&self, store: &Store, run: &Run) -> anyhow::Result<()> {
        match report::of_run(store, &run.id)? {
            Some(view) => print(&report::tables(&view, self.format.get())),
            None => Ok(()),
        }
    }
}

/// The first Ctrl-C (or SIGTERM) asks for an orderly end, the second ends at once; servers and driver go with us
/// either way.
fn stop_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag set by the first.
        signal_hook::flag::register_conditional_shutdown(
            signal,
            Exit::Interrupted as i32,
            Arc::clone(&interrupt),
        )
        .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupt)))
        .context("could not watch for Ctrl-C")?;
    }
    Ok(interrupt)
}

fn exit(executed: &Executed) -> Exit {
    match executed {
        Executed { interrupted: true, .. } => Exit::Interrupted,
        Executed { invalid: 0, .. } => Exit::Ok,
        Executed { usable: 0, .. } => Exit::InvalidMeasurement,
        _ => Exit::Partial,
    }
}

fn last_line(executed: &Executed, root: &Path) -> String {
    let Executed { usable, invalid, interrupted } = executed;
    let head = if *interrupted { "interrupted: " } else { "" };
    let root = root.display();
    if usable + invalid == 0 {
        return format!("{head}no trial has been run\n");
    }
    format!(
        "{head}{usable} usable and {invalid} invalid trials are in {root}\n\
         As a page: pgdyno report --store {root} -o report.html\n"
    )
}
