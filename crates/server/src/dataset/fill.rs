//! Filling the tested database: with pgbench's tables, in pgbench's order of steps (create, load, vacuum, primary
//! keys), with those of the star schema, and with a workload's setup.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};

use model::workload::Statement;
use wire::blocking::{Session, SessionError};

use crate::control::Control;
use crate::dataset::content::{Content, Setup};
use crate::dataset::dump;
use crate::dataset::pgbench_tables::{
    COPY_HEADER, COPY_TRAILER, Encoder, MAX_SCALE, Table, VACUUM_ORDER, create_tables,
};
use crate::dataset::star_tables::fill_star_tables;
use crate::error::{Error, sql_text};
use crate::programs::installation::Installation;
use crate::server::Server;
use host::{Progress, check_interrupted};
use std::path::Path;

/// Rows per message, some 200 kB.
const CHUNK_ROWS: u64 = 10_000;

/// Settings of the server during the load. Its data are synced as a whole afterwards.
pub(crate) fn load_settings(segment_bytes: u64) -> BTreeMap<String, String> {
    let megabytes = |segments| format!("{}MB", segments * segment_bytes / (1 << 20));
    [
        // Commits stay synchronous: vacuum can't mark rows as visible to all while their commit is not flushed.
        ("fsync", "off"),
        ("full_page_writes", "off"),
        // Little WAL, and few WAL segments left in the template.
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_wal_size", &megabytes(4)),
        ("min_wal_size", &megabytes(2)),
        ("checkpoint_timeout", "1h"),
        ("autovacuum", "off"),
        ("shared_buffers", "256MB"),
        ("maintenance_work_mem", "256MB"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// # Errors
/// A scale that pgbench does not have.
pub(crate) fn check_scale(scale: u32) -> Result<(), Error> {
    match scale {
        1..=MAX_SCALE => Ok(()),
        _ => Err(Error::Scale { scale, max: MAX_SCALE }),
    }
}

impl Server {
    /// Creates the tested database and fills it: with pgbench's tables, as `pgbench -i` of the same major does, then
    /// with a workload's setup.
    ///
    /// # Errors
    /// A scale that pgbench does not have; the database exists; a statement of the setup is refused; the server fails,
    /// for example because its disk is full; the user wants to stop.
    pub fn fill(&self, content: &Content, progress: &dyn Progress) -> Result<(), Error> {
        self.fill_from(content, None, progress)
    }

    /// As [`Server::fill`], with the dump of content of the user's own.
    pub(crate) fn fill_from(
        &self,
        content: &Content,
        dump: Option<Dump<'_>>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let control = &self.control;
        check_scale(content.scale)?;
        control.execute(&mut control.session()?, &format!("create database {}", crate::DATABASE))?;
        fill(control, crate::DATABASE, content, dump, progress)
    }
}

/// Fills a database.
pub(crate) fn fill(
    server: &Control,
    database: &str,
    content: &Content,
    dump: Option<Dump<'_>>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    check_scale(content.scale)?;
    if content.has_pgbench_tables() {
        fill_pgbench_tables(server, database, content.scale, progress)?;
    }
    if content.setup.as_ref().is_some_and(|setup| setup.star_tables) {
        fill_star_tables(server, database, content.scale, progress)?;
    }
    if let Some(Dump { path, programs }) = dump {
        let what = format!("{}, {content}: restoring", server.title);
        dump::restore(server, database, path, programs, &what, progress)?;
        if content.setup.is_none() {
            progress.step(&format!("{}, {content}: vacuum", server.title), 0, None);
            server.execute(&mut server.connect(database)?, "vacuum (analyze)")?;
        }
    }
    match &content.setup {
        Some(setup) => set_up(server, database, content, setup, progress),
        None => Ok(()),
    }
}

/// A dump to restore.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dump<'a> {
    /// Its file or directory.
    pub(crate) path: &'a Path,
    /// The programs of a server of pgdyno's own; none for another one.
    pub(crate) programs: Option<&'a Installation>,
}

/// Runs a workload's setup in one session, and leaves all tables vacuumed and analyzed.
pub(crate) fn set_up(
    server: &Control,
    database: &str,
    content: &Content,
    setup: &Setup,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut session = server.connect(database)?;
    let steps = setup.statements.len() as u64;
    for (done, Statement { place, sql }) in (0..).zip(&setup.statements) {
        check_interrupted(progress)?;
        progress.step(&format!("{}, {content}: {place}", server.title), done, Some(steps + 1));
        session.execute(sql).map_err(|error| Error::Setup {
            workload: setup.workload.clone(),
            server: server.display_name.clone(),
            place: place.clone(),
            why: sql_text(&error),
        })?;
    }
    check_interrupted(progress)?;
    progress.step(&format!("{}, {content}: vacuum", server.title), steps, Some(steps + 1));
    server.execute(&mut session, "vacuum (analyze)")
}

/// Creates and fills pgbench's tables in a database.
fn fill_pgbench_tables(
    server: &Control,
    database: &str,
    scale: u32,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut session = server.connect(database)?;
    server.execute(&mut session, &create_tables(scale))?;
    for table in Table::FILLED {
        load(server, &mut session, table, scale, progress)?;
    }
    let steps = VACUUM_ORDER.len() + Table::FILLED.len();
    let what = format!("{}, scale {scale}: vacuum and primary keys", server.title);
    let statements = VACUUM_ORDER
        .map(|name| format!("vacuum analyze {name}"))
        .into_iter()
        .chain(Table::FILLED.map(Table::add_primary_key));
    for (done, statement) in statements.enumerate() {
        check_interrupted(progress)?;
        progress.step(&what, done as u64, Some(steps as u64));
        server.execute(&mut session, &statement)?;
    }
    Ok(())
}

/// Loads a table as pgbench does: truncates and fills it in one transaction, which permits freezing, and saves WAL if
/// its level is minimal. One connection keeps the rows in pgbench's order, page for page; several would write WAL, and
/// vacuum would have to freeze their rows.
fn load(
    server: &Control,
    session: &mut Session,
    table: Table,
    scale: u32,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let name = table.name();
    let sql = |error: SessionError| server.error(format!("load {name}"), &error);
    let freeze = if table.loaded_frozen(server.major) { ", freeze on" } else { "" };
    let what = format!("{}, scale {scale}: loading {name}", server.title);
    session.execute(&format!("begin; truncate {name}")).map_err(sql)?;
    for (column, value) in table.constants() {
        session.execute(&format!("alter table {name} alter {column} set default {value}")).map_err(sql)?;
    }
    let copy = format!("copy {name} ({}) from stdin (format binary{freeze})", table.sent());
    let encoder = Encoder::new(table, scale);
    let rows = table.rows(scale);
    let mut interrupted = false;
    let copied = session.copy_in(&copy, |writer| {
        let mut buffer = COPY_HEADER.to_vec();
        let mut done = 0;
        while done < rows {
            if progress.interrupted() {
                interrupted = true;
                return Err(ErrorKind::Interrupted.into());
            }
            let end = rows.min(done + CHUNK_ROWS);
            for row in done..end {
                encoder.row(row, &mut buffer);
            }
            writer.write_all(&buffer)?;
            buffer.clear();
            done = end;
            progress.step(&what, done, Some(rows));
        }
        writer.write_all(COPY_TRAILER)
    });
    if interrupted {
        // The session ends with an open transaction: the server rolls back.
        return Err(host::Error::Interrupted.into());
    }
    copied.map_err(sql)?;
    for (column, _) in table.constants() {
        session.execute(&format!("alter table {name} alter {column} drop default")).map_err(sql)?;
    }
    session.execute("commit").map_err(sql)
}
