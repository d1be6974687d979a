//! pgdyno's own sessions with a server, outside the load: in the database `postgres`, unless stated otherwise.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::secret::{mask, mask_sql};
use model::version::Major;
use model::workload::Statement;
use wire::blocking::{Canceller, Session, SessionError};
use wire::{ConnectParams, TargetSessionAttrs};

use crate::error::{Error, outage_of, sql_text};

/// `application_name` of these sessions.
pub(crate) const APPLICATION_NAME: &str = "pgdyno control";
/// SQLSTATE insufficient_privilege.
pub(crate) const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// Time limit of a server to accept a connection; of one that pgdyno does not own, unless its connection string sets one.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The canceller of the session that was opened last.
pub(crate) type Newest = Arc<Mutex<Option<Arc<Canceller>>>>;

/// Connection parameters of a server, and its names in messages.
#[derive(Clone)]
pub(crate) struct Control {
    params: ConnectParams,
    /// The server in errors: its data directory, or its name and address.
    pub(crate) display_name: String,
    /// The server in steps of progress.
    pub(crate) title: String,
    pub(crate) major: Major,
    /// Cancels the statements of the session that was opened last; none if nobody asks for that.
    newest: Option<Newest>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("display_name", &self.display_name).finish_non_exhaustive()
    }
}

/// Parameters of a session with a server of pgdyno's own, through its socket.
pub(crate) fn socket_params(sockets: &Path, port: u16, database: &str) -> ConnectParams {
    let mut params = ConnectParams::new(sockets.display().to_string(), port, crate::USER, database, None);
    params.application_name = Some(APPLICATION_NAME.to_owned());
    params.connect_timeout = Some(CONNECT_TIMEOUT);
    params
}

impl Control {
    pub(crate) fn new(mut params: ConnectParams, display_name: String, title: String, major: Major) -> Self {
        // Rows are read as UTF-8.
        params.client_encoding = Some("UTF8".to_owned());
        // The host is given. Querying its kind of session would add a transaction.
        params.target_session_attrs = TargetSessionAttrs::Any;
        Self { params, display_name, title, major, newest: None }
    }

    /// The same, which keeps the canceller of the session that it opened last there.
    pub(crate) fn keeping(&self, newest: Newest) -> Self {
        Self { newest: Some(newest), ..self.clone() }
    }

    /// The role.
    pub(crate) fn user(&self) -> &str {
        &self.params.user
    }

    /// A session with the database `postgres`.
    pub(crate) fn session(&self) -> Result<Session, Error> {
        self.connect("postgres")
    }

    pub(crate) fn connect(&self, database: &str) -> Result<Session, Error> {
        let mut params = self.params.clone();
        database.clone_into(&mut params.database);
        let session = Session::connect(&params)
            .map_err(|error| self.error(format!("connect to the database {database}"), &error))?;
        if let Some(newest) = &self.newest {
            *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.canceller());
        }
        Ok(session)
    }

    pub(crate) fn execute(&self, session: &mut Session, statement: &str) -> Result<(), Error> {
        session
            .execute(statement)
            .map_err(|error| self.error(format!("run \"{}\"", mask_sql(statement)), &error))
    }

    /// Runs statements in the tested database, in one session and in order, up to one that is refused.
    pub(crate) fn run_all(&self, statements: &[Statement]) -> Result<(), Error> {
        let mut session = self.connect(crate::DATABASE)?;
        run_statements(&mut session, statements)
    }

    /// Runs statements in the tested database, in one session that can only read; returns the number that the last one returns.
    pub(crate) fn figure(&self, statements: &[Statement]) -> Result<f64, Error> {
        let mut session = self.connect(crate::DATABASE)?;
        self.execute(&mut session, "set default_transaction_read_only = on")?;
        let Some((query, before)) = statements.split_last() else {
            return Err(self.failed("determine a figure", "there is no query".to_owned()));
        };
        run_statements(&mut session, before)?;
        let rows: Vec<Option<f64>> = session.query(&query.sql).map_err(|error| refused(query, &error))?;
        match rows[..] {
            [Some(figure)] if figure.is_finite() => Ok(figure),
            _ => {
                let given = match rows[..] {
                    [figure] => figure.map_or_else(|| "null".to_owned(), |figure| figure.to_string()),
                    _ => format!("{} rows", rows.len()),
                };
                let why = format!("expected one row with a number as its first column, got {given}");
                Err(Error::Statement { place: query.place.clone(), why })
            }
        }
    }

    /// Runs a checkpoint. False if the role may not.
    pub(crate) fn checkpoint(&self) -> Result<bool, Error> {
        match self.session()?.execute("checkpoint") {
            Ok(()) => Ok(true),
            Err(error) if sqlstate(&error) == Some(INSUFFICIENT_PRIVILEGE) => Ok(false),
            Err(error) => Err(self.error("run a checkpoint", &error)),
        }
    }

    /// Error of a statement or connection that failed.
    pub(crate) fn error(&self, doing: impl Into<String>, error: &SessionError) -> Error {
        let outage = outage_of(error);
        Error::Sql { doing: doing.into(), server: self.display_name.clone(), why: sql_text(error), outage }
    }

    pub(crate) fn failed(&self, doing: impl Into<String>, why: String) -> Error {
        Error::Sql { doing: doing.into(), server: self.display_name.clone(), why, outage: None }
    }
}

/// Runs statements in order, up to one that is refused.
fn run_statements(session: &mut Session, statements: &[Statement]) -> Result<(), Error> {
    statements
        .iter()
        .try_for_each(|statement| session.execute(&statement.sql).map_err(|error| refused(statement, &error)))
}

/// Error of a workload's statement.
fn refused(statement: &Statement, error: &SessionError) -> Error {
    let refused = error.server_error().map(|refused| mask(&refused.message));
    let why = refused.unwrap_or_else(|| sql_text(error));
    Error::Statement { place: statement.place.clone(), why }
}

/// SQLSTATE of the server's own error.
pub(crate) fn sqlstate(error: &SessionError) -> Option<&str> {
    error.server_error()?.code()
}
