//! Publication: trials copied into a schema of a PostgreSQL server, one transaction a trial.

mod error;
mod preview;
mod rows;
mod schema;

use std::collections::BTreeSet;

use model::record::{Trial, TrialRecord};
use store::StoreReader;
use wire::ConnectParams;
use wire::blocking::{Session, SessionError};

use crate::export_tables::Table;
pub use error::PublishError;
pub use preview::Preview;
use schema::{Schema, State};

/// Connection to the schema that trials are published to.
pub struct Publisher {
    session: Session,
    schema: Schema,
}

/// Outcome of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Trials copied now.
    pub copied: usize,
    /// Selected trials still to be copied: publication was interrupted.
    pub remaining: usize,
    /// Trials that were in the schema before.
    pub known: usize,
}

/// A trial that has just been copied.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The trial.
    pub trial: &'a Trial,
    /// Trials copied so far.
    pub copied: usize,
    /// Trials to be copied.
    pub total: usize,
}

impl Publisher {
    /// Connects to a server.
    ///
    /// # Errors
    /// The server can't be reached, or refuses the session.
    pub fn connect(params: &ConnectParams, schema: &str) -> Result<Self, PublishError> {
        let mut session = Session::connect(params)?;
        schema::prepare_session(&mut session)?;
        Ok(Self { session, schema: Schema::new(schema) })
    }

    /// Trials that [`Publisher::publish`] would copy. Nothing is changed.
    ///
    /// # Errors
    /// As [`Publisher::publish`].
    pub fn preview<'t>(&mut self, trials: &[&'t Trial]) -> Result<Preview<'t>, PublishError> {
        let (state, known) = self.inspect()?;
        Ok(Preview { new: new(trials, &known), selected: trials.len(), state })
    }

    /// Copies the selected trials that are not in the schema, which is created or upgraded first; those that can't be
    /// read are left out. `is_interrupted` is called before each trial, `on_copied` after each.
    ///
    /// # Errors
    /// A load of pgdyno is running on the server; the schema is not pgdyno's or of a later release; the role lacks
    /// privileges; none of the trials can be read. Trials in the schema are complete in any case.
    pub fn publish(
        &mut self,
        reader: &StoreReader,
        selected: &[&Trial],
        is_interrupted: &dyn Fn() -> bool,
        on_copied: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Published, PublishError> {
        let (_, mut known) = self.inspect()?;
        let new = new(selected, &known);
        self.schema.create_or_upgrade(&mut self.session)?;
        let (known_before, total) = (known.len(), new.len());
        let (mut copied, mut concurrent, mut left_out) = (0, 0, None);
        let mut remaining = total;
        for trial in new {
            if is_interrupted() {
                break;
            }
            remaining -= 1;
            let Some(record) = reader.load(&trial.id) else {
                left_out = left_out.or(Some(&trial.id));
                continue;
            };
            known.insert(trial.id.clone());
            if self.copy(reader.trials(), &record, &known)? {
                copied += 1;
                on_copied(Progress { trial, copied, total });
            } else {
                concurrent += 1;
            }
        }
        if let Some(id) = left_out.filter(|_| copied + concurrent + remaining == 0) {
            return Err(reader.error(id).into());
        }
        Ok(Published { copied, remaining, known: known_before + concurrent })
    }

    /// State of the schema and ids of its trials.
    fn inspect(&mut self) -> Result<(State, BTreeSet<String>), PublishError> {
        check_idle(&mut self.session)?;
        let state = self.schema.state(&mut self.session)?;
        let known = match state {
            State::Absent | State::Empty => BTreeSet::new(),
            State::Version(_) => self.schema.trials(&mut self.session)?,
        };
        Ok((state, known))
    }

    /// Copies a trial in a transaction; false if another pgdyno has published it meanwhile.
    fn copy(
        &mut self,
        all: &[Trial],
        record: &TrialRecord,
        known: &BTreeSet<String>,
    ) -> Result<bool, PublishError> {
        let Self { session, schema } = self;
        let trial = &record.trial;
        // Rows of runs and cells summarize the trials in the schema.
        let same_run: Vec<&Trial> =
            all.iter().filter(|other| other.run.id == trial.run.id && known.contains(&other.id)).collect();
        let same_cell: Vec<&Trial> =
            same_run.iter().copied().filter(|other| other.cell == trial.cell).collect();
        session.execute("BEGIN")?;
        for (table, trials) in [(Table::Runs, &same_run), (Table::Cells, &same_cell)] {
            table.rows_of_runs(trials, &mut |values| session.execute(&schema.upsert(table, values)))?;
        }
        let mut is_inserted = false;
        Table::Trials.rows_of_trial(record, &mut |values| -> Result<(), SessionError> {
            is_inserted = !session.query::<Vec<Option<String>>>(&schema.insert_once(values))?.is_empty();
            Ok(())
        })?;
        if !is_inserted {
            session.execute("ROLLBACK")?;
            return Ok(false);
        }
        for table in schema::TABLES_PER_TRIAL {
            session.copy_in(&schema.copy(table), |out| {
                table.rows_of_trial(record, &mut |values| rows::write_row(out, values))
            })?;
        }
        let committed = session.execute("COMMIT");
        committed.map_err(|source| PublishError::Commit { trial: trial.id.clone(), source })?;
        Ok(true)
    }
}

fn new<'t>(trials: &[&'t Trial], known: &BTreeSet<String>) -> Vec<&'t Trial> {
    trials.iter().copied().filter(|trial| !known.contains(&trial.id)).collect()
}

/// Refuses a server that is being measured: publishing would disturb it.
fn check_idle(session: &mut Session) -> Result<(), PublishError> {
    let sql = "SELECT count(*) FROM pg_catalog.pg_stat_activity \
               WHERE application_name = 'pgdyno' AND pid <> pg_backend_pid()";
    match session.query_one(sql)? {
        0 => Ok(()),
        sessions => Err(PublishError::Busy { sessions }),
    }
}
