//! Installations: the executable programs of a server, with their origin.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::Timestamp;
use model::server::BuildSystem;
use model::version::{Version, VersionRequest};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::programs::stamp::Stamp;
use host::Cache;
use host::IoContext;
use host::Lock;
use host::ServerUser;
use host::files::{create_public_directory, entries, remove_tree};

/// Record next to the binaries. It is written before the directory gets its name, so a named directory is complete.
pub(crate) const RECORD: &str = "installation.json";
/// Log of a build from source.
pub(crate) const BUILD_LOG: &str = "build.log";
/// Programs that every server needs.
const PROGRAMS: [&str; 2] = ["postgres", "initdb"];

/// The programs of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    pub(crate) identity: String,
    pub(crate) version: Version,
    pub(crate) directory: PathBuf,
    pub(crate) programs: PathBuf,
    pub(crate) record: Record,
    /// Only for programs outside the cache.
    pub(crate) stamp: Option<Stamp>,
}

/// `installation.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) format: u32,
    pub(crate) version: String,
    pub(crate) source: Origin,
    /// For a downloaded build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) archive: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha512: Option<String>,
    /// For a build from source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) build: Option<Box<BuildRecord>>,
    /// The extension that was built for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extension: Option<ExtensionRecord>,
    pub(crate) installed: Timestamp,
}

/// An extension that was built for an installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionRecord {
    /// Its name.
    pub name: String,
    /// Directory of its source.
    pub location: PathBuf,
    /// Identity of the source, as [`BuildRecord::content`].
    pub content: String,
}

/// Origin of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A downloaded build.
    Embedded,
    /// Existing programs, used in place.
    Bin,
    /// Built from source.
    Build,
}

/// Source and options of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildRecord {
    /// Source directory or tarball of the first build.
    pub location: PathBuf,
    /// Git ref, if one was given.
    pub git_ref: Option<String>,
    /// Patches applied to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<PathBuf>,
    /// Identity of the source: `tree:` and a git tree's ID, `tarball:` and the file's SHA-256, or `files:` and a
    /// SHA-256 over all files; with patches, `+patch:` and their SHA-256 follow.
    pub content: String,
    /// Build system.
    pub system: BuildSystem,
    /// All arguments of its configuration, including pgdyno's own.
    pub arguments: Vec<String>,
    /// `CFLAGS`.
    pub cflags: String,
    /// The first line of the compiler's `--version`.
    pub compiler: String,
    /// Name of the build directory in the cache's `builds/`.
    pub directory: String,
    /// Builds of the same repository and the same data format run on the same data directories; none if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_format: Option<String>,
}

impl Installation {
    /// A short name of exactly these programs, suitable for files: other programs have another, even of the same
    /// version.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The identity of its data sets: commits of a repository share them as far as their data format is the same.
    pub(crate) fn data_identity(&self) -> String {
        let format = self.build().filter(|build| build.git_ref.is_some() && build.patches.is_empty());
        let format = format.filter(|_| self.record.extension.is_none());
        match format.and_then(|build| build.data_format.as_ref()) {
            Some(format) => format!("{}-data-{format}", self.version),
            None => self.identity.clone(),
        }
    }

    /// Full version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Directory. An installation of the cache has `bin`, `lib` and `share` below it; for programs in place it is the
    /// given directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Origin.
    pub fn origin(&self) -> Origin {
        self.record.source
    }

    /// Base URL of the repository that it was downloaded from; none if it was not.
    pub fn archive(&self) -> Option<&str> {
        self.record.archive.as_deref()
    }

    /// SHA-512 of the downloaded archive, in hexadecimal; none if it was not downloaded.
    pub fn sha512(&self) -> Option<&str> {
        self.record.sha512.as_deref()
    }

    /// Source and options of its build; none if it was not built here.
    pub fn build(&self) -> Option<&BuildRecord> {
        self.record.build.as_deref()
    }

    /// The extension that was built for it.
    pub fn extension(&self) -> Option<&ExtensionRecord> {
        self.record.extension.as_ref()
    }

    /// Log of its build; none if it was not built here.
    pub fn build_log(&self) -> Option<PathBuf> {
        self.build().map(|_| self.directory.join(BUILD_LOG))
    }

    /// Time of its last use.
    pub(crate) fn last_used(&self, cache: &Cache) -> Timestamp {
        let touched = fs::metadata(lock_file(cache, &self.identity)).and_then(|lock| lock.modified());
        touched.ok().and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(self.record.installed)
    }

    /// Time of installation; for programs in place, when `postgres` was last written.
    pub fn installed(&self) -> Timestamp {
        self.record.installed
    }

    /// Path of one of its programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// Lock that prevents its removal while it is used. Its modification time is the time of the last use.
    ///
    /// # Errors
    /// The programs have been removed or replaced.
    pub fn in_use(&self, cache: &Cache) -> Result<Lock, Error> {
        let lock = Lock::shared(&lock_file(cache, &self.identity))?;
        lock.touch();
        match &self.stamp {
            Some(stamp) => self.check_unchanged(stamp)?,
            None if self.directory.is_dir() => {}
            None => return Err(Error::NotInstalled { version: self.identity.clone() }),
        }
        Ok(lock)
    }

    /// Refuses programs that were replaced: their identity would be that of the former ones.
    fn check_unchanged(&self, stamp: &Stamp) -> Result<(), Error> {
        if Stamp::read(&self.program("postgres"))? == *stamp {
            return Ok(());
        }
        Err(Error::Programs {
            directory: self.directory.clone(),
            why: "postgres has been replaced since it was inspected; start again to use the new one"
                .to_owned(),
        })
    }

