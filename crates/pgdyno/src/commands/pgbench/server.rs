//! A connection of pgbench's own: for the initialization, and for what is asked and done before a run.

use std::env;
use std::fmt;
use std::io::{self, Write};

use wire::blocking::{Session, SessionError};
use wire::{ConnectParams, Given, ParamError};

use super::message::{self, Fatal};
use super::options::Connection;
use super::password;

/// A session with a server.
pub(super) struct Server {
    session: Session,
    params: ConnectParams,
}

/// What the server, or the way to it, refused.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) text: String,
    pub(super) sqlstate: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Failure {
    /// In libpq's words; `sql` is what was to be done.
    fn of(error: &SessionError, sql: &str) -> Self {
        let said = error.server_error();
        let text = said.map_or_else(|| error.to_string(), |said| said.libpq_text(Some(sql)));
        Self { text, sqlstate: said.and_then(|said| said.code()).map(str::to_owned) }
    }

    /// As the end of everything.
    pub(super) fn fatal(&self, sql: &str) -> Fatal {
        Fatal::new(format_args!("query failed: {self}")).detail(format_args!("Query was: {sql}"))
    }
}

impl Server {
    /// Connects, asking for a password where the server wants one and none is given.
    pub(super) fn connect(connection: &Connection) -> Result<Self, Failure> {
        let mut params = resolve(connection, None)?;
        let mut asked = false;
        loop {
            match Session::connect(&params) {
                Ok(mut session) => {
                    session.on_notice(|notice| message::plain(&notice.libpq_text(None)));
                    return Ok(Self { session, params });
                }
                Err(error) if error.needs_password() && !asked => {
                    asked = true;
                    let Some(password) = password::ask() else { return Err(Failure::of(&error, "")) };
                    params = resolve(connection, Some(&password))?;
                }
                Err(error) => return Err(Failure::of(&error, "")),
            }
        }
    }

    /// Ends the session; what is left is how to get another one.
    pub(super) fn close(self) -> ConnectParams {
        self.params
    }

    /// What cancels the statement that runs, from any thread.
    pub(super) fn cancel(&self) -> impl Fn() + Send + 'static {
        let params = self.params.clone();
        let sql = format!("select pg_catalog.pg_cancel_backend({})", self.session.begun().process_id);
        move || {
            // Where that fails, the next signal ends the program.
            let _ = Session::connect(&params).and_then(|mut session| session.execute(&sql));
        }
    }

    /// Runs a statement; that it fails is the end of everything.
    pub(super) fn execute(&mut self, sql: &str) -> Result<(), Fatal> {
        self.session.execute(sql).map_err(|error| Failure::of(&error, sql).fatal(sql))
    }

    /// Runs a statement; that it fails is told, and no more.
    pub(super) fn try_execute(&mut self, sql: &str) {
        if let Err(error) = self.session.execute(sql) {
            message::error(Failure::of(&error, sql));
            message::detail("(ignoring this error and continuing anyway)");
        }
    }

    /// The rows that a statement returns.
    pub(super) fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        self.session.query(sql).map_err(|error| Failure::of(&error, sql))
    }

    /// Runs a `COPY … FROM STDIN` of what is written.
    pub(super) fn copy_in(
        &mut self,
        sql: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Fatal> {
        self.session.copy_in(sql, |out| write(out)).map_err(|error| Failure::of(&error, sql).fatal(sql))
    }

    /// As `180001` for 18.1; 0 where the server does not say.
    pub(super) fn version_number(&self) -> u32 {
        self.session.server_version()
    }

    /// As the server says it.
    pub(super) fn version(&self) -> &str {
        self.session.begun().parameter("server_version").unwrap_or("unknown")
    }

    pub(super) fn database(&self) -> &str {
        &self.params.database
    }

    /// For messages; with several hosts those of the first.
    pub(super) fn host_and_port(&self) -> (&str, u16) {
        self.params.hosts.first().map_or(("", 0), |host| (&host.host, host.port))
    }
}

/// From what the options say and libpq's other sources.
fn resolve(connection: &Connection, password: Option<&str>) -> Result<ConnectParams, Failure> {
    let environment = |name: &str| env::var(name).ok();
    let refused = |error: ParamError| Failure { text: error.to_string(), sqlstate: None };
    let Connection { host, port, user, database } = connection;
    // pgbench does not take the database from the user that is given with an option.
    let from_environment = |name| environment(name).filter(|value| !value.is_empty());
    let database = match database.clone().or_else(|| from_environment("PGDATABASE")) {
        Some(database) => database,
        None => match from_environment("PGUSER") {
            Some(user) => user,
            None => ConnectParams::resolve(&Given::new(), &|_: &str| None).map_err(refused)?.params.user,
        },
    };
    let mut given = Given::new();
    let values = [
        ("host", host.as_deref()),
        ("port", port.as_deref()),
        ("user", user.as_deref()),
        ("password", password),
        ("dbname", Some(&*database)),
        ("fallback_application_name", Some("pgbench")),
    ];
    for (keyword, value) in values {
        given.set(keyword, value.unwrap_or_default());
    }
    let resolved = ConnectParams::resolve(&given, &environment).map_err(refused)?;
    for warning in resolved.warnings {
        message::plain(&(warning + "\n"));
    }
    Ok(resolved.params)
}
