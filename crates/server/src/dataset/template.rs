//! Templates: data directories filled once, and copied for each trial.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use model::version::{Version, VersionRequest};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::dataset::content::Content;
use crate::error::Error;
use crate::programs::installation::Installation;
use host::Cache;
use host::Doing;
use host::Fingerprint;
use host::Lock;
use host::Progress;
use host::files::{entries, remove_tree};

/// Raised when what is in a template changes; older ones are then not used any more.
pub(super) const FORMAT: u32 = 2;
/// The record in the data directory, where PostgreSQL does not mind it.
pub(super) const RECORD: &str = "pgdyno-template.json";

/// A filled data directory that no server runs on. One from [`crate::template`] is in use, and not removed by
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
pub(super) struct Record {
    pub(super) format: u32,
    pub(super) version: String,
    /// [`Installation::identity`]; none of formats before 2, where it is the version.
    pub(super) server: Option<String>,
    #[serde(default)]
    pub(super) initdb: Vec<String>,
    pub(super) scale: u32,
    /// The workload whose setup was run; none where there was none.
    #[serde(default)]
    pub(super) workload: Option<String>,
    pub(super) made: Timestamp,
    /// None of formats before 2.
    pub(super) facts: Option<Facts>,
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

    /// The template, kept from being removed as long as the lock is held.
    pub(super) fn locked(self, installation: &Installation, lock: Lock) -> Self {
        Self { used_by: Some((installation.clone(), Arc::new(lock))), ..self }
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
        self.facts().map_or_else(|| bytes_below(&self.directory), |facts| facts.bytes)
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

pub(super) fn name(installation: &Installation, initdb: &[String], content: &Content) -> String {
    let mut options = String::new();
    if !initdb.is_empty() {
        let mut given = Fingerprint::new();
        initdb.iter().for_each(|option| given.add(option));
        options = format!("-initdb-{}", given.short());
    }
    let setup = content.key().map(|key| format!("-setup-{key}")).unwrap_or_default();
    format!("{}-scale-{}{setup}{options}-v{FORMAT}", installation.identity(), content.scale)
}

pub(super) fn read(cache: &Cache, directory: &Path) -> Result<Template, Error> {
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
pub(super) fn lock_file(cache: &Cache, name: &str) -> PathBuf {
    cache.lock_file(&format!("template-{name}"))
}

/// Bytes of the files below a directory; what can't be read counts for nothing.
pub(super) fn bytes_below(directory: &Path) -> u64 {
    let Ok(found) = fs::read_dir(directory) else { return 0 };
    found
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}
