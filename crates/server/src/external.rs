//! A server that pgdyno does not own: it is queried, given databases and, if the user allows it, settings, and then
//! restored to its former state. It is never started, restarted or stopped.
//!
//! Settings are written to the server by `ALTER SYSTEM`. Before that a journal of what to restore is written to disk;
//! it is removed afterwards. If pgdyno is killed in between, the next one finds it ([`restore_settings`]).

mod connect;
mod databases;
mod interrupt;
mod journal;
mod processes;
mod restore;
mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use model::dataset::DatasetSource;
use model::environment::ServerFacts;
use model::message::Connection;
use model::record::Setting;
use model::server::Dsn;
use model::version::Major;
use model::workload::{Statement, Transport};
use wire::blocking::Session;

use crate::control::Control;
use crate::dataset::content::Content;
use crate::error::Error;
use crate::readiness::Warmed;
use connect::Route;
pub use connect::transport;
use host::Cache;
use host::Progress;
use host::process::wait_until;
use journal::{Change, Identity, Journal, JournalFile};
pub use restore::{Restoration, restore_settings};
pub use settings::RestoredSettings;

/// Advisory lock in the database `postgres` of a server that pgdyno uses: "pgdyno" in ASCII.
const ADVISORY_LOCK: i64 = 0x7067_6479_6e6f;
/// Time limit for the sessions of a killed pgdyno to end.
const SESSIONS_END_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of a server to answer the session that locks it.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// A running server that pgdyno does not own. While this lives no other pgdyno uses it; dropping it restores its
/// settings.
pub struct ExternalServer {
    name: String,
    route: Route,
    identity: Identity,
    can_change_settings: bool,
    /// Process id of its first process, if that is on this machine and known.
    postmaster: Option<u32>,
    journal_file: JournalFile,
    /// Settings changed by this process.
    changed: Vec<Change>,
    /// Holds the advisory lock; none while it reconnects.
    session: Option<Session>,
}

impl fmt::Debug for ExternalServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalServer").field("display_name", &self.display_name()).finish_non_exhaustive()
    }
}

impl ExternalServer {
    /// Connects to a server, given by a connection string as in libpq (including the environment, service and password
    /// files), whose database is ignored. Settings that a killed pgdyno has left on it are restored first, which is
    /// reported to `progress`.
    ///
    /// # Errors
    /// The connection string can't be used; the server refuses the connection, is a standby, older than 9.6, or used by
    /// another pgdyno; settings can't be restored.
    pub fn connect(cache: &Cache, name: &str, dsn: &Dsn, progress: &dyn Progress) -> Result<Self, Error> {
        let (server, restored) = Self::connect_to(cache, name, dsn, None)?;
        if let Some(restored) = restored {
            let server = server.display_name();
            progress.notice(&format!("the server {server}: settings of a killed pgdyno: {restored}"));
        }
        Ok(server)
    }

    /// Like `connect`, with the journal file of a key if the caller has locked it; also returns what was restored.
    fn connect_to(
        cache: &Cache,
        name: &str,
        dsn: &Dsn,
        locked: Option<(&str, JournalFile)>,
    ) -> Result<(Self, Option<RestoredSettings>), Error> {
        let mut route = Route::resolve(name, dsn)?;
        let mut session = route.control.session()?;
        route.control.major = check_usable(&route.control, &mut session)?;
        let identity =
            Identity { system: system_identifier(&mut session), host: route.host.clone(), port: route.port };
        let key = identity.key();
        let journal_file = match locked {
            Some((locked_key, file)) if locked_key == key => Some(file),
            _ => JournalFile::try_lock(cache, &key)?,
        };
        let journal_file =
            journal_file.ok_or_else(|| in_use(&route.control, "another pgdyno on this machine"))?;
        lock(&route.control, &mut session)?;
        let journal = journal_file.read()?;
        let mut server = Self {
            name: name.to_owned(),
            postmaster: processes::postmaster(&mut session),
            changed: journal.map(|journal| journal.settings).unwrap_or_default(),
            route,
            identity,
            can_change_settings: dsn.can_change_settings,
            journal_file,
            session: Some(session),
        };
        let restored = if server.changed.is_empty() { None } else { Some(server.restore_settings()?) };
        Ok((server, restored))
    }

    /// Connects again if the session that locks the server was lost, as after a restart. Databases and settings are
    /// unchanged.
    ///
    /// # Errors
    /// As [`ExternalServer::connect`]; another server runs at this address now.
    pub fn reconnect(&mut self) -> Result<(), Error> {
        let is_alive = |session: &mut Session| session.execute("SELECT").is_ok();
        if self.session.as_mut().is_some_and(is_alive) {
            return Ok(());
        }
        // Its end frees the lock, if the server has not noticed the loss.
        self.session = None;
        let mut session = self.route.control.session()?;
        self.route.control.major = check_usable(&self.route.control, &mut session)?;
        lock(&self.route.control, &mut session)?;
        self.identity.check(system_identifier(&mut session), self.display_name())?;
        self.postmaster = processes::postmaster(&mut session);
        self.session = Some(session);
        Ok(())
    }

