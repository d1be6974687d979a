//! `pgdyno publish`: the store in a schema of a PostgreSQL server, for Grafana and whoever speaks SQL.

mod copy;
mod schema;

use std::collections::{BTreeMap, BTreeSet};

use analysis::select::Selector;
use anyhow::{Context, bail};
use clap::Args;
use model::record::Trial;
use report::export_tables::Table;
use store::Store;
use wire::blocking::{Session, SessionError};
use wire::{ConnectParams, Given};

use crate::chosen::{Interrupt, chosen};
use crate::exit::{Exit, Usage};
use crate::output::{note, print};
use crate::store_arg::StoreArg;
use schema::{Schema, State};

/// Copy trials into a schema of a PostgreSQL server, with views for Grafana
///
/// The tables are those of `pgdyno export`: runs, trials, cells, intervals, scripts, series, waits, events and statements.
/// Trials that are there already are not copied again, so that the command may be repeated after each campaign. Each
/// trial is one transaction: whatever happens, what is there is whole. The schema is made where there is none, and needs
/// the right to make it; PostgreSQL 9.6 and later.
///
/// Never publish to a server that is being measured.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno publish postgresql://grafana@db.example/results     all of the store that is not there yet
  pgdyno publish 'host=db.example dbname=results' latest     the latest run
  pgdyno publish results --schema night --dry-run            what would be copied

Exit codes: 0 all is there, 1 error, 130 interrupted; the trials that are there are whole.")]
pub(crate) struct PublishArgs {
    /// Where to: a URI, a connection string, or the name of a database. What it does not say comes from the environment
    /// (PGHOST and the like), service and password files
    #[arg(value_name = "CONNECTION")]
    connection: String,

    /// Trials, as FACTOR=LEVEL, run:ID, campaign:NAME (all its runs), tag:NAME or latest with commas between them, or as
    /// ids; those that any selector selects [default: all of the store]
    #[arg(value_name = "SELECTOR")]
    what: Vec<Selector>,

    /// Schema that the tables are in
    #[arg(long, value_name = "NAME", default_value = "pgdyno")]
    schema: String,

    /// Say what would be copied, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    store: StoreArg,
}

impl PublishArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let params = resolve(&self.connection)?;
        let store = Store::existing(&self.store.root())?;
        let all = store.trials()?;
        let trials = chosen(&store, &all, &self.what)?;
        let interrupt = Interrupt::watch()?;
        let mut session = Session::connect(&params).map_err(|error| advised(error, &self.schema))?;
        let place = format!("schema {} of {}", self.schema, shown(&params));
        let schema = Schema::new(&self.schema);
        let published = (|| {
            schema::prepare_session(&mut session)?;
            is_idle(&mut session)?;
            let state = schema.state(&mut session)?;
            let there = match state {
                State::Absent | State::Empty => BTreeSet::new(),
                State::Version(_) => schema.trials(&mut session)?,
            };
            let new: Vec<&Trial> =
                trials.iter().copied().filter(|trial| !there.contains(&trial.id)).collect();
            if self.dry_run {
                print(&foretold(&new, trials.len(), &place, &state))?;
                return Ok(Exit::Ok);
            }
            schema.make(&mut session)?;
            copy_all(&mut session, &schema, &store, &all, there, &new, &interrupt)
        })();
        let published = published.map_err(|error| match error.downcast::<SessionError>() {
            Ok(error) => advised(error, &self.schema),
            Err(error) => error,
        });
        published.with_context(|| format!("could not publish to {place}"))
    }
}

