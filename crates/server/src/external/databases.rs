//! Databases that pgdyno creates on a server that it does not own: a template of each content, and the tested database,
//! a copy of one.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use model::dataset::{CONNECTION_LIMIT_MARK, DatasetSource};
use model::version::Major;
use serde::{Deserialize, Serialize};
use wire::blocking::Session;
use wire::{quote_identifier, quote_literal};

use crate::control::{Control, INSUFFICIENT_PRIVILEGE, sqlstate};
use crate::dataset::content::Content;
use crate::dataset::fill::{Dump, fill};
use crate::dataset::own::check_unchanged;
use crate::error::{Error, sql_text};

use crate::DATABASE;
use host::Progress;

/// Version of the template format; templates of older ones are recreated.
const FORMAT: u32 = 1;
/// SQLSTATEs of statements on databases: object_in_use, duplicate_database, unique_violation.
const OBJECT_IN_USE: &str = "55006";
const DUPLICATE_DATABASE: &str = "42P04";
const UNIQUE_VIOLATION: &str = "23505";
/// Time limit for ending sessions to leave a database.
const SESSIONS_END_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for dropping a database that is not complete. The server waits 5 s for other sessions to leave it.
const DROP_TIMEOUT: Duration = Duration::from_secs(20);

/// Comment on a database of pgdyno's, once it is complete.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    made_by: String,
    format: u32,
    scale: u32,
    made: Timestamp,
}

/// Name of the template of a content.
pub(super) fn template(content: &Content) -> String {
    let setup = content.key().map(|key| format!("_{key}")).unwrap_or_default();
    format!("{DATABASE}_{}{setup}", content.origin().replace('-', "_"))
}

/// SQL condition: whether a row of `pg_database` is pgdyno's. A server that ended while it dropped a database leaves it
/// with the connection limit -2; then the comment decides.
fn is_ours() -> String {
    format!(
        "(datconnlimit = {CONNECTION_LIMIT_MARK} OR datconnlimit = -2 \
         AND coalesce(shobj_description(oid, 'pg_database'), '') LIKE '{{\"made_by\":\"pgdyno\",%')"
    )
}

