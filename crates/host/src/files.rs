//! Directories accessible to other users, and file trees.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use tempfile::NamedTempFile;

use crate::error::{Error, IoContext};

/// Creates a directory that all users can search and read, regardless of the umask. Existing parents are unchanged.
///
/// # Errors
/// The directory can't be created.
pub fn create_public_directory(directory: &Path) -> Result<(), Error> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(above) = directory.parent() {
        create_public_directory(above)?;
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        outcome => outcome.doing("create the directory", directory)?,
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))
        .doing("make readable by all users", directory)
}

/// Writes a file in a directory that other processes may write to. Anything else at its path, such as a symbolic link
/// or a FIFO, is removed first.
///
/// # Errors
/// It can't be written.
pub fn write_regular(path: &Path, content: &[u8]) -> io::Result<()> {
    remove_irregular(path)?;
    let flags = OFlags::NOFOLLOW.bits() as i32;
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).custom_flags(flags).open(path)?;
    file.write_all(content)
}

/// Replaces a file, in a directory that no other user can write to, with one that only its owner can read.
///
/// # Errors
/// It can't be written; the file is then as it was.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new(""));
    // Of mode 0600.
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}

/// Removes a path that is not a regular file.
///
/// # Errors
/// It can't be removed.
pub fn remove_irregular(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(meta) if !meta.is_file() => fs::remove_file(path),
        _ => Ok(()),
    }
}

/// Opens a regular file in a directory that other processes may write to, without following a symbolic link or waiting
/// for the other end of a FIFO.
///
/// # Errors
/// It is missing, not a regular file, or can't be opened.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_regular_at(CWD, path)
}

/// Like [`open_regular`], in an open directory, whose path other processes may meanwhile have given to another one.
///
/// # Errors
/// As [`open_regular`].
pub fn open_regular_at(directory: impl AsFd, name: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(directory, name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

/// Text of a small file, opened like [`open_regular`]: its first 64 KiB.
///
/// # Errors
/// As [`open_regular`]; it is not UTF-8.
pub fn read_regular(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.take(64 << 10).read_to_string(&mut text)?;
    Ok(text)
}

/// Removes a file tree; a missing one is no error.
///
/// # Errors
/// It can't be removed.
pub fn remove_tree(directory: &Path) -> Result<(), Error> {
    // Another process may be removing the same tree, so that entries vanish during the walk.
    for _ in 0..3 {
        match fs::remove_dir_all(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !directory.exists() => {
                return Ok(());
            }
            Err(_) => {}
        }
    }
    fs::remove_dir_all(directory).doing("remove", directory)
}

/// Entries of a directory, sorted by name, without hidden ones.
///
/// # Errors
/// It can't be read.
pub fn entries(directory: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).doing("read the directory", directory)? {
        let entry = entry.doing("read the directory", directory)?;
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_replaces_one_that_all_could_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let mut reader = File::open(&path).unwrap();
        write_private(&path, b"secret").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(&path).unwrap(), b"secret");
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "before", "whoever opened the former file does not read the new one");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