/// Copies trials one by one, each in a transaction.
fn copy_all(
    session: &mut Session,
    schema: &Schema,
    store: &Store,
    all: &[Trial],
    mut there: BTreeSet<String>,
    new: &[&Trial],
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let mut copied = 0;
    for trial in new {
        if interrupt.came() {
            break;
        }
        let record = store.load(&trial.id)?;
        there.insert(trial.id.clone());
        // A run and a cell are told by those of their trials that are there.
        let of_run: Vec<&Trial> =
            all.iter().filter(|other| other.run.id == trial.run.id && there.contains(&other.id)).collect();
        let of_cell: Vec<&Trial> = of_run.iter().copied().filter(|other| other.cell == trial.cell).collect();
        session.execute("BEGIN")?;
        for (table, heads) in [(Table::Runs, &of_run), (Table::Cells, &of_cell)] {
            table.of_heads(heads, &mut |values| session.execute(&schema.upsert(table, values)))?;
        }
        let mut inserted = false;
        Table::Trials.of_trial(&record, &mut |values| -> Result<(), SessionError> {
            inserted = !session.query::<Vec<Option<String>>>(&schema.insert_once(values))?.is_empty();
            Ok(())
        })?;
        if !inserted {
            // Somebody else has published it meanwhile.
            session.execute("ROLLBACK")?;
            continue;
        }
        for table in schema::OF_TRIALS {
            session.copy_in(&schema.copy(table), |out| {
                table.of_trial(&record, &mut |values| copy::row(out, values))
            })?;
        }
        session.execute("COMMIT").with_context(|| format!("trial {}", trial.id))?;
        copied += 1;
        note(&format!("{copied} of {}: {} {}\n", new.len(), trial.id, trial.cell));
    }
    let rest = new.len() - copied;
    match (interrupt.came(), rest) {
        (true, 1..) => {
            note(&format!("interrupted: {copied} published, {rest} not yet: repeat the command for these\n"));
            Ok(Exit::Interrupted)
        }
        _ => {
            let known = there.len() - copied;
            note(&format!("{} published, {known} there already\n", trials(copied)));
            Ok(Exit::Ok)
        }
    }
}

/// What a dry run says: the runs with how many of their trials would be copied.
fn foretold(new: &[&Trial], selected: usize, place: &str, state: &State) -> String {
    let mut runs: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for trial in new {
        runs.entry(&trial.run.id).or_insert((&trial.run.campaign, 0)).1 += 1;
    }
    let mut table = plaintext::table::Table::new(["run", "campaign", "#trials"]);
    for (run, (campaign, trials)) in runs {
        table.push(vec![run.to_owned(), campaign.to_owned(), trials.to_string()]);
    }
    let made = match state {
        State::Absent | State::Empty => ", which would be made",
        State::Version(version) if *version < schema::VERSION => ", which would be upgraded",
        State::Version(_) => "",
    };
    let head = format!("{} of {} would be copied into {place}{made}\n", new.len(), trials(selected));
    if new.is_empty() { head } else { head + &table.render(plaintext::table::Format::Table) }
}

fn trials(count: usize) -> String {
    format!("{count} trial{}", if count == 1 { "" } else { "s" })
}

/// A load that is measured must not be disturbed: pgdyno's own can be seen.
fn is_idle(session: &mut Session) -> anyhow::Result<()> {
    let sql = "SELECT count(*) FROM pg_catalog.pg_stat_activity \
               WHERE application_name = 'pgdyno' AND pid <> pg_backend_pid()";
    let loads: u64 = session.query_one(sql)?;
    if loads > 0 {
        bail!(
            "a load of pgdyno's is running on this server ({loads} sessions): publishing would disturb what is measured; \
             wait until it has ended"
        );
    }
    Ok(())
}

fn resolve(connection: &str) -> anyhow::Result<ConnectParams> {
    let given: Given = [("dbname", connection), ("fallback_application_name", "pgdyno publish")]
        .map(|(keyword, value)| (keyword, value.to_owned()))
        .into_iter()
        .collect();
    let resolved = ConnectParams::resolve(&given, &|name: &str| std::env::var(name).ok())
        .map_err(|error| Usage(format!("error: {error}")))?;
    for warning in &resolved.warnings {
        note(&format!("{warning}\n"));
    }
    let mut params = resolved.params;
    params.client_encoding = Some("UTF8".to_owned());
    Ok(params)
}

/// Database and host, without secrets.
fn shown(params: &ConnectParams) -> String {
    let host = params.hosts.first().map(|host| format!(" on {}:{}", host.host, host.port));
    format!("database {}{}", params.database, host.unwrap_or_default())
}

/// An error with what to do about it, where that is known.
fn advised(error: SessionError, schema: &str) -> anyhow::Error {
    const NO_PRIVILEGE: &str = "42501";
    const DISK_FULL: &str = "53100";
    let advice = match error.server_error().and_then(|said| said.code()) {
        Some(NO_PRIVILEGE) => format!(
            "; the role needs CREATE on the database, or a schema of its own: \
             CREATE SCHEMA {} AUTHORIZATION …, by an administrator, is enough",
            schema::identifier(schema)
        ),
        Some(DISK_FULL) => {
            "; the trials that are there are whole: make room and repeat the command".to_owned()
        }
        _ if error.needs_password() => "; give it by PGPASSWORD or a password file (~/.pgpass)".to_owned(),
        _ => String::new(),
    };
    anyhow::anyhow!("{error}{advice}")
}
