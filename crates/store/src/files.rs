//! The files of a bundle: in memory, and read from its directory.
//!
//! A bundle may come from elsewhere. Only regular files are opened, never through a symbolic link, and no file is read
//! beyond the size that its kind may have: a pipe in place of a file must not block the reader, nor a large file fill its
//! memory.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::error::Defect;

/// Contents of files by path within the bundle. An empty file is absent.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Most bytes of a document, such as `trial.json`: a hundred times the largest ones, which have a workload's scripts.
const MAX_DOCUMENT_BYTES: u64 = 64 << 20;
/// Most bytes of a table, or of a file that grows with the load: ten times those of a day with 400 metrics.
const MAX_TABLE_BYTES: u64 = 1 << 30;
/// Endings of files that grow with the load.
const TABLES: [&str; 4] = [".parquet", ".hlog", ".jsonl", ".zst"];

/// Most bytes of a file with this name.
pub(crate) fn max_bytes(name: &str) -> u64 {
    if TABLES.iter().any(|ending| name.ends_with(ending)) { MAX_TABLE_BYTES } else { MAX_DOCUMENT_BYTES }
}

/// Reads a file of a bundle.
pub(crate) fn read(bundle: &Path, name: &str) -> Result<Vec<u8>, Defect> {
    let read = open(bundle, name).and_then(|file| read_open(&file, max_bytes(name)));
    read.map_err(|error| match error {
        ReadError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            Defect::damaged(name, "it is missing")
        }
        error => Defect::damaged(name, error),
    })
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("it is {0}, not a file")]
    NotAFile(&'static str),
    #[error("it has {bytes} bytes; such a file has at most {most}")]
    TooLarge { bytes: u64, most: u64 },
    #[error("it can't be read: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for ReadError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            other => Self::other(other),
        }
    }
}

/// Opens a file below a directory, following no link.
fn open(directory: &Path, name: &str) -> Result<File, ReadError> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The bundle itself may be a link: a store may be spread over disks.
    let mut folder_of_file = openat(CWD, directory, folder, Mode::empty())?;
    let mut file = name;
    while let Some((part, rest)) = file.split_once('/') {
        folder_of_file = openat(&folder_of_file, part, folder | OFlags::NOFOLLOW, Mode::empty())?;
        file = rest;
    }
    // Opening a device may have effects.
    require_file(&statat(&folder_of_file, file, AtFlags::SYMLINK_NOFOLLOW)?)?;
    Ok(openat(&folder_of_file, file, OFlags::RDONLY | OFlags::CLOEXEC | UNTRUSTED, Mode::empty())?.into())
}

/// Flags for what may be no file: it does not wait for the writer of a pipe, follows no link, and becomes no terminal of
/// the process.
const UNTRUSTED: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::NOCTTY);

fn require_file(is: &Stat) -> Result<(), ReadError> {
    match FileType::from_raw_mode(is.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(ReadError::NotAFile("a symbolic link")),
        FileType::Directory => Err(ReadError::NotAFile("a directory")),
        FileType::Fifo => Err(ReadError::NotAFile("a pipe")),
        FileType::Socket => Err(ReadError::NotAFile("a socket")),
        _ => Err(ReadError::NotAFile("a device")),
    }
}

/// Reads a file of at most `most` bytes.
fn read_open(file: &File, most: u64) -> Result<Vec<u8>, ReadError> {
    let is = fstat(file)?;
    require_file(&is)?;
    let bytes = u64::try_from(is.st_size).unwrap_or(0);
    if bytes > most {
        return Err(ReadError::TooLarge { bytes, most });
    }
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    // It may grow meanwhile.
    file.take(most + 1).read_to_end(&mut content)?;
    match content.len() as u64 {
        bytes if bytes > most => Err(ReadError::TooLarge { bytes, most }),
        _ => Ok(content),
    }
}

/// Opens a file of the store itself, such as a lock.
pub(crate) fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.custom_flags(UNTRUSTED.bits().cast_signed()).open(path)
}

/// Opens a lock file of the store, and creates it if necessary. Whoever can open a file can lock it, so that only those can
/// open it who can write to its directory.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = open_own(path, options.create(true).truncate(false).read(true).write(true).mode(0o600))?;
    let directory = fs::metadata(path.parent().unwrap_or(Path::new("/")))?;
    let writers = directory.mode() & 0o222;
    let (mode, is) = (0o600 | writers | (writers << 1), file.metadata()?);
    // Created just now, or by an earlier release. Some file systems have no modes.
    if is.mode() & 0o777 != mode && is.uid() == geteuid().as_raw() {
        let _ = file.set_permissions(Permissions::from_mode(mode));
    }
    Ok(file)
}

/// Reads a file of the store itself.
pub(crate) fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_own(path, File::options().read(true))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(read_open(&file, max_bytes(&name))?)
}
