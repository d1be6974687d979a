//! Kernels of the cache: unpacked packages with the labels that stand for them, and those built from commits.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::kernel::apt;
use crate::kernel::choice::Wanted;
use crate::kernel::package::Package;
use crate::kernel::{Kernel, image};
use host::Cache;
use host::IoContext;
use host::Lock;
use host::files::{entries, remove_tree};
use host::sha256;
use host::{Progress, check_interrupted};

/// Record next to the unpacked files. It is written before the directory gets its name, so a named directory is
/// complete.
const RECORD: &str = "kernel.json";
/// Prefix of images in a package, before the release.
const IMAGE: &str = "vmlinuz-";

/// A kernel of the cache, as listed.
#[derive(Clone, Debug)]
pub struct StoredKernel {
    /// The kernel; its label is the package's name, or its origin.
    pub kernel: Kernel,
    /// Labels that stand for it; none for one that was built.
    pub labels: Vec<String>,
    /// Where it is from.
    pub origin: KernelOrigin,
    /// Directory.
    pub directory: PathBuf,
    /// Bytes of its files.
    pub bytes: u64,
    /// Time at which it was fetched or built.
    pub fetched: Timestamp,
}

/// Where a kernel of the cache is from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum KernelOrigin {
    /// A package.
    Package {
        /// Its name.
        package: String,
        /// Its version.
        version: String,
        /// SHA-256 of each downloaded file, by name.
        files: Vec<(String, String)>,
    },
    /// A commit.
    Build {
        /// What it was built from.
        build: KernelBuild,
    },
}

/// What a kernel was built from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelBuild {
    /// The git repository.
    pub repository: PathBuf,
    /// ID of the commit of the first build; others may have the same tree.
    pub commit: String,
    /// ID of its tree.
    pub tree: String,
    /// The given configuration's SHA-256; none for the default one.
    pub config: Option<String>,
    /// The first line of the compiler's `--version`.
    pub compiler: String,
    /// Name of the build directory in the cache's `builds/`.
    pub directory: String,
}

/// `kernel.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    format: u32,
    #[serde(flatten)]
    origin: KernelOrigin,
    release: String,
    /// SHA-256 of the image.
    image: String,
    fetched: Timestamp,
}

impl Record {
    /// The record of a complete tree.
    pub(super) fn new(origin: KernelOrigin, release: String, tree: &Path) -> Result<Self, Error> {
        let image = sha256(&image_of(tree, &release))?;
        Ok(Self { format: 1, origin, release, image, fetched: Timestamp::now() })
    }

    fn package(&self) -> Option<Package> {
        match &self.origin {
            KernelOrigin::Package { package, version, .. } => Some(Package::named(package, version)),
            KernelOrigin::Build { .. } => None,
        }
    }
}

impl KernelOrigin {
    /// Digits by which a commit is named.
    const DIGITS: usize = 12;

    /// What it was built from; none for a package.
    pub fn build(&self) -> Option<&KernelBuild> {
        match self {
            Self::Package { .. } => None,
            Self::Build { build } => Some(build),
        }
    }

    /// A package with its version, or a repository with a commit.
    fn text(&self) -> String {
        match self {
            Self::Package { package, version, .. } => format!("{package} {version}"),
            Self::Build { build: KernelBuild { repository, commit, .. } } => {
                let short: String = commit.chars().take(Self::DIGITS).collect();
                format!("{}@{short}", repository.display())
            }
        }
    }

    /// Name of all kernels of a package, or of this one.
    fn label(&self) -> String {
        match self {
            Self::Package { package, .. } => package.clone(),
            Self::Build { .. } => self.text(),
        }
    }
}

/// Kernel that a label was resolved to; for a package's name, also one fetched by another label. None if it was not
/// resolved, or its kernel was removed.
pub(crate) fn find(cache: &Cache, wanted: &Wanted) -> Result<Option<Kernel>, Error> {
    let link = cache.kernel_labels().join(wanted.label());
    match fs::read_link(&link) {
        Ok(id) => {
            let id = id.to_string_lossy();
            open(cache, wanted.label(), &id, Lock::shared(&lock_file(cache, &id))?)
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Ok(Err(error).doing("read the link", &link)?)
        }
        Err(_) if wanted.is_name() => newest(cache, wanted),
        Err(_) => Ok(None),
    }
}

/// The packages of the cache.
pub(crate) fn packages(cache: &Cache) -> Result<Vec<Package>, Error> {
    Ok(records(cache)?.into_iter().filter_map(|(_, record)| record.package()).collect())
}

/// Newest kernel of the cache that matches a label, which stands for it from now on.
pub(crate) fn newest(cache: &Cache, wanted: &Wanted) -> Result<Option<Kernel>, Error> {
    let all = records(cache)?.into_iter().filter_map(|(id, record)| Some((id, record.package()?)));
    let matching = all.filter(|(_, package)| wanted.matches(package));
    let Some((id, _)) = matching.max_by(|(_, a), (_, b)| wanted.compare(a, b)) else { return Ok(None) };
    let found = open(cache, wanted.label(), &id, Lock::shared(&lock_file(cache, &id))?)?;
    if found.is_some() {
        label(cache, wanted, &id)?;
    }
    Ok(found)
}

