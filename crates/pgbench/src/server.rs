//! pgbench's own connection: for an initialization, and for queries and statements before a benchmark.

use std::env;
use std::fmt;
use std::io::{self, Write};

use model::version::server_version_num;
use wire::blocking::{Session, SessionError};
use wire::{ConnectParams, Given, ParamError};

use crate::console::Console;
use crate::message::Fatal;
use crate::options::Connection;
use crate::password;

/// A session with a server.
pub(crate) struct Server {
    session: Session,
    params: ConnectParams,
    console: Console,
}

/// An error of the server, or of the connection to it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) sqlstate: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Failure {
    /// An error in libpq's words; `sql` is the statement that failed.
    fn new(error: &SessionError, sql: &str) -> Self {
        let server = error.server_error();
        let text = server.map_or_else(|| error.to_string(), |server| server.libpq_text(Some(sql)));
        Self { text, sqlstate: server.and_then(|server| server.code()).map(str::to_owned) }
    }

    /// The error that ends pgbench because of this one.
    pub(crate) fn fatal(&self, sql: &str) -> Fatal {
        Fatal::new(format_args!("query failed: {self}")).detail(format_args!("Query was: {sql}"))
    }
}

impl Server {
    /// Connects; prompts for a password if the server wants one and none is set.
    pub(crate) fn connect(connection: &Connection, console: &Console) -> Result<Self, Failure> {
        let mut params = resolve(connection, None, console)?;
        let mut prompted = false;
        loop {
            match Session::connect(&params) {
                Ok(mut session) => {
                    let notices = console.clone();
                    session.on_notice(move |notice| notices.plain(&notice.libpq_text(None)));
                    return Ok(Self { session, params, console: console.clone() });
                }
                Err(error) if error.needs_password() && !prompted => {
                    prompted = true;
                    let Some(password) = password::prompt(console) else {
                        return Err(Failure::new(&error, ""));
                    };
                    params = resolve(connection, Some(&password), console)?;
                }
                Err(error) => return Err(Failure::new(&error, "")),
            }
        }
    }

    /// Closes the session and returns its connection parameters.
    pub(crate) fn close(self) -> ConnectParams {
        self.params
    }

    /// A function that cancels the running statement, from any thread.
    pub(crate) fn cancel(&self) -> impl Fn() + Send + 'static {
        let params = self.params.clone();
        let sql = format!("select pg_catalog.pg_cancel_backend({})", self.session.info().process_id);
        move || {
            // If that fails, the next signal ends the program.
            let _ = Session::connect(&params).and_then(|mut session| session.execute(&sql));
        }
    }

    /// Runs a statement; an error ends pgbench.
    pub(crate) fn execute(&mut self, sql: &str) -> Result<(), Fatal> {
        self.session.execute(sql).map_err(|error| Failure::new(&error, sql).fatal(sql))
    }

    /// Runs a statement; an error is printed and ignored.
    pub(crate) fn try_execute(&mut self, sql: &str) {
        if let Err(error) = self.session.execute(sql) {
            self.console.error(Failure::new(&error, sql));
            self.console.detail("(ignoring this error and continuing anyway)");
        }
    }

    /// Runs a query and returns its rows.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        self.session.query(sql).map_err(|error| Failure::new(&error, sql))
    }

    /// Runs a `COPY … FROM STDIN` with the data that `write` writes.
    pub(crate) fn copy_in(
        &mut self,
        sql: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Fatal> {
        self.session.copy_in(sql, |out| write(out)).map_err(|error| Failure::new(&error, sql).fatal(sql))
    }

    /// The version as a number, 180001 for 18.1; 0 if the server does not report it.
    pub(crate) fn version_number(&self) -> u32 {
        self.session.server_version().and_then(server_version_num).unwrap_or_default()
    }

    /// The version as the server reports it.
    pub(crate) fn version(&self) -> &str {
        self.session.server_version().unwrap_or("unknown")
    }

    pub(crate) fn database(&self) -> &str {
        &self.params.database
    }

    /// Host and port for messages: those of the first of several hosts.
    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        self.params.hosts.first().map_or(("", 0), |host| (&host.host, host.port))
    }
}

/// Connection parameters from the options and libpq's other sources.
fn resolve(
    connection: &Connection,
    password: Option<&str>,
    console: &Console,
) -> Result<ConnectParams, Failure> {
    let environment = |name: &str| env::var(name).ok();
    let refused = |error: ParamError| Failure { text: error.to_string(), sqlstate: None };
    let Connection { host, port, user, database } = connection;
    // In pgbench, the user given by an option is not the default database.
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
        console.plain(&(warning + "\n"));
    }
    Ok(resolved.params)
}
