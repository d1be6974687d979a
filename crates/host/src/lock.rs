//! Locks between processes: `flock`, which the kernel takes away from the dead.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};

use crate::error::{Doing, Error};

/// A lock that is held as long as this lives. Children do not inherit it.
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

/// Lock files stay for good: one that is deleted could be locked by two.
fn open(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o644)
        .open(path)
        .doing("open the lock file", path)
}
