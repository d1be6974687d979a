//! `index.sqlite`: the heads of the bundles in one file, so that listing thousands of trials reads one file instead of
//! thousands.
//!
//! A pure cache. Before each use it is compared with the directory of trials and updated; if it is missing, damaged or
//! of another version, it is rebuilt; if it can't be used at all (a store mounted read-only), the bundles are read
//! instead. No information exists only in the index.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::record::Trial;
use rusqlite::{Connection, OpenFlags, Transaction, params};

use crate::bundle;
use crate::content::CAMPAIGN;
use crate::error::{Problem, StoreError};
use crate::files;
use crate::format::{self, trial};

/// Name of the index within a store.
pub(crate) const FILE: &str = "index.sqlite";
/// The holder of the lock on this file has exclusive use of the index.
const LOCK: &str = "index.lock";
/// Version of the tables below; an index of another version is rebuilt.
const VERSION: i64 = 1;

/// The only table.
const TABLE: &str = "CREATE TABLE trial (
        id       TEXT PRIMARY KEY,
        stamp    TEXT NOT NULL,  -- changes when the bundle's head does
        head     BLOB NOT NULL,  -- trial.json
        campaign TEXT NOT NULL   -- campaign.toml
    ) WITHOUT ROWID";

/// Contents of a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Readable trials, oldest first.
    pub trials: Vec<Trial>,
    /// One problem for each unreadable bundle.
    pub rejected: Vec<Problem>,
}

/// Contents of a rebuilt index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reindexed {
    /// Bundles in the index.
    pub bundles: usize,
    /// One problem for each unreadable bundle; these are not in the index.
    pub rejected: Vec<Problem>,
}

/// The heads of all bundles, from the index if possible.
pub(crate) fn listing(root: &Path, trials: &Path) -> Result<Listing, StoreError> {
    let ids = bundle::list(trials)?;
    let indexed = Index::lock(root).ok().and_then(|index| {
        // The reason of sqlite's error does not matter: the index is rebuilt, once.
        index
            .listing(trials, &ids)
            .or_else(|_| index.remove().and_then(|()| index.listing(trials, &ids)))
            .ok()
    });
    Ok(indexed.unwrap_or_else(|| read_all(trials, &ids)))
}

/// Rebuilds the index.
pub(crate) fn rebuild(root: &Path, trials: &Path) -> Result<Reindexed, StoreError> {
    let ids = bundle::list(trials)?;
    let index = Index::lock(root)?;
    let failed =
        |error: Failure| StoreError::Io { action: "create", path: root.join(FILE), source: error.into() };
    index.remove().map_err(failed)?;
    let Listing { trials, rejected } = index.listing(trials, &ids).map_err(failed)?;
    Ok(Reindexed { bundles: trials.len(), rejected })
}

/// Bundles whose row in the index differs from the bundle.
pub(crate) fn differing(root: &Path, trials: &Path) -> Vec<String> {
    let Ok(index) = Index::lock(root) else { return Vec::new() };
    let Ok(rows) = index.connect().and_then(|connection| rows(&connection)) else { return Vec::new() };
    let says_otherwise = |(id, row): (String, Row)| {
        let bundle = trials.join(&id);
        let head = files::read(&bundle, format::TRIAL);
        let campaign = files::read(&bundle, CAMPAIGN);
        let same = head.is_ok_and(|head| head == row.head)
            && campaign.is_ok_and(|campaign| campaign == row.campaign.as_bytes());
        (!same).then_some(id)
    };
    rows.into_iter().filter_map(says_otherwise).collect()
}

/// Why an index can't be used.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Sqlite(error) => Self::other(error),
            Failure::Io(error) => error,
        }
    }
}

/// The index, locked against other processes.
struct Index {
    path: PathBuf,
    #[expect(dead_code, reason = "holds the lock")]
    lock: File,
}

/// A bundle's row in the index.
struct Row {
    stamp: String,
    head: Vec<u8>,
    campaign: String,
}

impl Index {
    fn lock(root: &Path) -> Result<Self, StoreError> {
        let path = root.join(LOCK);
        let lock = files::open_lock(&path).map_err(StoreError::io("open", &path))?;
        lock.lock().map_err(StoreError::io("lock", &path))?;
        Ok(Self { path: root.join(FILE), lock })
    }