/// Fetches a package if the cache lacks it, and makes the label stand for it.
pub(crate) fn get(
    cache: &Cache,
    wanted: &Wanted,
    package: &Package,
    progress: &dyn Progress,
) -> Result<Kernel, Error> {
    let id = format!("{}_{}", package.name, package.version);
    let what = format!("the kernel {id}");
    loop {
        let lock = Lock::shared_for(&lock_file(cache, &id), &what, progress)?;
        if let Some(kernel) = open(cache, wanted.label(), &id, lock)? {
            label(cache, wanted, &id)?;
            return Ok(kernel);
        }
        put(cache, &id, progress, |files, tree| fetch(wanted, package, files, tree, progress))?;
    }
}

/// The kernel that was built under an ID; none if there is none.
pub(super) fn built(
    cache: &Cache,
    label: &str,
    id: &str,
    progress: &dyn Progress,
) -> Result<Option<Kernel>, Error> {
    let what = format!("the kernel {label}");
    open(cache, label, id, Lock::shared_for(&lock_file(cache, id), &what, progress)?)
}

/// Has a kernel filled into a tree next to its place, with a directory for other files, and renames it. Does nothing if the cache has
/// it: another process may have been quicker.
pub(super) fn put(
    cache: &Cache,
    id: &str,
    progress: &dyn Progress,
    fill: impl FnOnce(&Path, &Path) -> Result<Record, Error>,
) -> Result<(), Error> {
    let place = cache.kernels().join(id);
    let find = || Ok(place.is_dir().then_some(()));
    let create = || fill_and_rename(&partial(cache, id), &place, progress, fill);
    Lock::create_once(&lock_file(cache, id), &format!("the kernel {id}"), progress, find, create)
}

fn fill_and_rename(
    partial: &Path,
    place: &Path,
    progress: &dyn Progress,
    fill: impl FnOnce(&Path, &Path) -> Result<Record, Error>,
) -> Result<(), Error> {
    check_interrupted(progress)?;
    remove_tree(partial)?;
    let (files, tree) = (partial.join("files"), partial.join("tree"));
    let fill = || {
        for directory in [&files, &tree] {
            fs::create_dir_all(directory).doing("create the directory", directory)?;
        }
        let record = fill(&files, &tree)?;
        let file = tree.join(RECORD);
        let text = serde_json::to_string_pretty(&record).doing("write", &file)?;
        fs::write(&file, text + "\n").doing("write", &file)?;
        let opened = fs::File::open(&tree).doing("open", &tree)?;
        rustix::fs::syncfs(&opened).doing("sync", &tree)?;
        Ok(fs::rename(&tree, place).doing("rename to", place)?)
    };
    let outcome = fill();
    let cleaned = remove_tree(partial);
    outcome.and(Ok(cleaned?))
}

/// Downloads and unpacks a package.
fn fetch(
    wanted: &Wanted,
    package: &Package,
    files: &Path,
    tree: &Path,
    progress: &dyn Progress,
) -> Result<Record, Error> {
    let downloaded = apt::download(wanted, package, files, progress)?;
    progress.step(&format!("unpacking {}", package.name), 0, None);
    let mut sums = Vec::new();
    for file in &downloaded {
        apt::unpack(wanted, file, tree, progress)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        sums.push((name, sha256(file)?));
    }
    let (package, version) = (package.name.clone(), package.version.clone());
    let release = release(tree).ok_or_else(|| Error::Kernel {
        kernel: format!("{package} {version}"),
        why: format!("its package contains no boot/{IMAGE}RELEASE; name another package"),
    })?;
    Record::new(KernelOrigin::Package { package, version, files: sums }, release, tree)
}

/// The release of the kernel in an unpacked package.
fn release(tree: &Path) -> Option<String> {
    let files = entries(&tree.join("boot")).ok()?;
    let releases = files.iter().filter_map(|(name, _)| name.strip_prefix(IMAGE));
    releases.filter(|release| image::is_release(release)).map(str::to_owned).next()
}

/// Place of the image in the tree of a kernel.
pub(super) fn image_of(tree: &Path, release: &str) -> PathBuf {
    tree.join("boot").join(format!("{IMAGE}{release}"))
}

/// The kernel in a directory of the cache, kept in use by a lock; none if it is missing.
fn open(cache: &Cache, label: &str, id: &str, lock: Lock) -> Result<Option<Kernel>, Error> {
    let directory = cache.kernels().join(id);
    if !directory.is_dir() {
        return Ok(None);
    }
    let kernel = read(&directory)?.kernel(&directory);
    Ok(Some(Kernel { label: label.to_owned(), _in_use: Some(Arc::new(lock)), ..kernel }))
}