    fn read(identity: &str, directory: &Path) -> Result<Self, Error> {
        let file = directory.join(RECORD);
        let text = fs::read(&file).doing("read", &file)?;
        let record: Record = serde_json::from_slice(&text).doing("read", &file)?;
        Ok(Self {
            identity: identity.to_owned(),
            version: record.version.parse()?,
            directory: directory.to_owned(),
            programs: directory.join("bin"),
            record,
            stamp: None,
        })
    }
}

impl Origin {
    /// Name: `embedded`, `bin` or `build`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Bin => "bin",
            Self::Build => "build",
        }
    }
}

/// The installation of the cache with this identity, if there is one.
///
/// # Errors
/// Its record can't be read.
pub fn find(cache: &Cache, identity: &str) -> Result<Option<Installation>, Error> {
    let is_valid = !identity.is_empty() && !identity.starts_with('.') && !identity.contains('/');
    let place = cache.installations().join(identity);
    if is_valid && place.is_dir() { Installation::read(identity, &place).map(Some) } else { Ok(None) }
}

/// All installations of the cache, oldest version first.
pub fn installed(cache: &Cache) -> Result<Vec<Installation>, Error> {
    let mut found: Vec<Installation> = entries(&cache.installations())?
        .iter()
        .filter_map(|(identity, directory)| match Installation::read(identity, directory) {
            Ok(installation) => Some(installation),
            Err(error) => {
                tracing::warn!("ignored: {error}");
                None
            }
        })
        .collect();
    found.sort_by_key(Installation::version);
    Ok(found)
}

/// Adds an installation to the cache: `make` creates its files in a new directory next to the final one, which is then
/// renamed if `check` accepts it, so that an interrupted or refused installation has no name. The caller holds the
/// identity's lock.
pub(crate) fn put_in_place(
    cache: &Cache,
    identity: &str,
    record: &Record,
    make: impl FnOnce(&Path) -> Result<(), Error>,
    check: impl FnOnce(&Installation) -> Result<(), Error>,
) -> Result<Installation, Error> {
    let partial = partial(cache, identity);
    remove_tree(&partial)?;
    create_public_directory(&partial)?;
    let place = cache.installations().join(identity);
    let tree = partial.join("tree");
    let outcome = make(&tree)
        .and_then(|()| finish(&tree, record))
        .and_then(|()| check(&Installation::read(identity, &tree)?))
        .and_then(|()| Ok(fs::rename(&tree, &place).doing("rename to", &place)?));
    let cleaned = remove_tree(&partial);
    outcome.and(Ok(cleaned?))?;
    Installation::read(identity, &place)
}

fn finish(tree: &Path, record: &Record) -> Result<(), Error> {
    make_readable(tree)?;
    let file = tree.join(RECORD);
    let text = serde_json::to_string_pretty(record).doing("write", &file)?;
    fs::write(&file, text + "\n").doing("write", &file)?;
    let opened = fs::File::open(tree).doing("open", tree)?;
    Ok(rustix::fs::syncfs(&opened).doing("sync", tree)?)
}

impl Installation {
    /// A program of the installation, run by the server's user in a plain environment, without `PG*` variables and the
    /// user's locale.
    pub(crate) fn command(&self, program: &str, user: &ServerUser) -> Command {
        let mut command = Command::new(self.program(program));
        command.env_clear().env("LC_ALL", "C").env("PATH", "/usr/local/bin:/usr/bin:/bin");
        if let Some(zone) = std::env::var_os("TZ") {
            command.env("TZ", zone);
        }
        user.apply_to(&mut command);
        command
    }
}

/// A required program that is missing from a directory.
pub(crate) fn missing_program(programs: &Path) -> Option<&'static str> {
    PROGRAMS.into_iter().find(|program| !programs.join(program).is_file())
}

/// Makes everything readable by the user that servers run as, regardless of the umask.
fn make_readable(path: &Path) -> Result<(), Error> {
    let meta = fs::symlink_metadata(path).doing("inspect", path)?;
    if meta.is_symlink() {
        return Ok(());
    }
    let executable = meta.is_dir() || meta.permissions().mode() & 0o100 != 0;
    let mode = if executable { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).doing("make readable by all users", path)?;
    if meta.is_dir() {
        for entry in fs::read_dir(path).doing("read the directory", path)? {
            make_readable(&entry.doing("read the directory", path)?.path())?;
        }
    }
    Ok(())
}

/// Matching downloaded versions, oldest first.
pub(crate) fn downloaded(cache: &Cache, wanted: VersionRequest) -> Result<Vec<Installation>, Error> {
    let fits = |found: &Installation| found.origin() == Origin::Embedded && wanted.allows(found.version);
    Ok(installed(cache)?.into_iter().filter(fits).collect())
}

/// Removes leftovers of interrupted installations and removals. Those under way hold their lock.
pub(crate) fn sweep_partial(cache: &Cache) -> Result<Vec<PathBuf>, Error> {
    let mut removed = Vec::new();
    let directory = cache.installations();
    for entry in fs::read_dir(&directory).doing("read the directory", &directory)? {
        let entry = entry.doing("read the directory", &directory)?;
        let name = entry.file_name();
        let Some(identity) = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".partial"))
        else {
            continue;
        };
        if let Some(_lock) = Lock::try_exclusive(&lock_file(cache, identity))? {
            remove_tree(&entry.path())?;
            removed.push(entry.path());
        }
    }
    Ok(removed)
}

pub(crate) fn partial(cache: &Cache, identity: &str) -> PathBuf {
    cache.installations().join(format!(".{identity}.partial"))
}

/// Lock file of an identity.
pub(crate) fn lock_file(cache: &Cache, identity: &str) -> PathBuf {
    cache.lock_file(&format!("installation-{identity}"))
}