impl Control {
    /// Creates the template of a content, if there is none.
    pub(super) fn make_template(
        &self,
        content: &Content,
        own: Option<&DatasetSource>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let scale = content.scale;
        let name = template(content);
        let mut session = self.session()?;
        if let Some(record) = self.own_database(&mut session, &name)? {
            if let Some(record) = record.filter(|record| record.format == FORMAT && record.scale == scale) {
                if let Some(DatasetSource::Template(database)) = own {
                    progress.notice(&format!(
                        "{}: trials run on the copy of the database {database} of {:.0}; to copy it again, drop that one: \
                         DROP DATABASE {name}",
                        self.title, record.made
                    ));
                }
                return Ok(());
            }
            // It was never completed, or has another format.
            self.drop_database(&mut session, &name)?;
        }
        progress.step(&format!("{}, {content}: creating", self.title), 0, None);
        let (template, dump) = match own {
            Some(DatasetSource::Template(database)) => {
                self.check_exists(&mut session, database)?;
                (database.as_str(), None)
            }
            Some(DatasetSource::Dump(path) | DatasetSource::BaseBackup { directory: path, .. }) => {
                ("template0", Some(Dump { path, programs: None }))
            }
            None => ("template0", None),
        };
        check_unchanged(content, own, progress)?;
        self.while_wanted(progress, |control| {
            control.create(&mut control.session()?, &name, template)?;
            fill(control, &name, content, dump, progress)
        })
        .inspect_err(|_| self.drop_incomplete(&name, progress))?;
        self.comment(&mut session, &name, scale)?;
        // No session can change it, or prevent it from being copied.
        self.execute(&mut session, &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
    }

    /// Makes the tested database a fresh copy of the template of a content.
    pub(super) fn copy_template(&self, content: &Content, progress: &dyn Progress) -> Result<(), Error> {
        self.while_wanted(progress, |control| {
            let mut session = control.session()?;
            if control.own_database(&mut session, DATABASE)?.is_some() {
                control.drop_database(&mut session, DATABASE)?;
            }
            control.create(&mut session, DATABASE, &template(content))?;
            control.comment(&mut session, DATABASE, content.scale)
        })
    }

    /// Drops every database of pgdyno's; returns their names.
    pub(super) fn drop_own_databases(&self) -> Result<Vec<String>, Error> {
        let mut session = self.session()?;
        let names: Vec<String> = session
            .query(&format!(
                "SELECT datname FROM pg_database WHERE {} \
                 AND datname ~ '^{DATABASE}((_scale_[0-9]+|_(dump|template)_[0-9a-f]{{8}})(_[0-9a-f]{{8}})?)?$' ORDER BY datname",
                is_ours()
            ))
            .map_err(|error| self.error("query the databases", &error))?;
        for name in &names {
            self.drop_database(&mut session, name)?;
        }
        Ok(names)
    }

    /// A database of pgdyno's, with its record if it is complete.
    ///
    /// # Errors
    /// A database of this name belongs to somebody else.
    fn own_database(&self, session: &mut Session, name: &str) -> Result<Option<Option<Record>>, Error> {
        let row: Option<(bool, bool, Option<String>)> = session
            .query_opt(&format!(
                "SELECT {}, datconnlimit <> -2, shobj_description(oid, 'pg_database') FROM pg_database \
                 WHERE datname = {}",
                is_ours(),
                quote_literal(name)
            ))
            .map_err(|error| self.error("query the databases", &error))?;
        let Some((is_ours, is_complete, comment)) = row else { return Ok(None) };
        if !is_ours {
            return Err(Error::External {
                server: self.display_name.clone(),
                why: format!(
                    "it has a database {name} that pgdyno did not create and therefore does not change; \
                     rename it (ALTER DATABASE {name} RENAME TO …), drop it, or measure on another server"
                ),
            });
        }
        Ok(Some(comment.filter(|_| is_complete).and_then(|comment| serde_json::from_str(&comment).ok())))
    }

    /// Refuses to copy a database that does not exist.
    pub(super) fn check_exists(&self, session: &mut Session, database: &str) -> Result<(), Error> {
        let query = "SELECT datname FROM pg_database WHERE NOT datistemplate ORDER BY datname";
        let known: Vec<String> =
            session.query(query).map_err(|error| self.error("query the databases", &error))?;
        if known.iter().any(|name| name == database) {
            return Ok(());
        }
        let server = format!("the server {}", self.display_name);
        Err(Error::NoDatabase { server, database: database.to_owned(), known })
    }

    fn comment(&self, session: &mut Session, name: &str, scale: u32) -> Result<(), Error> {
        let record = Record { made_by: "pgdyno".to_owned(), format: FORMAT, scale, made: Timestamp::now() };
        let text = serde_json::to_string(&record)
            .map_err(|error| self.failed("describe a database", error.to_string()))?;
        self.execute(session, &format!("COMMENT ON DATABASE {name} IS {}", quote_literal(&text)))
    }

    fn create(&self, session: &mut Session, name: &str, template: &str) -> Result<(), Error> {
        // From 15 on the default is to copy block by block through WAL; copying files is faster, and syncs them.
        let strategy = if self.major >= Major::new(15) { " STRATEGY file_copy" } else { "" };
        let statement = format!(
            "CREATE DATABASE {name} TEMPLATE {} CONNECTION LIMIT {CONNECTION_LIMIT_MARK}{strategy}",
            quote_identifier(template)
        );
        self.run_when_unused(session, template, &statement, |session| {
            // The server may just have completed what a killed pgdyno started.
            match self.own_database(session, name)? {
                Some(_) => self.drop_database(session, name),
                None => Ok(()),
            }
        })
    }

    /// Drops a database of pgdyno's that is not complete, if it exists; reports one that remains.
    fn drop_incomplete(&self, name: &str, progress: &dyn Progress) {
        let dropped = self.session().and_then(|mut session| {
            // The user may be waiting. The server goes on without the session.
            let limited = session.set_timeout(DROP_TIMEOUT);
            limited.map_err(|error| self.error("set a time limit", &error))?;
            match self.own_database(&mut session, name)? {
                Some(_) => self.execute(&mut session, &format!("DROP DATABASE {name}")),
                None => Ok(()),
            }
        });
        if let Err(error) = dropped {
            progress.notice(&format!(
                "{}: the database {name}, which is not complete, may remain: {error}; the next run replaces it, and                  DROP DATABASE {name} removes it",
                self.title
            ));
        }
    }

    fn drop_database(&self, session: &mut Session, name: &str) -> Result<(), Error> {
        self.run_when_unused(session, name, &format!("DROP DATABASE IF EXISTS {name}"), |_| Ok(()))
    }

    /// Runs a statement that needs a database without sessions. `if_exists` is called if the database to create exists.
    fn run_when_unused(
        &self,
        session: &mut Session,
        database: &str,
        statement: &str,
        if_exists: impl Fn(&mut Session) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let end = Instant::now() + SESSIONS_END_TIMEOUT;
        loop {
            let Err(error) = session.execute(statement) else { return Ok(()) };
            let refuse = |why: String| Error::External { server: self.display_name.clone(), why };
            match sqlstate(&error) {
                // The server itself has waited some seconds.
                Some(OBJECT_IN_USE) if Instant::now() < end => {}
                Some(OBJECT_IN_USE) => {
                    return Err(refuse(format!(
                        "the database {database} is in use by {}, and can be copied or dropped only without sessions; end \
                         them, then try again",
                        self.sessions(session, database)?
                    )));
                }
                Some(DUPLICATE_DATABASE | UNIQUE_VIOLATION) if Instant::now() < end => {
                    if_exists(session)?;
                }
                Some(INSUFFICIENT_PRIVILEGE) => {
                    let role = self.user();
                    return Err(refuse(format!(
                        "could not run \"{statement}\": {}; the role must have the attribute CREATEDB and own \
                         pgdyno's databases and the one that is copied: ALTER ROLE \"{role}\" CREATEDB",
                        sql_text(&error)
                    )));
                }
                _ => return Err(self.error(format!("run \"{statement}\""), &error)),
            }
        }
    }

    fn sessions(&self, session: &mut Session, database: &str) -> Result<String, Error> {
        let sessions: Vec<(u32, String, String)> = session
            .query(&format!(
                "SELECT pid, coalesce(usename, '?'), application_name FROM pg_stat_activity \
                 WHERE datname = {} ORDER BY pid",
                quote_literal(database)
            ))
            .map_err(|error| self.error("query the connections", &error))?;
        let sessions: Vec<String> = sessions
            .iter()
            .map(|(pid, role, application)| format!("process {pid} of role {role} ({application})"))
            .collect();
        Ok(sessions.join(", "))
    }
}
