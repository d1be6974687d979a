//! Templates: data directories filled once, and copied for each trial.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use model::dataset::OwnDatabase;
use model::version::{Version, VersionRequest};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::dataset::content::Content;
use crate::error::Error;
use crate::programs::installation::Installation;
use host::Cache;
use host::Fingerprint;
use host::IoContext;
use host::Lock;
use host::Progress;
use host::files::{entries, read_regular, remove_tree};

/// Version of the template format; templates of older ones are no longer used.
pub(super) const FORMAT: u32 = 2;
/// Record in the data directory, where PostgreSQL ignores it.
pub(super) const RECORD: &str = "pgdyno-template.json";

/// A filled data directory without a running server. One from [`crate::template`] is in use, and not removed by other
/// processes, while it or a clone of it lives.
#[derive(Clone, Debug)]
pub struct Template {
    directory: PathBuf,
    version: Version,
    record: Record,
    last_used: Option<Timestamp>,
    /// None if the template is only listed.
    used_by: Option<(Installation, Arc<Lock>)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) format: u32,
    pub(super) version: String,
    /// [`Installation::identity`]; none in formats before 2, where it is the version.
    pub(super) server: Option<String>,
    /// [`Installation::data_identity`]; none in records of before, where it is `server`.
    #[serde(default)]
    pub(super) data: Option<String>,
    #[serde(default)]
    pub(super) initdb: Vec<String>,
    pub(super) scale: u32,
    /// The user's own database that it was made from; none for generated tables.
    #[serde(default)]
    pub(super) own: Option<OwnDatabase>,
    /// Workload whose setup was run; none without one.
    #[serde(default)]
    pub(super) workload: Option<String>,
    pub(super) made: Timestamp,
    /// None in formats before 2.
    pub(super) facts: Option<Facts>,
}

/// Facts that the server reported while the template was filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Build configuration of the server: the view `pg_config`, by name.
    pub pg_config: BTreeMap<String, String>,
    /// Whether data pages have checksums.
    pub data_checksums: bool,
    /// Whether the tested database has the extension `pg_prewarm`.
    pub prewarm: bool,
    /// Bytes of the template's files.
    pub bytes: u64,
}

/// All templates, by name; including those of an older pgdyno, which are no longer used.
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
                tracing::warn!("ignored: {error}");
                None
            }
        })
        .collect())
}

/// Whether the template exists.
pub(crate) fn exists(
    cache: &Cache,
    installation: &Installation,
    initdb: &[String],
    content: &Content,
) -> bool {
    cache.templates().join(name(installation, initdb, content)).is_dir()
}

impl Template {
    /// Copies it: the copy is the caller's, and deleted when dropped. [`Cluster::copied`] returns the cost.
    ///
    /// # Errors
    /// The copy can't be made, the server's programs have been removed, or the user wants to stop.
    pub fn clone_cluster(&self, cache: &Cache, progress: &dyn Progress) -> Result<Cluster, Error> {
        let installation = self.installation()?;
        if let Some((_, lock)) = &self.used_by {
            lock.touch();
        }
        Cluster::from_copy(cache, installation, &self.directory, &self.step("copying"), progress)
    }

    /// Restores a copy to its initial state, by writing only the changes. No server may run on it. [`Cluster::copied`]
    /// returns the cost.
    ///
    /// # Errors
    /// The copy can't be written, or the user wants to stop; it can then be restored again.
    pub fn restore(&self, copy: &mut Cluster, progress: &dyn Progress) -> Result<(), Error> {
        copy.restore_from(&self.directory, &self.step("restoring"), progress)
    }

    /// The template, protected from removal while the lock is held.
    pub(super) fn locked(mut self, installation: &Installation, lock: Lock) -> Self {
        // Those who share it have the same configuration at another place.
        if let Some((made_by, facts)) = self.record.server.as_ref().zip(self.record.facts.as_mut()) {
            for value in facts.pg_config.values_mut() {
                *value = value.replace(made_by, installation.identity());
            }
        }
        Self { used_by: Some((installation.clone(), Arc::new(lock))), ..self }
    }

    /// Programs that run on it.
    pub(crate) fn installation(&self) -> Result<&Installation, Error> {
        let missing = || Error::NotInstalled { version: self.server().to_owned() };
        self.used_by.as_ref().map(|(installation, _)| installation).ok_or_else(missing)
    }