    /// Its name and address, without secrets.
    pub fn display_name(&self) -> &str {
        &self.route.control.display_name
    }

    /// Process id of its first process, if it runs on this machine and was identified.
    pub fn pid(&self) -> Option<u32> {
        self.postmaster
    }

    /// Whether it is reached at this machine, but its processes are not known: it may run in a container, or be
    /// forwarded to another machine.
    pub fn has_hidden_processes(&self) -> bool {
        self.postmaster.is_none() && self.route.is_local()
    }

    /// Its `server_version`, such as `18.1`, and what `version()` prints.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn version(&self) -> Result<(String, String), Error> {
        self.route.control.version()
    }

    /// Size of the tested database in bytes.
    ///
    /// # Errors
    /// The server does not answer, or has no such database.
    pub fn database_bytes(&self) -> Result<u64, Error> {
        self.route.control.database_bytes()
    }

    /// Every setting in force that the role may see, by name.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn settings(&self) -> Result<Vec<Setting>, Error> {
        self.route.control.settings()
    }

    /// `xact_commit` of the tested database, complete for all connections that have ended: waits until the database has
    /// none, and the count has settled. The wait ends immediately if the count is `expected`.
    ///
    /// # Errors
    /// The server does not answer, or clients stay connected.
    pub fn commits(&self, expected: Option<u64>) -> Result<u64, Error> {
        self.route.control.commits(expected)
    }

    /// Clients' connection to the tested database. Includes the password, if there is one: for the driver alone.
    ///
    /// # Errors
    /// The connection string leads to the server by another transport.
    pub fn connection(&self, transport: Transport) -> Result<Connection, Error> {
        self.route.connection(transport)
    }

    /// pgdyno's own connection to a database. Includes the password, if there is one.
    pub fn own_connection(&self, database: &str) -> Connection {
        self.route.own_connection(database)
    }

    /// Creates a template, the database `pgdyno_scale_<N>` (with a workload's setup `pgdyno_scale_<N>_<its key>`), if
    /// missing; of a dump or another database, `own`, it is `pgdyno_dump_<key>` or `pgdyno_template_<key>`.
    ///
    /// # Errors
    /// The role may not, the disk is full, or a database of that name is not pgdyno's; a scale that pgbench does not
    /// have; `own` can't be restored or copied; the user wants to stop: the running statement is cancelled then, and a
    /// database that is not complete is dropped.
    pub fn prepare(
        &self,
        content: &Content,
        own: Option<&DatasetSource>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        self.route.control.make_template(content, own, progress)
    }

    /// Makes the tested database a copy of a template, in its initial state: its former content is dropped, and its
    /// count of commits restarts.
    ///
    /// # Errors
    /// As [`ExternalServer::prepare`]; sessions stay connected; there is no such template.
    pub fn recreate_database(&self, content: &Content, progress: &dyn Progress) -> Result<(), Error> {
        self.route.control.copy_template(content, progress)
    }

    /// Runs a checkpoint. False if the role may not (superusers may, and from 15 on members of `pg_checkpoint`).
    ///
    /// # Errors
    /// The server does not answer.
    pub fn checkpoint(&self) -> Result<bool, Error> {
        self.route.control.checkpoint()
    }

    /// Facts about its build, extensions, authentication and tables. Queries run in the tested database, too, and count
    /// as commits there. A query that fails leaves no fact.
    pub fn facts(&self) -> ServerFacts {
        self.route.control.facts()
    }

    /// Runs a statement in the tested database. Returns the commits that it counts there, including the connection's
    /// own.
    ///
    /// # Errors
    /// The server refuses it, or does not answer.
    pub fn run(&self, statement: &str) -> Result<u64, Error> {
        self.route.control.run(statement)
    }

    /// Runs statements in the tested database, in one session and in order.
    ///
    /// # Errors
    /// There is no session; or a statement was refused, with its place and the cause: those after it do not run.
    pub fn run_all(&self, statements: &[Statement]) -> Result<(), Error> {
        self.route.control.run_all(statements)
    }

    /// Runs statements in the tested database, in one session that can only read. Returns the number that the last one returns.
    ///
    /// # Errors
    /// There is no session; a statement was refused, with its place and the cause; or the last one returns no number, or not
    /// one row.
    pub fn figure(&self, statements: &[Statement]) -> Result<f64, Error> {
        self.route.control.figure(statements)
    }

    /// Reads the tested database's tables and indexes into the server's buffers, as far as they fit.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn warm(&self) -> Result<Warmed, Error> {
        self.route.control.warm()
    }

    /// Sets these settings, and restores others that were set by this. They are in force for new sessions.
    ///
    /// # Errors
    /// The user has not allowed it; a setting needs a restart, is rejected by the server, or is overridden by another
    /// source; the journal can't be written. All settings are then restored, unless the error states otherwise.
    pub fn set(&mut self, settings: &BTreeMap<String, String>) -> Result<(), Error> {
        if !settings.is_empty() && !self.can_change_settings {
            return Err(Error::External {
                server: self.route.control.display_name.clone(),
                why: format!(
                    "pgdyno does not own it, and may not change its settings ({}); to allow it, put allow_settings = \
                     true into [servers.{}]: they are restored afterwards",
                    settings.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
                    self.name
                ),
            });
        }
        let is_set = |(name, value): (&String, &String)| {
            self.changed.iter().any(|change| change.name.eq_ignore_ascii_case(name) && change.set == *value)
        };
        if self.changed.len() == settings.len() && settings.iter().all(is_set) {
            return Ok(());
        }
        self.restore_settings()?;
        if settings.is_empty() {
            return Ok(());
        }
        let changes = self.route.control.changes(settings)?;
        let journal = Journal::new(&self.name, &self.route.conninfo, &self.identity, changes.clone());
        self.journal_file.write(&journal)?;
        self.changed = changes;
        self.route.control.change(&self.changed).map_err(|error| match self.restore_settings() {
            Ok(_) => error,
            Err(further) => Error::External {
                server: self.route.control.display_name.clone(),
                why: format!("{error}; then settings could not be restored: {further}"),
            },
        })
    }

    /// Restores all settings that [`ExternalServer::set`] has changed. Those changed by others meanwhile are left
    /// alone, and reported.
    ///
    /// # Errors
    /// The server does not answer, or the role no longer may: the journal then remains for [`restore_settings`].
    pub fn restore_settings(&mut self) -> Result<RestoredSettings, Error> {
        if self.changed.is_empty() {
            return Ok(RestoredSettings::default());
        }
        let restored = self.route.control.restore_settings(&self.changed)?;
        self.journal_file.remove()?;
        self.changed.clear();
        if !restored.left.is_empty() {
            tracing::warn!("the server {}: {restored}", self.display_name());
        }
        Ok(restored)
    }

    /// Drops the databases that pgdyno has created on it: the tested one, and every template. Returns their names.
    ///
    /// # Errors
    /// The role may not, or sessions stay connected.
    pub fn drop_databases(&self) -> Result<Vec<String>, Error> {
        self.route.control.drop_own_databases()
    }
}

