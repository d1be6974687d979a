//! `pgdyno publish`: the store in a schema of a PostgreSQL server.

use std::sync::atomic::Ordering;

use analysis::select::{Selector, trials_of_any};
use anyhow::Context;
use clap::Args;
use plaintext::figures::counted;
use report::publish::{Progress, Published, Publisher};
use wire::ConnectParams;

use crate::completion;
use crate::connection;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::{note, print};
use crate::store_arg::StoreArg;

/// Copy trials into a schema of a PostgreSQL server, with views for Grafana
///
/// The tables are those of `pgdyno export`: runs, trials, cells, intervals, scripts, series, waits, events and statements.
/// Trials already in the schema are not copied again: repeat the command after each campaign. Each trial is one
/// transaction, so that published trials are always complete. The schema is created if it does not exist, which needs
/// the CREATE privilege. PostgreSQL 9.6 and later.
///
/// Never publish to a server that is being measured.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno publish postgresql://grafana@db.example/results     all trials not yet published
  pgdyno publish 'host=db.example dbname=results' latest     the latest run
  pgdyno publish results --schema night --dry-run            what would be copied

Exit codes: 0 all trials are published, 1 error, 130 interrupted; published trials are complete in any case.")]
pub(crate) struct PublishArgs {
    /// Database to publish to: a URI, a connection string, or a name. Missing parameters come from the environment (PGHOST
    /// and the like), service and password files
    #[arg(value_name = "CONNECTION")]
    connection: String,

    /// Trials, as FACTOR=LEVEL, run:ID, campaign:NAME (all its runs), tag:NAME or latest, separated by commas, or as ids;
    /// the union of all selectors [default: all trials in the store]
    #[arg(value_name = "SELECTOR", add = completion::selectors())]
    selectors: Vec<Selector>,

    /// Schema of the tables
    #[arg(long, value_name = "NAME", default_value = "pgdyno")]
    schema: String,

    /// Show what would be copied; change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    store: StoreArg,
}

impl PublishArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let application = ("fallback_application_name", "pgdyno publish".to_owned());
        let mut params = connection::resolve([("dbname", self.connection.clone()), application])?;
        params.client_encoding = Some("UTF8".to_owned());
        let reading = self.store.read()?;
        let interrupt = interrupt::flag()?;
        let mut publisher = Publisher::connect(&params, &self.schema)?;
        let place = place(&self.schema, &params);
        let failed = || format!("could not publish to {place}");
        let selected = trials_of_any(&reading, &self.selectors)?;
        if self.dry_run {
            print(&publisher.preview(&selected).with_context(failed)?.text(&place))?;
            return Ok(Exit::Ok);
        }
        let is_interrupted = || interrupt.load(Ordering::Relaxed);
        let published = publisher.publish(&reading, &selected, &is_interrupted, &mut show);
        Ok(conclude(&published.with_context(failed)?))
    }
}

fn show(progress: Progress<'_>) {
    let Progress { trial, copied, total } = progress;
    note(&format!("{copied} of {total}: {} {}\n", trial.id, trial.cell));
}

fn conclude(published: &Published) -> Exit {
    let Published { copied, remaining, known } = published;
    if *remaining > 0 {
        note(&format!(
            "interrupted: {copied} published, {remaining} remaining; repeat the command for these\n"
        ));
        return Exit::Interrupted;
    }
    note(&format!("{} published, {known} already present\n", counted(*copied, "trial")));
    Exit::Ok
}

/// Schema, database and host, without secrets.
fn place(schema: &str, params: &ConnectParams) -> String {
    let host = params.hosts.first().map(|host| format!(" on {}:{}", host.host, host.port));
    format!("schema {schema} of database {}{}", params.database, host.unwrap_or_default())
}
