//! Templates: data directories filled once, and copied for each trial.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use model::version::{Version, VersionRequest};
use serde::{Deserialize, Serialize};
use wire::blocking::SessionError;

use crate::cluster::{Cluster, sync_file_system};
use crate::data::initdb::{check_options, wal_segment_bytes};
use crate::dataset::content::Content;
use crate::dataset::fill::{check_scale, load_settings};
use crate::dataset::{disk, eviction};
use crate::error::Error;
use crate::programs::installation::Installation;
use crate::server::{Server, StopMode};
use host::Cache;
use host::Doing;
use host::Fingerprint;
use host::Lock;
use host::Progress;
use host::files::{entries, remove_tree};
use host::process::{LAST_LINES, last_lines};

/// Raised when what is in a template changes; older ones are then not used any more.
const FORMAT: u32 = 2;
/// How long what was written waits for the disk while a template is filled.
const SYNC_EVERY: Duration = Duration::from_millis(250);
/// The record in the data directory, where PostgreSQL does not mind it.
const RECORD: &str = "pgdyno-template.json";

/// A filled data directory that no server runs on. One that was asked for by [`template`] is in use, and not removed by
/// anyone else, as long as it or a clone of it lives.
#[derive(Clone, Debug)]
pub struct Template {
    directory: PathBuf,
    version: Version,
    record: Record,
    last_used: Option<Timestamp>,
    /// None where the template is only listed.
    used_by: Option<(Installation, Arc<Lock>)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    format: u32,
    version: String,
    /// [`Installation::identity`]; none of formats before 2, where it is the version.
    server: Option<String>,
    #[serde(default)]
    initdb: Vec<String>,
    scale: u32,
    /// The workload whose setup was run; none where there was none.
    #[serde(default)]
    workload: Option<String>,
    made: Timestamp,
    /// None of formats before 2.
    facts: Option<Facts>,
}

/// What the server said of itself while the template was filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// How the server was built: the view `pg_config`, by name.
    pub pg_config: BTreeMap<String, String>,
    /// Whether data pages have checksums.
    pub data_checksums: bool,
    /// Whether the tested database has the extension `pg_prewarm`.
    pub prewarm: bool,
    /// Bytes of the template's files.
    pub bytes: u64,
}

/// The template of a server's programs, `initdb` options and content; it is made where there is none, and templates that
/// are not in use make room for it where `PGDYNO_DATASETS_MAX` says so. Several processes may ask at once.
///
/// # Errors
/// A scale that pgbench does not have; an `initdb` option that pgdyno sets itself or that this major does not have; the
/// server does not start, or can't be filled; a workload's setup is refused.
pub fn template(
    cache: &Cache,
    installation: &Installation,
    initdb: &[String],
    content: &Content,
    progress: &dyn Progress,
) -> Result<Template, Error> {
    check_scale(content.scale)?;
    check_options(initdb)?;
    let name = name(installation, initdb, content);
    let place = cache.templates().join(&name);
    loop {
        let lock = Lock::shared(&lock_file(cache, &name))?;
        if place.is_dir() {
            lock.touch();
            let used_by = Some((installation.clone(), Arc::new(lock)));
            return Ok(Template { used_by, ..read(cache, &place)? });
        }
        drop(lock);
        let _lock = Lock::exclusive(&lock_file(cache, &name))?;
        // Somebody else may have made it meanwhile.
        if !place.is_dir() {
            let what = format!("PostgreSQL {}, {content}: creating", installation.version());
            progress.step(&what, 0, None);
            eviction::make_room(cache, disk::template_bytes(initdb, content), progress)?;
            make(cache, installation, initdb, content, &place, progress)?;
        }
    }
}

/// Every template, by name; also those of an older pgdyno, which are not used any more.
///
/// # Errors
/// The cache can't be read.
pub fn templates(cache: &Cache) -> Result<Vec<Template>, Error> {
    let found = entries(&cache.templates())?;
    Ok(found
        .iter()
        .filter_map(|(_, directory)| match read(cache, directory) {
            Ok(template) => Some(template),
            Err(error) => {
                tracing::warn!("left out: {error}");
                None
            }
        })
        .collect())
}

/// Whether there is a template already.
pub(crate) fn is_made(
    cache: &Cache,
    installation: &Installation,
    initdb: &[String],
    content: &Content,
) -> bool {
    cache.templates().join(name(installation, initdb, content)).is_dir()
}

