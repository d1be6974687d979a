//! Templates: data directories filled once, and copied for each trial.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, entries, remove_tree};
use crate::cluster::{Cluster, sync_file_system};
use crate::dataset::{create_database, fill, load_settings};
use crate::error::{Doing, TargetError};
use crate::install::Installation;
use crate::lock::Lock;
use crate::progress::Progress;
use crate::server::StopMode;
use crate::version::Version;

/// Raised when what is in a template changes; older ones are then not used any more.
const FORMAT: u32 = 1;
/// The record in the data directory, where PostgreSQL does not mind it.
const RECORD: &str = "pgdyno-template.json";

/// A filled data directory that no server runs on.
#[derive(Clone, Debug)]
pub struct Template {
    directory: PathBuf,
    version: Version,
    record: Record,
    /// None where the template is only listed.
    installation: Option<Installation>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    format: u32,
    version: String,
    scale: u32,
    made: Timestamp,
}

/// The template of a server version and scale; it is made where there is none. Several processes may ask at once.
///
/// # Errors
/// The server does not start, or can't be filled; a scale that pgbench does not have.
pub fn template(
    cache: &Cache,
    installation: &Installation,
    scale: u32,
    progress: &dyn Progress,
) -> Result<Template, TargetError> {
    let name = format!("{}-scale-{scale}-v{FORMAT}", installation.version());
    let place = cache.templates().join(&name);
    if !place.is_dir() {
        progress.step(&format!("PostgreSQL {}, scale {scale}: creating", installation.version()), 0, None);
        let _lock = Lock::exclusive(&lock_file(cache, &name))?;
        if !place.is_dir() {
            make(cache, installation, scale, &place, progress)?;
        }
    }
    let mut template = read(&place)?;
    template.installation = Some(installation.clone());
    Ok(template)
}

/// Every template, by name.
///
/// # Errors
/// The cache can't be read.
pub fn templates(cache: &Cache) -> Result<Vec<Template>, TargetError> {
    let found = entries(&cache.templates())?;
    Ok(found
        .iter()
        .filter_map(|(_, directory)| match read(directory) {
            Ok(template) => Some(template),
            Err(error) => {
                tracing::warn!("left out: {error}");
                None
            }
        })
        .collect())
}

impl Template {
    /// Copies it: the copy is the caller's, and goes when it is dropped.
    ///
    /// # Errors
    /// The copy can't be made, or the server version has been removed.
    pub fn clone_cluster(&self, cache: &Cache) -> Result<Cluster, TargetError> {
        match &self.installation {
            Some(installation) => Cluster::copy_of(cache, installation, &self.directory),
            None => Err(TargetError::NotInstalled { version: self.version.to_string() }),
        }
    }

    /// Puts a copy back to what it was when it was made, by writing what has changed since.
    ///
    /// # Errors
    /// The copy can't be written.
    pub fn restore(&self, copy: &Cluster) -> Result<(), TargetError> {
        copy.put_back(&self.directory)
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The server version that made it and can run on it.
    pub fn version(&self) -> Version {
        self.version
    }

    /// pgbench's scale factor.
    pub fn scale(&self) -> u32 {
        self.record.scale
    }

    /// Bytes of its files.
    pub fn bytes(&self) -> u64 {
        size(&self.directory)
    }

    /// Deletes it.
    ///
    /// # Errors
    /// Its files can't be removed.
    pub fn remove(self, cache: &Cache) -> Result<(), TargetError> {
        let name = self.directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let _lock = Lock::exclusive(&lock_file(cache, name))?;
        // Its name goes first; if the rest is interrupted, the next removal or making clears it away.
        let leaving = cache.templates().join(format!(".{name}"));
        remove_tree(&leaving)?;
        match fs::rename(&self.directory, &leaving) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            outcome => outcome.doing("remove", &self.directory).and_then(|()| remove_tree(&leaving)),
        }
    }
}

/// Fills a cluster of our own, and gives its data directory the template's name when it is whole and on the disk.
fn make(
    cache: &Cache,
    installation: &Installation,
    scale: u32,
    place: &Path,
    progress: &dyn Progress,
) -> Result<(), TargetError> {
    let mut server = Cluster::empty(cache, installation)?.start(&load_settings())?;
    create_database(&server)?;
    fill(&server, scale, progress)?;
    if !server.end(StopMode::Fast)? {
        return Err(TargetError::Start {
            version: installation.version().to_string(),
            directory: server.data_directory().to_owned(),
            why: "it was filled, but did not stop cleanly".to_owned(),
            log: crate::launch::last_lines(&server.log()?, crate::launch::LAST_LINES),
        });
    }
    let cluster = server.stop(StopMode::Fast)?;
    let data = cluster.data_directory();
    let file = data.join(RECORD);
    let record =
        Record { format: FORMAT, version: installation.version().to_string(), scale, made: Timestamp::now() };
    let text = serde_json::to_string_pretty(&record).doing("write", &file)?;
    fs::write(&file, text + "\n").doing("write", &file)?;
    cluster.user().own(&file)?;
    sync_file_system(&data)?;
    fs::rename(&data, place).doing("put in place", place)
}

fn read(directory: &Path) -> Result<Template, TargetError> {
    let file = directory.join(RECORD);
    let text = fs::read(&file).doing("read", &file)?;
    let record: Record = serde_json::from_slice(&text).doing("read", &file)?;
    let version = record.version.parse()?;
    Ok(Template { directory: directory.to_owned(), version, record, installation: None })
}

fn lock_file(cache: &Cache, name: &str) -> PathBuf {
    cache.lock_file(&format!("template-{name}"))
}

/// Bytes of the files below a directory; what can't be read counts for nothing.
pub(crate) fn size(directory: &Path) -> u64 {
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