    fn remove(&self) -> Result<(), Failure> {
        let mut journal = self.path.clone().into_os_string();
        journal.push("-journal");
        for path in [Path::new(&journal), &self.path] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Updates outdated rows, and returns the listing.
    fn listing(&self, trials: &Path, ids: &[String]) -> Result<Listing, Failure> {
        let mut connection = self.connect()?;
        let mut rows = rows(&connection)?;
        let mut listing = Listing::default();
        let changes = connection.transaction()?;
        for id in ids {
            let bundle = trials.join(id);
            let stamp = stamp(&bundle);
            if let Some(row) = rows.remove(id)
                && Some(&row.stamp) == stamp.as_ref()
                && let Ok(trial) = trial::read(&row.head, row.campaign)
            {
                listing.trials.push(trial);
                continue;
            }
            match bundle::read_head(&bundle) {
                Ok(trial) => {
                    if let Some(stamp) = stamp {
                        put(&changes, &bundle, &trial, &stamp)?;
                    }
                    listing.trials.push(trial);
                }
                Err(defect) => {
                    // Not stored: a repaired bundle must not stay rejected.
                    changes.execute("DELETE FROM trial WHERE id = ?1", [id])?;
                    listing.rejected.push(defect.in_bundle(id));
                }
            }
        }
        for gone in rows.keys() {
            changes.execute("DELETE FROM trial WHERE id = ?1", [gone])?;
        }
        changes.commit()?;
        Ok(listing)
    }

    /// Opens the file, unless it is a link: it is created and written with the rights of whoever reads the store.
    fn open(&self) -> Result<Connection, Failure> {
        let directory = self.path.parent().unwrap_or(Path::new(".")).canonicalize()?;
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        Ok(Connection::open_with_flags(directory.join(FILE), flags)?)
    }

    fn connect(&self) -> Result<Connection, Failure> {
        let connection = self.open()?;
        // Durability is up to the bundles: an index damaged by a crash of the machine is rebuilt.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version == VERSION && schema(&connection)? == [Some(TABLE.to_owned())] {
            return Ok(connection);
        }
        drop(connection);
        self.remove()?;
        let mut connection = self.open()?;
        let changes = connection.transaction()?;
        changes.execute(TABLE, [])?;
        changes.pragma_update(None, "user_version", VERSION)?;
        changes.commit()?;
        Ok(connection)
    }
}

/// What the database defines, in SQL. Another one than the table can be of somebody who wants its query to run without end.
fn schema(connection: &Connection) -> Result<Vec<Option<String>>, Failure> {
    let mut query = connection.prepare("SELECT sql FROM sqlite_schema")?;
    let definitions = query.query_map([], |row| row.get(0))?;
    Ok(definitions.collect::<Result<_, _>>()?)
}

fn rows(connection: &Connection) -> Result<HashMap<String, Row>, Failure> {
    let mut query = connection.prepare("SELECT id, stamp, head, campaign FROM trial")?;
    let selected = query.query_map([], |row| {
        Ok((row.get(0)?, Row { stamp: row.get(1)?, head: row.get(2)?, campaign: row.get(3)? }))
    })?;
    let mut rows = HashMap::new();
    for row in selected {
        let (id, row) = row?;
        // Pages of a damaged file may lead to the same rows over and over.
        if rows.insert(id, row).is_some() {
            return Err(io::Error::other("it has a row twice").into());
        }
    }
    Ok(rows)
}

fn put(changes: &Transaction<'_>, bundle: &Path, trial: &Trial, stamp: &str) -> Result<(), Failure> {
    let head = files::read(bundle, format::TRIAL).map_err(|defect| io::Error::other(defect.reason))?;
    changes.execute(
        "INSERT OR REPLACE INTO trial (id, stamp, head, campaign) VALUES (?1, ?2, ?3, ?4)",
        params![trial.id, stamp, head, trial.run.campaign_toml],
    )?;
    Ok(())
}

/// A value that changes with the head of the bundle; `None` if the bundle can't be inspected.
fn stamp(bundle: &Path) -> Option<String> {
    let stamp = |name| {
        let file = fs::metadata(bundle.join(name)).ok()?;
        Some(format!("{} {}.{:09} {}", file.len(), file.mtime(), file.mtime_nsec(), file.ino()))
    };
    Some(format!("{} {}", stamp(format::TRIAL)?, stamp(CAMPAIGN)?))
}

fn read_all(trials: &Path, ids: &[String]) -> Listing {
    let mut listing = Listing::default();
    for id in ids {
        match bundle::read_head(&trials.join(id)) {
            Ok(trial) => listing.trials.push(trial),
            Err(defect) => listing.rejected.push(defect.in_bundle(id)),
        }
    }
    listing
}
