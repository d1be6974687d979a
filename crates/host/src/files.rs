//! Directories accessible to other users, and file trees.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

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
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).custom_flags(flags).open(path)?;
    file.write_all(content)
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
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
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