impl Template {
    /// Copies it: the copy is the caller's, and goes when it is dropped. [`Cluster::copied`] tells what it took.
    ///
    /// # Errors
    /// The copy can't be made, the server's programs have been removed, or the user wants to stop.
    pub fn clone_cluster(&self, cache: &Cache, progress: &dyn Progress) -> Result<Cluster, Error> {
        let installation = self.installation()?;
        if let Some((_, lock)) = &self.used_by {
            lock.touch();
        }
        Cluster::copy_of(cache, installation, &self.directory, &self.step("copying"), progress)
    }

    /// Puts a copy back to what it was when it was made, by writing what has changed since. No server runs on it.
    /// [`Cluster::copied`] tells what it took.
    ///
    /// # Errors
    /// The copy can't be written, or the user wants to stop; it can be put back again then.
    pub fn restore(&self, copy: &mut Cluster, progress: &dyn Progress) -> Result<(), Error> {
        copy.put_back(&self.directory, &self.step("putting back"), progress)
    }

    /// The programs that run on it.
    pub(crate) fn installation(&self) -> Result<&Installation, Error> {
        let gone = || Error::NotInstalled { version: self.server().to_owned() };
        self.used_by.as_ref().map(|(installation, _)| installation).ok_or_else(gone)
    }

    /// Its name in the cache.
    pub fn name(&self) -> &str {
        self.directory.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The programs that made it and can run on it: their [`Installation::identity`].
    pub fn server(&self) -> &str {
        self.record.server.as_deref().unwrap_or(&self.record.version)
    }

    /// Whether a user means its server by this: a major, a full version, or its [`Installation::identity`].
    pub fn is_of(&self, server: &str) -> bool {
        server == self.server()
            || server.parse::<VersionRequest>().is_ok_and(|wanted| wanted.allows(self.version))
    }

    /// The version of these programs.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The options that `initdb` was given.
    pub fn initdb(&self) -> &[String] {
        &self.record.initdb
    }

    /// pgbench's scale factor.
    pub fn scale(&self) -> u32 {
        self.record.scale
    }

    /// The workload whose setup made it; none where it holds pgbench's tables alone.
    pub fn workload(&self) -> Option<&str> {
        self.record.workload.as_deref()
    }

    /// When it was filled.
    pub fn made(&self) -> Timestamp {
        self.record.made
    }

    /// When it was last copied, or asked for.
    pub fn last_used(&self) -> Timestamp {
        self.last_used.unwrap_or(self.record.made)
    }

    /// Whether this pgdyno uses it; one that an older pgdyno made only takes room.
    pub fn is_current(&self) -> bool {
        self.record.format == FORMAT
    }

    /// What the server said while it was filled; none of a template that an older pgdyno made.
    pub fn facts(&self) -> Option<&Facts> {
        self.record.facts.as_ref()
    }

    /// Bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.facts().map_or_else(|| size(&self.directory), |facts| facts.bytes)
    }

    /// Deletes it.
    ///
    /// # Errors
    /// It is in use, or its files can't be removed.
    pub fn remove(self, cache: &Cache) -> Result<(), Error> {
        let what = format!("the data set {}", self.name());
        let place = self.directory.clone();
        drop(self);
        if remove_unused(cache, &place)? {
            Ok(())
        } else {
            Err(Error::InUse { what, by: "a pgdyno that runs".to_owned() })
        }
    }

    /// A step of work on it, for people.
    fn step(&self, doing: &str) -> String {
        let workload = self.workload().map(|workload| format!(", {workload}")).unwrap_or_default();
        format!("PostgreSQL {}, scale {}{workload}: {doing}", self.version, self.record.scale)
    }
}

/// Deletes the template in a place, unless it is in use. Gives whether it is gone.
pub(crate) fn remove_unused(cache: &Cache, place: &Path) -> Result<bool, Error> {
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(_lock) = Lock::try_exclusive(&lock_file(cache, name))? else { return Ok(false) };
    // Its name goes first; if the rest is interrupted, the next removal or making clears it away.
    let leaving = cache.templates().join(format!(".{name}"));
    remove_tree(&leaving)?;
    match fs::rename(place, &leaving) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        outcome => Ok(outcome.doing("remove", place).and_then(|()| remove_tree(&leaving)).map(|()| true)?),
    }
}

