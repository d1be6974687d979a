//! Making a server version available: found, downloaded, checked, unpacked, and put in its place in one step.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::archives::Archives;
use crate::cache::{Cache, entries, remove_tree};
use crate::error::{Doing, TargetError};
use crate::lock::Lock;
use crate::progress::{Progress, unless_interrupted};
use crate::version::{Version, Wanted};
use crate::{standing, template};

/// The record beside the binaries. It is written before the directory gets its name, so what has a name is whole.
const RECORD: &str = "installation.json";
/// Programs without which it is no server.
const PROGRAMS: [&str; 2] = ["postgres", "initdb"];

/// An installed server version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    version: Version,
    directory: PathBuf,
    record: Record,
}

/// `installation.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    format: u32,
    version: String,
    /// How it came about; `embedded` is a downloaded build.
    source: String,
    archive: String,
    sha512: String,
    installed: Timestamp,
}

/// A version that exists: cached, or in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Which.
    pub version: Version,
    /// Whether it can be used without the network.
    pub installed: bool,
}

impl Installation {
    /// Its full version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where it is: `bin`, `lib` and `share` are below.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// How it came about: `embedded` for a downloaded build.
    pub fn source(&self) -> &str {
        &self.record.source
    }

    /// Base URL of the repository that it was downloaded from.
    pub fn archive(&self) -> &str {
        &self.record.archive
    }

    /// SHA-512 of the archive, in hexadecimal.
    pub fn sha512(&self) -> &str {
        &self.record.sha512
    }

    /// When it was installed.
    pub fn installed(&self) -> Timestamp {
        self.record.installed
    }

    /// One of its programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.directory.join("bin").join(name)
    }

    /// Held by whoever uses it, so that it is not removed meanwhile.
    pub(crate) fn in_use(&self, cache: &Cache) -> Result<Lock, TargetError> {
        let lock = Lock::shared(&lock_file(cache, self.version))?;
        match self.directory.is_dir() {
            true => Ok(lock),
            false => Err(TargetError::NotInstalled { version: self.version.to_string() }),
        }
    }

    fn read(directory: &Path) -> Result<Self, TargetError> {
        let file = directory.join(RECORD);
        let text = fs::read(&file).doing("read", &file)?;
        let record: Record = serde_json::from_slice(&text).doing("read", &file)?;
        Ok(Self { version: record.version.parse()?, directory: directory.to_owned(), record })
    }
}

/// Finds out whether a version exists, without downloading it. A cached one is found without the network.
///
/// # Errors
/// Not a version; no such version; neither cached nor can the archive be asked.
pub fn resolve(cache: &Cache, version: &str) -> Result<Release, TargetError> {
    let wanted: Wanted = version.parse()?;
    if let Some(installation) = newest_installed(cache, wanted)? {
        return Ok(Release { version: installation.version, installed: true });
    }
    let release = Archives::configured().find(wanted)?;
    Ok(Release { version: Version::of_release(&release), installed: false })
}

/// Makes a version available: what is cached is used as it is, without the network; else the newest release is
/// installed. Several processes may do so at once.
///
/// # Errors
/// Not a version; no such version; it can't be downloaded or unpacked.
pub fn install(cache: &Cache, version: &str, progress: &dyn Progress) -> Result<Installation, TargetError> {
    match newest_installed(cache, version.parse()?)? {
        Some(installation) => Ok(installation),
        None => install_newest(cache, version, progress),
    }
}

/// Installs the newest release of a major, or the full version, even where an older release of the major is cached.
/// Where the archive can't be asked, the newest that is cached is taken, with a notice.
///
/// # Errors
/// Not a version; no such version; it can't be downloaded or unpacked.
pub fn install_newest(
    cache: &Cache,
    version: &str,
    progress: &dyn Progress,
) -> Result<Installation, TargetError> {
    let wanted: Wanted = version.parse()?;
    let cached = newest_installed(cache, wanted)?;
    if let (Some(installation), Wanted::Exactly(_)) = (&cached, wanted) {
        return Ok(installation.clone());
    }
    let archives = Archives::configured();
    progress.step(&format!("looking for PostgreSQL {wanted}"), 0, None);
    let release = match (archives.find(wanted), cached) {
        (Err(TargetError::Download { why, .. }), Some(installation)) => {
            progress.notice(&format!(
                "could not ask {} for the newest PostgreSQL {wanted} ({why}); using {}, which is installed",
                archives.location(),
                installation.version
            ));
            return Ok(installation);
        }
        (found, _) => found?,
    };
    let version = Version::of_release(&release);
    let place = cache.installations().join(version.to_string());
    let _lock = Lock::exclusive(&lock_file(cache, version))?;
    if place.is_dir() {
        return Installation::read(&place);
    }
    unless_interrupted(progress)?;
    progress.step(&format!("downloading PostgreSQL {version}"), 0, None);
    let download = archives.fetch(&release)?;
    unless_interrupted(progress)?;
    progress.step(&format!("unpacking PostgreSQL {version}"), 0, None);
    let record = Record {
        format: 1,
        version: version.to_string(),
        source: "embedded".to_owned(),
        archive: archives.location().to_owned(),
        sha512: download.sha512.clone(),
        installed: Timestamp::now(),
    };
    let unpack = |into: &Path| {
        download.unpack(into).map_err(|error| TargetError::Corrupt {
            version: version.to_string(),
            archive: archives.location().to_owned(),
            why: format!("it can't be unpacked: {error}"),
        })
    };
    put_in_place(cache, version, &record, unpack)?;
    Installation::read(&place)
}

