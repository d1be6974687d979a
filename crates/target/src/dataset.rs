//! Filling the tested database with pgbench's tables, in pgbench's order of steps: create, load, vacuum, primary keys.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use postgres::Client;

use crate::Major;
use crate::error::TargetError;
use crate::pgbench_tables::{
    COPY_HEADER, COPY_TRAILER, Encoder, MAX_SCALE, Table, VACUUM_ORDER, create_tables,
};
use crate::progress::{Progress, unless_interrupted};
use crate::server::Server;

/// Up to this scale one connection loads the accounts, in order, as pgbench does: the table is then the same to the
/// page. Beyond, several do: their pages come to lie between each other's, and a few hundred stay empty.
const IN_ORDER_TO_SCALE: u32 = 20;
/// More do not help: the table is lengthened by one at a time.
const MAX_CONNECTIONS: usize = 8;
/// Rows that a connection takes at a time, to keep the accounts nearly in order.
const CHUNK_ROWS: u64 = 5_000;

/// Settings of the server while it loads. What it writes is synced as a whole afterwards.
pub(crate) fn load_settings() -> BTreeMap<String, String> {
    [
        // Commits stay synchronous: of rows whose commit is not yet flushed, vacuum can't say that all see them.
        ("fsync", "off"),
        ("full_page_writes", "off"),
        // Little WAL, and few of its files left in the template.
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_wal_size", "64MB"),
        ("min_wal_size", "32MB"),
        ("checkpoint_timeout", "1h"),
        ("autovacuum", "off"),
        ("shared_buffers", "256MB"),
        ("maintenance_work_mem", "256MB"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Creates the tested database.
pub(crate) fn create_database(server: &Server) -> Result<(), TargetError> {
    execute(server, &mut server.control()?, &format!("create database {}", crate::DATABASE))
}

/// Creates and fills pgbench's tables in the tested database.
pub(crate) fn fill(server: &Server, scale: u32, progress: &dyn Progress) -> Result<(), TargetError> {
    if scale == 0 || scale > MAX_SCALE {
        return Err(TargetError::Scale { scale });
    }
    let major = server.installed_major();
    let mut client = server.connect(crate::DATABASE)?;
    execute(server, &mut client, &create_tables(scale))?;
    // Each table over connections of its own.
    thread::scope(|scope| {
        join_all(Table::FILLED.map(|table| scope.spawn(move || load(server, table, scale, progress))))
    })?;
    let steps = VACUUM_ORDER.len() + Table::FILLED.len() + 1;
    let what = format!("PostgreSQL {}, scale {scale}: vacuum and primary keys", server.installed_version());
    let mut done = 0;
    let mut step = |client: &mut Client, statement: &str| {
        unless_interrupted(progress)?;
        progress.step(&what, done, Some(steps as u64));
        done += 1;
        execute(server, client, statement)
    };
    for name in VACUUM_ORDER {
        step(&mut client, &vacuum(name, scale, major))?;
    }
    for table in Table::FILLED {
        step(&mut client, &table.add_primary_key())?;
    }
    step(&mut client, "checkpoint")
}

/// pgbench's `vacuum analyze`. Where pgbench would have loaded the rows frozen and several connections could not, it
/// freezes them.
fn vacuum(table: &str, scale: u32, major: Major) -> String {
    let not_yet_frozen = table == Table::Accounts.name()
        && connections(Table::Accounts, scale) > 1
        && Table::Accounts.loaded_frozen(major);
    let freeze = if not_yet_frozen { "freeze, " } else { "" };
    format!("vacuum ({freeze}analyze) {table}")
}

fn connections(table: Table, scale: u32) -> usize {
    match table {
        Table::Accounts if scale > IN_ORDER_TO_SCALE => {
            thread::available_parallelism().map_or(2, usize::from).clamp(2, MAX_CONNECTIONS)
        }
        _ => 1,
    }
}

/// Rows still to be taken by the connections that load a table.
struct Work<'a> {
    table: Table,
    scale: u32,
    rows: u64,
    taken: AtomicU64,
    done: AtomicU64,
    what: String,
    progress: &'a dyn Progress,
}

fn load(server: &Server, table: Table, scale: u32, progress: &dyn Progress) -> Result<(), TargetError> {
    let work = Work {
        table,
        scale,
        rows: table.rows(scale),
        taken: AtomicU64::new(0),
        done: AtomicU64::new(0),
        what: format!("PostgreSQL {}, scale {scale}: loading {}", server.installed_version(), table.name()),
        progress,
    };
    let connections = connections(table, scale);
    if connections == 1 {
        return work.in_order(server);
    }
    thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(|| work.beside_others(server))).collect();
        join_all(threads)
    })
}

