//! Locks between processes: `flock`, which the kernel takes away from the dead.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};

use crate::error::{Doing, Error};

/// A lock that is held as long as this lives. A program started meanwhile does not inherit it.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Waits until nobody else has it.
    pub fn exclusive(path: &Path) -> Result<Self, Error> {
        Self::wait(path, FlockOperation::LockExclusive)
    }

    /// Waits until nobody has it exclusively.
    pub fn shared(path: &Path) -> Result<Self, Error> {
        Self::wait(path, FlockOperation::LockShared)
    }

    /// None where somebody has it.
    pub fn try_exclusive(path: &Path) -> Result<Option<Self>, Error> {
        let file = open(path)?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Self { file })),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error)).doing("lock", path),
            }
        }
    }

    /// Gives its file the present time of change. Where that can't be had, the earlier one stays.
    pub fn touch(&self) {
        let _ = self.file.set_modified(SystemTime::now());
    }

    fn wait(path: &Path, how: FlockOperation) -> Result<Self, Error> {
        let file = open(path)?;
        loop {
            match flock(&file, how) {
                Ok(()) => return Ok(Self { file }),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error)).doing("lock", path),
            }
        }
    }
}

/// Releases it for every descriptor of the open file: a child that another thread forks has a copy until it runs its program.
impl Drop for Lock {
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Lock files stay for good: one that is deleted could be locked by two. Nobody else may open one, for a reader could lock it.
fn open(path: &Path) -> Result<File, Error> {
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .doing("open the lock file", path)?;
    // Earlier versions let all users read it.
    if file.metadata().is_ok_and(|meta| meta.mode() & 0o077 != 0) {
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_can_open_a_lock_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let mode = || path.metadata().unwrap().mode() & 0o777;
        drop(Lock::exclusive(&path).unwrap());
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        drop(Lock::shared(&path).unwrap());
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn a_dropped_lock_is_free_while_a_forked_child_still_has_its_descriptor() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let lock = Lock::exclusive(&path).unwrap();
        let of_the_child = lock.file.try_clone().unwrap();
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        drop(lock);
        assert!(Lock::try_exclusive(&path).unwrap().is_some());
        drop(of_the_child);
    }
}