fn name(installation: &Installation, initdb: &[String], content: &Content) -> String {
    let mut options = String::new();
    if !initdb.is_empty() {
        let mut given = Fingerprint::new();
        initdb.iter().for_each(|option| given.add(option));
        options = format!("-initdb-{}", given.short());
    }
    let setup = content.key().map(|key| format!("-setup-{key}")).unwrap_or_default();
    format!("{}-scale-{}{setup}{options}-v{FORMAT}", installation.identity(), content.scale)
}

/// Fills a cluster of our own, and gives its data directory the template's name when it is whole and on the disk.
fn make(
    cache: &Cache,
    installation: &Installation,
    initdb: &[String],
    content: &Content,
    place: &Path,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let settings = load_settings(wal_segment_bytes(initdb));
    let mut server = Cluster::empty(cache, installation, initdb)?.start(&settings)?;
    synced_along(server.data_directory(), || server.fill(content, progress))?;
    let mut facts = facts(&server)?;
    if !server.end(StopMode::Fast)? {
        return Err(Error::Start {
            version: installation.version().to_string(),
            directory: server.data_directory().to_owned(),
            why: "it was filled, but did not stop cleanly".to_owned(),
            log: last_lines(&server.log()?, LAST_LINES),
        });
    }
    let cluster = server.stop(StopMode::Fast)?;
    let data = cluster.data_directory();
    facts.bytes = size(&data);
    let file = data.join(RECORD);
    let record = Record {
        format: FORMAT,
        version: installation.version().to_string(),
        server: Some(installation.identity().to_owned()),
        initdb: initdb.to_owned(),
        scale: content.scale,
        workload: content.setup.as_ref().map(|setup| setup.workload.clone()),
        made: Timestamp::now(),
        facts: Some(facts),
    };
    let text = serde_json::to_string_pretty(&record).doing("write", &file)?;
    fs::write(&file, text + "\n").doing("write", &file)?;
    cluster.user().own(&file)?;
    sync_file_system(&data)?;
    Ok(fs::rename(&data, place).doing("put in place", place)?)
}

/// Does some work that writes, and all the while brings what it writes to the disk, which then has little left to do at
/// the end. The server is not to sync while it loads, and the kernel would wait until much memory is to be written.
fn synced_along(data: &Path, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        let syncing = scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(SYNC_EVERY) {
                sync_file_system(data)?;
            }
            Ok(())
        });
        let outcome = work();
        drop(done);
        let synced = syncing.join().unwrap_or(Ok(()));
        outcome.and(synced)
    })
}

/// Asks the server what it is, and gives the tested database `pg_prewarm` where the server has it.
fn facts(server: &Server) -> Result<Facts, Error> {
    let control = &server.control;
    let mut session = control.connect(crate::DATABASE)?;
    let sql = |error: SessionError| control.error("ask what it is", &error);
    let (checksums, prewarm): (String, bool) = session
        .query_one(
            "SELECT current_setting('data_checksums'),
                    exists (SELECT FROM pg_available_extensions WHERE name = 'pg_prewarm')",
        )
        .map_err(sql)?;
    let pg_config: Vec<(String, String)> =
        session.query("SELECT name, coalesce(setting, '') FROM pg_config").map_err(sql)?;
    if prewarm {
        control.execute(&mut session, "create extension pg_prewarm")?;
    }
    Ok(Facts {
        pg_config: pg_config.into_iter().collect(),
        data_checksums: checksums == "on",
        prewarm,
        bytes: 0,
    })
}

fn read(cache: &Cache, directory: &Path) -> Result<Template, Error> {
    let file = directory.join(RECORD);
    let text = fs::read(&file).doing("read", &file)?;
    let record: Record = serde_json::from_slice(&text).doing("read", &file)?;
    let version = record.version.parse()?;
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let touched = fs::metadata(lock_file(cache, name)).and_then(|lock| lock.modified());
    let last_used = touched.ok().and_then(|time| Timestamp::try_from(time).ok());
    Ok(Template { directory: directory.to_owned(), version, record, last_used, used_by: None })
}

/// Its time of change is that of the template's last use.
fn lock_file(cache: &Cache, name: &str) -> PathBuf {
    cache.lock_file(&format!("template-{name}"))
}

/// Bytes of the files below a directory; what can't be read counts for nothing.
fn size(directory: &Path) -> u64 {
    let Ok(found) = fs::read_dir(directory) else { return 0 };
    found
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}