impl Drop for ExternalServer {
    fn drop(&mut self) {
        if let Err(error) = self.restore_settings() {
            // The journal remains.
            tracing::warn!("settings were not restored ({error}); `pgdyno server restore` tries again");
        }
    }
}

/// Checks that a server has a database to be copied.
///
/// # Errors
/// It has not: [`Error::NoDatabase`]; it can't be reached.
pub fn check_template(name: &str, dsn: &Dsn, database: &str) -> Result<(), Error> {
    let route = Route::resolve(name, dsn)?;
    route.control.check_exists(&mut route.control.session()?, database)
}

/// Checks that this server can be measured; returns its major.
fn check_usable(control: &Control, session: &mut Session) -> Result<Major, Error> {
    let refuse = |why: &str| Error::External { server: control.display_name.clone(), why: why.to_owned() };
    let (number, is_standby): (u32, bool) = session
        .query_one("SELECT current_setting('server_version_num'), pg_is_in_recovery()")
        .map_err(|error| control.error("query the version", &error))?;
    let major = Major::from_number(number);
    if major < Major::from_number(90_600) {
        return Err(refuse("it is older than PostgreSQL 9.6, the oldest version that pgdyno supports"));
    }
    if is_standby {
        return Err(refuse("it is a standby, on which no data set can be created; connect to its primary"));
    }
    Ok(major)
}

/// Two pgdyno processes, even on different machines, would measure each other.
fn lock(control: &Control, session: &mut Session) -> Result<(), Error> {
    session.set_timeout(RESPONSE_TIMEOUT).map_err(|error| control.error("set a time limit", &error))?;
    let mut failure = None;
    let locked = wait_until(SESSIONS_END_TIMEOUT, || {
        match session.query_one(&format!("SELECT pg_try_advisory_lock({ADVISORY_LOCK})")) {
            Ok(locked) => locked,
            Err(error) => {
                failure = Some(error);
                true
            }
        }
    });
    match failure {
        Some(error) => Err(control.error("lock it against other pgdyno processes", &error)),
        None if locked => Ok(()),
        None => Err(in_use(control, "another pgdyno")),
    }
}

fn in_use(control: &Control, by: &str) -> Error {
    Error::InUse { what: format!("the server {}", control.display_name), by: by.to_owned() }
}

/// None if the role may not query it.
fn system_identifier(session: &mut Session) -> Option<String> {
    session.query_one("SELECT system_identifier FROM pg_control_system()").ok()
}