impl Record {
    fn kernel(&self, directory: &Path) -> Kernel {
        let modules =
            ["lib/modules", "usr/lib/modules"].map(|place| directory.join(place).join(&self.release));
        let config = directory.join("boot").join(format!("config-{}", self.release));
        Kernel {
            label: self.origin.label(),
            release: self.release.clone(),
            image: image_of(directory, &self.release),
            modules: modules.into_iter().find(|modules| modules.is_dir()),
            config: config.is_file().then_some(config),
            origin: self.origin.text(),
            identity: self.image.clone(),
            _in_use: None,
        }
    }
}

fn read(directory: &Path) -> Result<Record, Error> {
    let file = directory.join(RECORD);
    let text = fs::read(&file).doing("read", &file)?;
    Ok(serde_json::from_slice(&text).doing("read", &file)?)
}

/// Makes a label stand for a kernel of the cache, atomically.
fn label(cache: &Cache, wanted: &Wanted, id: &str) -> Result<(), Error> {
    let labels = cache.kernel_labels();
    let link = labels.join(wanted.label());
    if fs::read_link(&link).is_ok_and(|stands_for| stands_for.as_os_str() == id) {
        return Ok(());
    }
    let _lock = Lock::exclusive(&cache.lock_file("kernel-labels"))?;
    let new = labels.join(".new");
    let _ = fs::remove_file(&new);
    symlink(id, &new).doing("create the link", &new)?;
    Ok(fs::rename(&new, &link).doing("rename to", &link)?)
}

/// All kernels of the cache, by package name.
///
/// # Errors
/// The cache can't be read.
pub fn kernels(cache: &Cache) -> Result<Vec<StoredKernel>, Error> {
    let labels = labels(cache)?;
    let stored = |(id, record): (String, Record)| {
        let directory = cache.kernels().join(&id);
        let stand_for_it = labels.iter().filter(|(_, stands_for)| *stands_for == id);
        StoredKernel {
            kernel: record.kernel(&directory),
            labels: stand_for_it.map(|(label, _)| label.clone()).collect(),
            origin: record.origin,
            bytes: size(&directory),
            directory,
            fetched: record.fetched,
        }
    };
    Ok(records(cache)?.into_iter().map(stored).collect())
}

/// Removes a kernel of the cache with its labels.
///
/// # Errors
/// It is in use.
pub(super) fn remove(cache: &Cache, stored: &StoredKernel) -> Result<(), Error> {
    let id = stored.directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some(_lock) = Lock::try_exclusive(&lock_file(cache, &id))? else {
        let what = format!("the kernel {}", stored.kernel.origin);
        return Err(Error::InUse { what, by: "another pgdyno".to_owned() });
    };
    for label in &stored.labels {
        let link = cache.kernel_labels().join(label);
        match fs::remove_file(&link) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            outcome => outcome.doing("remove", &link)?,
        }
    }
    // Renamed first, so that a partly removed kernel does not count as one.
    let partial = partial(cache, &id);
    remove_tree(&partial)?;
    fs::rename(&stored.directory, &partial).doing("remove", &stored.directory)?;
    Ok(remove_tree(&partial)?)
}

/// Removes leftovers of interrupted fetches, builds and removals of kernels; those under way hold their lock. Returns them.
///
/// # Errors
/// Something can't be removed.
pub fn sweep(cache: &Cache) -> Result<Vec<PathBuf>, Error> {
    let mut removed = Vec::new();
    let directory = cache.kernels();
    for entry in fs::read_dir(&directory).doing("read the directory", &directory)? {
        let entry = entry.doing("read the directory", &directory)?;
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".partial")) else {
            continue;
        };
        if let Some(_lock) = Lock::try_exclusive(&lock_file(cache, id))? {
            remove_tree(&entry.path())?;
            removed.push(entry.path());
        }
    }
    Ok(removed)
}

/// All labels, with the kernels that they stand for.
fn labels(cache: &Cache) -> Result<Vec<(String, String)>, Error> {
    let links = entries(&cache.kernel_labels())?.into_iter();
    Ok(links
        .filter_map(|(label, link)| Some((label, fs::read_link(link).ok()?.to_str()?.to_owned())))
        .collect())
}

/// Kernels of the cache with their records, without unreadable ones.
fn records(cache: &Cache) -> Result<Vec<(String, Record)>, Error> {
    let read = |(id, directory): (String, PathBuf)| match read(&directory) {
        Ok(record) => Some((id, record)),
        Err(error) => {
            tracing::warn!("ignored: {error}");
            None
        }
    };
    Ok(entries(&cache.kernels())?.into_iter().filter_map(read).collect())
}

/// Bytes of the files below a directory; unreadable ones count as 0.
fn size(directory: &Path) -> u64 {
    let Ok(found) = fs::read_dir(directory) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    found.flatten().map(bytes).sum()
}

fn partial(cache: &Cache, id: &str) -> PathBuf {
    cache.kernels().join(format!(".{id}.partial"))
}

fn lock_file(cache: &Cache, id: &str) -> PathBuf {
    cache.lock_file(&format!("kernel-{id}"))
}