/// Unpacks beside the final place and renames, so that an interrupted installation has no name. The caller holds the
/// version's lock.
fn put_in_place(
    cache: &Cache,
    version: Version,
    record: &Record,
    unpack: impl FnOnce(&Path) -> Result<(), TargetError>,
) -> Result<(), TargetError> {
    let partial = partial(cache, version);
    remove_tree(&partial)?;
    fs::create_dir(&partial).doing("make the directory", &partial)?;
    let place = cache.installations().join(version.to_string());
    let outcome = fill(&partial.join("tree"), version, record, unpack)
        .and_then(|tree| fs::rename(&tree, &place).doing("put in place", &place));
    let cleaned = remove_tree(&partial);
    outcome.and(cleaned)
}

fn fill(
    tree: &Path,
    version: Version,
    record: &Record,
    unpack: impl FnOnce(&Path) -> Result<(), TargetError>,
) -> Result<PathBuf, TargetError> {
    unpack(tree)?;
    for program in PROGRAMS {
        if !tree.join("bin").join(program).is_file() {
            return Err(TargetError::Corrupt {
                version: version.to_string(),
                archive: record.archive.clone(),
                why: format!("there is no bin/{program} in it"),
            });
        }
    }
    open_to_all(tree)?;
    let file = tree.join(RECORD);
    let text = serde_json::to_string_pretty(record).doing("write", &file)?;
    fs::write(&file, text + "\n").doing("write", &file)?;
    let opened = fs::File::open(tree).doing("open", tree)?;
    rustix::fs::syncfs(&opened).doing("sync", tree)?;
    Ok(tree.to_owned())
}

/// Lets the user that servers run as read everything, whatever the umask was.
fn open_to_all(path: &Path) -> Result<(), TargetError> {
    let meta = fs::symlink_metadata(path).doing("look at", path)?;
    if meta.is_symlink() {
        return Ok(());
    }
    let executable = meta.is_dir() || meta.permissions().mode() & 0o100 != 0;
    let mode = if executable { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).doing("open to all", path)?;
    if meta.is_dir() {
        for entry in fs::read_dir(path).doing("read the directory", path)? {
            open_to_all(&entry.doing("read the directory", path)?.path())?;
        }
    }
    Ok(())
}

/// Removes what of a version is installed (all releases of a major), with its templates. Gives what was removed.
///
/// # Errors
/// It is not installed, or in use.
pub fn remove(cache: &Cache, version: &str) -> Result<Vec<Version>, TargetError> {
    let wanted: Wanted = version.parse()?;
    let found: Vec<Installation> =
        installed(cache)?.into_iter().filter(|installation| wanted.allows(installation.version)).collect();
    if found.is_empty() {
        return Err(TargetError::NotInstalled { version: version.to_owned() });
    }
    for installation in &found {
        let version = installation.version;
        let in_use =
            |by: &str| TargetError::InUse { what: format!("PostgreSQL {version}"), by: by.to_owned() };
        if let Some(server) = standing::running_on(cache, version)? {
            return Err(in_use(&format!("the server {server} (`pgdyno server stop {server}`)")));
        }
        let Some(_lock) = Lock::try_exclusive(&lock_file(cache, version))? else {
            return Err(in_use("another pgdyno"));
        };
        for template in template::templates(cache)? {
            if template.version() == version {
                template.remove(cache)?;
            }
        }
        // The name goes first, so that a half removed installation is not taken for one.
        let partial = partial(cache, version);
        remove_tree(&partial)?;
        fs::rename(&installation.directory, &partial).doing("remove", &installation.directory)?;
        remove_tree(&partial)?;
    }
    Ok(found.iter().map(|installation| installation.version).collect())
}

/// Takes away what interrupted installations and removals left. Those under way have their lock.
pub(crate) fn sweep_partial(cache: &Cache) -> Result<Vec<PathBuf>, TargetError> {
    let mut removed = Vec::new();
    let directory = cache.installations();
    for entry in fs::read_dir(&directory).doing("read the directory", &directory)? {
        let entry = entry.doing("read the directory", &directory)?;
        let name = entry.file_name();
        let Some(version) = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".partial"))
        else {
            continue;
        };
        let Ok(version) = version.parse::<Version>() else { continue };
        if let Some(_lock) = Lock::try_exclusive(&lock_file(cache, version))? {
            remove_tree(&entry.path())?;
            removed.push(entry.path());
        }
    }
    Ok(removed)
}

pub(crate) fn installed(cache: &Cache) -> Result<Vec<Installation>, TargetError> {
    let mut found: Vec<Installation> = entries(&cache.installations())?
        .iter()
        .filter_map(|(_, directory)| match Installation::read(directory) {
            Ok(installation) => Some(installation),
            Err(error) => {
                tracing::warn!("left out: {error}");
                None
            }
        })
        .collect();
    found.sort_by_key(Installation::version);
    Ok(found)
}

fn newest_installed(cache: &Cache, wanted: Wanted) -> Result<Option<Installation>, TargetError> {
    Ok(installed(cache)?.into_iter().rfind(|installation| wanted.allows(installation.version)))
}

fn partial(cache: &Cache, version: Version) -> PathBuf {
    cache.installations().join(format!(".{version}.partial"))
}

fn lock_file(cache: &Cache, version: Version) -> PathBuf {
    cache.lock_file(&format!("installation-{version}"))
}
