//! Scratch directories: temporary directories in the cache, which the next sweep removes if their process is killed.

use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::cache::Cache;
use crate::error::{Error, IoContext};
use crate::files::{entries, remove_tree};
use crate::lock::Lock;

/// Lock held by the owner of a directory, within it.
const OWNER_LOCK: &str = "owner.lock";

/// A temporary directory that only its owner can read. It is removed when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
    _owner: Lock,
}

impl Scratch {
    /// Creates a directory that contains nothing but its lock.
    ///
    /// # Errors
    /// It can't be created.
    pub fn new(cache: &Cache) -> Result<Self, Error> {
        let _lock = lock(cache)?;
        let scratch = cache.scratch();
        let directory = tempfile::Builder::new()
            .prefix("s-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&scratch)
            .doing("create a directory in", &scratch)?;
        let owner = Lock::exclusive(&directory.path().join(OWNER_LOCK))?;
        Ok(Self { directory, _owner: owner })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Removes the directories of dead processes, and returns them.
    ///
    /// # Errors
    /// One of them can't be removed.
    pub fn sweep(cache: &Cache) -> Result<Vec<PathBuf>, Error> {
        let _lock = lock(cache)?;
        let mut removed = Vec::new();
        for (_, directory) in entries(&cache.scratch())? {
            let owner_lock = directory.join(OWNER_LOCK);
            let is_abandoned = match Lock::try_exclusive(&owner_lock) {
                Ok(lock) => lock.is_some(),
                // Its owner is removing it.
                Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => false,
                Err(error) => return Err(error),
            };
            if is_abandoned {
                remove_tree(&directory)?;
                removed.push(directory);
            }
        }
        Ok(removed)
    }
}

/// Lock for creating and scanning directories: while it is held, one without an owner is abandoned.
fn lock(cache: &Cache) -> Result<Lock, Error> {
    Lock::exclusive(&cache.lock_file("scratch"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_directory_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        let cache = Cache::at(root.path()).unwrap();
        let living = Scratch::new(&cache).unwrap();
        assert_eq!(fs::metadata(living.path()).unwrap().permissions().mode() & 0o777, 0o700);
        // As the kernel does it: the lock is released, the directory remains.
        let Scratch { directory, _owner } = Scratch::new(&cache).unwrap();
        let killed = directory.keep();
        drop(_owner);
        assert_eq!(Scratch::sweep(&cache).unwrap(), [killed]);
        assert!(living.path().exists());
        drop(living);
        assert_eq!(fs::read_dir(cache.scratch()).unwrap().count(), 0);
    }
}