    /// Name in the cache.
    pub fn name(&self) -> &str {
        self.directory.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether programs share it.
    pub(crate) fn is_for(&self, installation: &Installation) -> bool {
        self.record.data.as_deref().unwrap_or(self.server()) == installation.data_identity()
    }

    /// Programs that created it and can run on it: their [`Installation::identity`].
    pub fn server(&self) -> &str {
        self.record.server.as_deref().unwrap_or(&self.record.version)
    }

    /// Whether it belongs to a server as named by a user: a major, a full version, or an [`Installation::identity`].
    pub fn is_of(&self, server: &str) -> bool {
        server == self.server()
            || server.parse::<VersionRequest>().is_ok_and(|wanted| wanted.allows(self.version))
    }

    /// Version of these programs.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Options of `initdb`.
    pub fn initdb(&self) -> &[String] {
        &self.record.initdb
    }

    /// pgbench's scale factor.
    pub fn scale(&self) -> u32 {
        self.record.scale
    }

    /// The user's own database that it was made from; none for generated tables.
    pub fn own(&self) -> Option<&OwnDatabase> {
        self.record.own.as_ref()
    }

    /// Workload whose setup created it; none if it holds pgbench's tables alone.
    pub fn workload(&self) -> Option<&str> {
        self.record.workload.as_deref()
    }

    /// Time at which it was filled.
    pub fn made(&self) -> Timestamp {
        self.record.made
    }

    /// Time at which it was last copied or requested.
    pub fn last_used(&self) -> Timestamp {
        self.last_used.unwrap_or(self.record.made)
    }

    /// Whether this pgdyno uses it; one of an older pgdyno only uses disk space.
    pub fn is_current(&self) -> bool {
        self.record.format == FORMAT
    }

    /// Facts that the server reported while it was filled; none for a template of an older pgdyno.
    pub fn facts(&self) -> Option<&Facts> {
        self.record.facts.as_ref()
    }

    /// Size of its files in bytes.
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
            Err(Error::InUse { what, by: "another pgdyno".to_owned() })
        }
    }

    /// A step of work on it, for messages.
    fn step(&self, doing: &str) -> String {
        let workload = self.workload().map(|workload| format!(", {workload}")).unwrap_or_default();
        let origin = match self.own() {
            Some(own) => format!("data set {}", own.name),
            None => format!("scale {}", self.record.scale),
        };
        format!("PostgreSQL {}, {origin}{workload}: {doing}", self.version)
    }
}

/// Deletes the template at a path, unless it is in use. Returns whether it is gone.
pub(crate) fn remove_unused(cache: &Cache, place: &Path) -> Result<bool, Error> {
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(_lock) = Lock::try_exclusive(&lock_file(cache, name))? else { return Ok(false) };
    // Renamed first: if the rest is interrupted, the next removal or creation cleans it up.
    let removed = cache.templates().join(format!(".{name}"));
    remove_tree(&removed)?;
    match fs::rename(place, &removed) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        outcome => Ok(outcome.doing("remove", place).and_then(|()| remove_tree(&removed)).map(|()| true)?),
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
    format!("{}-{}{setup}{options}-v{FORMAT}", installation.data_identity(), content.origin())
}

pub(super) fn read(cache: &Cache, directory: &Path) -> Result<Template, Error> {
    let file = directory.join(RECORD);
    // With root's rights, as the data set may be of another server's user; nothing of an unexpected file is shown.
    let text = read_regular(&file).doing("read", &file)?;
    let record: Record = serde_json::from_str(&text).doing("read", &file)?;
    let version = record.version.parse()?;
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let touched = fs::metadata(lock_file(cache, name)).and_then(|lock| lock.modified());
    let last_used = touched.ok().and_then(|time| Timestamp::try_from(time).ok());
    Ok(Template { directory: directory.to_owned(), version, record, last_used, used_by: None })
}

/// Its modification time is the time of the template's last use.
pub(super) fn lock_file(cache: &Cache, name: &str) -> PathBuf {
    cache.lock_file(&format!("template-{name}"))
}

/// Bytes of the files below a directory; unreadable ones count as 0.
pub(crate) fn bytes_below(directory: &Path) -> u64 {
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_a_regular_file_describes_a_data_set() {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let cache = Cache::at(place.path()).unwrap();
        let file = |name: &str| {
            let directory = cache.templates().join(name);
            fs::create_dir(&directory).unwrap();
            directory.join(RECORD)
        };
        let record =
            r#"{"format": 2, "version": "18.0", "server": null, "scale": 1, "made": "2026-01-01T00:00:00Z"}"#;
        fs::write(file("file"), record).unwrap();
        symlink(cache.templates().join("file").join(RECORD), file("link")).unwrap();
        mknodat(CWD, file("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        fs::write(file("long"), [record, &" ".repeat(1 << 20), record].concat()).unwrap();
        let found = templates(&cache).unwrap();
        // Of a long file, the beginning counts.
        assert_eq!(found.iter().map(Template::name).collect::<Vec<_>>(), ["file", "long"]);
    }
}
