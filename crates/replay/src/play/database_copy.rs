//! A copy of a database for one playback, so that each playback begins with the same data.

use std::thread;
use std::time::{Duration, Instant};

use model::dataset::CONNECTION_LIMIT_MARK;
use wire::blocking::{Session, SessionError};
use wire::{ConnectParams, quote_identifier, quote_literal};

use crate::error::ReplayError;

/// Begins the names of copies; the process id of the session that made it follows.
const PREFIX: &str = "pgdyno_replay_";
/// SQLSTATE of a database that has sessions.
const OBJECT_IN_USE: &str = "55006";
/// Time that sessions of a playback have to end.
const SESSIONS_END_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two attempts to drop a database.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A copy of a database, which is dropped at the end.
pub struct DatabaseCopy {
    /// Its session is open as long as the copy is needed: what others left behind is known by that.
    session: Session,
    name: String,
    connection: ConnectParams,
}

impl DatabaseCopy {
    /// Copies the database `template`, which must have no sessions, by a session of another database. Drops copies that
    /// a killed pgdyno left.
    ///
    /// # Errors
    /// The server can't be connected to, or refuses it.
    pub fn create(connection: &ConnectParams, template: &str) -> Result<Self, ReplayError> {
        let mut session =
            Session::connect(connection).map_err(|error| ReplayError::Connect(Box::new(error)))?;
        let failed = |error: SessionError| ReplayError::Copy {
            template: template.to_owned(),
            source: Box::new(error),
        };
        drop_abandoned(&mut session).map_err(failed)?;
        let process: i64 = session.query_one("SELECT pg_backend_pid()").map_err(failed)?;
        let name = format!("{PREFIX}{process}");
        session
            .execute(&format!(
                "CREATE DATABASE {name} TEMPLATE {} CONNECTION LIMIT {CONNECTION_LIMIT_MARK}",
                quote_identifier(template)
            ))
            .map_err(failed)?;
        let mut connection = connection.clone();
        connection.database.clone_from(&name);
        Ok(Self { session, name, connection })
    }

    /// The connection to the copy.
    pub fn connection(&self) -> &ConnectParams {
        &self.connection
    }
}

impl Drop for DatabaseCopy {
    fn drop(&mut self) {
        // What can't be dropped now is by the next copy.
        let _ = drop_database(&mut self.session, &self.name);
    }
}

/// Drops the copies whose makers have gone.
fn drop_abandoned(session: &mut Session) -> Result<(), SessionError> {
    let names: Vec<String> = session.query(&format!(
        "SELECT datname FROM pg_database WHERE datconnlimit IN ({CONNECTION_LIMIT_MARK}, -2) \
         AND datname ~ '^{PREFIX}[0-9]+$' AND NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname <> pg_database.datname \
         AND pid = substr(pg_database.datname, {})::int AND pid <> pg_backend_pid())",
        PREFIX.len() + 1
    ))?;
    names.iter().try_for_each(|name| drop_database(session, name))
}

fn drop_database(session: &mut Session, name: &str) -> Result<(), SessionError> {
    let end = Instant::now() + SESSIONS_END_TIMEOUT;
    loop {
        let Err(error) = session.execute(&format!("DROP DATABASE IF EXISTS {name}")) else { return Ok(()) };
        let is_in_use = error.server_error().and_then(|error| error.code()) == Some(OBJECT_IN_USE);
        if !is_in_use || Instant::now() >= end {
            return Err(error);
        }
        // Sessions of a playback that was stopped.
        session.execute(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}",
            quote_literal(name)
        ))?;
        thread::sleep(RETRY_INTERVAL);
    }
}
