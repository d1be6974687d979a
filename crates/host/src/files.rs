//! Directories that other users can pass, and file trees.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Doing, Error};

/// Makes a directory that everybody may pass and read, whatever the umask. Those above that exist stay as they are.
///
/// # Errors
/// It can't be made.
pub fn make_open(directory: &Path) -> Result<(), Error> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(above) = directory.parent() {
        make_open(above)?;
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        outcome => outcome.doing("make the directory", directory)?,
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).doing("open to all", directory)
}

/// Removes a file tree; one that is not there is no error.
///
/// # Errors
/// It can't be removed.
pub fn remove_tree(directory: &Path) -> Result<(), Error> {
    // Somebody else may be taking away the same tree: then entries vanish under the walk.
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

/// Entries of a directory by name, in order; hidden ones are left out.
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
