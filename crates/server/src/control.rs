//! The way to a server for what pgdyno itself asks of it: beside the load, through the database `postgres`.

use model::workload::Statement;
use postgres::Client;
use postgres::config::SslMode;
use postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Major;
use crate::error::{Error, sql_text};

/// How to connect to a server, and how to speak of it.
#[derive(Clone)]
pub(crate) struct Control {
    pub(crate) config: postgres::Config,
    pub(crate) tls: Option<MakeRustlsConnect>,
    /// With and without TLS, in the order to try.
    pub(crate) ssl_modes: Vec<SslMode>,
    /// The server in errors: where its data are, or its name and address.
    pub(crate) called: String,
    /// The server in steps of progress.
    pub(crate) title: String,
    pub(crate) major: Major,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("called", &self.called).finish_non_exhaustive()
    }
}

impl Control {
    /// A session with the database `postgres`.
    pub(crate) fn session(&self) -> Result<Client, Error> {
        self.connect("postgres")
    }

    pub(crate) fn connect(&self, database: &str) -> Result<Client, Error> {
        let mut failures: Vec<String> = Vec::new();
        for mode in &self.ssl_modes {
            let mut config = self.config.clone();
            config.dbname(database).ssl_mode(*mode);
            let connected = match &self.tls {
                Some(tls) => config.connect(tls.clone()),
                None => config.connect(postgres::NoTls),
            };
            match connected {
                Ok(client) => return Ok(client),
                Err(error) => failures.push(sql_text(&error)),
            }
        }
        failures.dedup();
        Err(self.failed(format!("connect to the database {database}"), failures.join("; ")))
    }

    pub(crate) fn execute(&self, client: &mut Client, statement: &str) -> Result<(), Error> {
        client.batch_execute(statement).map_err(|error| self.error(format!("run \"{statement}\""), &error))
    }

    /// Runs statements in the tested database, in one session and in their order, up to one that is refused: its place,
    /// and why.
    pub(crate) fn run_all(&self, statements: &[Statement]) -> Result<(), String> {
        let mut session = self.connect(crate::DATABASE).map_err(|error| error.to_string())?;
        let said = |error: &postgres::Error| match error.as_db_error() {
            Some(refused) => refused.message().to_owned(),
            None => sql_text(error),
        };
        for Statement { place, sql } in statements {
            session.batch_execute(sql).map_err(|error| format!("{place}: {}", said(&error)))?;
        }
        Ok(())
    }

    /// Has the server write everything down. False where the role may not.
    pub(crate) fn checkpoint(&self) -> Result<bool, Error> {
        match self.session()?.batch_execute("checkpoint") {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(false),
            Err(error) => Err(self.error("run a checkpoint", &error)),
        }
    }

    /// An error of something that was asked.
    pub(crate) fn error(&self, doing: impl Into<String>, error: &postgres::Error) -> Error {
        self.failed(doing, sql_text(error))
    }

    pub(crate) fn failed(&self, doing: impl Into<String>, why: String) -> Error {
        Error::Sql { doing: doing.into(), server: self.called.clone(), why }
    }
}