/// Waits for threads; the first that failed says why.
fn join_all<'scope>(
    threads: impl IntoIterator<Item = thread::ScopedJoinHandle<'scope, Result<(), TargetError>>>,
) -> Result<(), TargetError> {
    threads.into_iter().try_for_each(|thread| match thread.join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

impl Work<'_> {
    /// As pgbench does: emptying and filling in one transaction, which allows to freeze and saves the WAL.
    fn in_order(&self, server: &Server) -> Result<(), TargetError> {
        let frozen = self.table.loaded_frozen(server.installed_major());
        let sql = |error| self.failed(server, &error);
        let mut client = server.connect(crate::DATABASE)?;
        let mut transaction = client.transaction().map_err(sql)?;
        transaction.batch_execute(&format!("truncate {}", self.table.name())).map_err(sql)?;
        let writer = transaction.copy_in(&self.copy_statement(frozen)).map_err(sql)?;
        self.write(writer).map_err(sql)?;
        unless_interrupted(self.progress)?;
        transaction.commit().map_err(sql)
    }

    fn beside_others(&self, server: &Server) -> Result<(), TargetError> {
        let sql = |error| self.failed(server, &error);
        let mut client = server.connect(crate::DATABASE)?;
        let writer = client.copy_in(&self.copy_statement(false)).map_err(sql)?;
        self.write(writer).map_err(sql)?;
        unless_interrupted(self.progress)
    }

    fn copy_statement(&self, frozen: bool) -> String {
        let freeze = if frozen { ", freeze on" } else { "" };
        format!("copy {} from stdin (format binary{freeze})", self.table.name())
    }

    fn write(&self, mut writer: postgres::CopyInWriter<'_>) -> Result<(), postgres::Error> {
        let encoder = Encoder::new(self.table, self.scale);
        let mut buffer = COPY_HEADER.to_vec();
        loop {
            let from = self.taken.fetch_add(CHUNK_ROWS, Ordering::Relaxed);
            let to = self.rows.min(from + CHUNK_ROWS);
            if from >= to || self.progress.interrupted() {
                break;
            }
            for row in from..to {
                encoder.row(row, &mut buffer);
            }
            if writer.write_all(&buffer).is_err() {
                // Finishing tells what the server said.
                break;
            }
            buffer.clear();
            let done = self.done.fetch_add(to - from, Ordering::Relaxed) + (to - from);
            self.progress.step(&self.what, done, Some(self.rows));
        }
        // Into a broken connection nothing can be written; `finish` says why.
        let _ = writer.write_all(&buffer).and_then(|()| writer.write_all(COPY_TRAILER));
        writer.finish().map(drop)
    }

    fn failed(&self, server: &Server, error: &postgres::Error) -> TargetError {
        TargetError::sql(format!("load {}", self.table.name()), server.data_directory(), error)
    }
}

fn execute(server: &Server, client: &mut Client, statement: &str) -> Result<(), TargetError> {
    client
        .batch_execute(statement)
        .map_err(|error| TargetError::sql(format!("run \"{statement}\""), server.data_directory(), &error))
}
