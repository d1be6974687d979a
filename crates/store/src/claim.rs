//! Claims: the exclusive right to execute a run, as a lock on a file that only exists meanwhile.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::error::StoreError;
use crate::files;
use crate::id;

const PREFIX: &str = ".run-";
const SUFFIX: &str = ".lock";

/// Time in which a sweep has a file locked, and number of times that it is waited for.
const SWEEP_TIME: Duration = Duration::from_millis(10);
const SWEEP_ATTEMPTS: u32 = 5;

/// The exclusive right of this process to execute a run. The lock ends with the process, however that ends.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Claim {
    /// Claims a run of the store in `root`.
    ///
    /// # Errors
    /// Another process has claimed it, or the file can't be written.
    pub(crate) fn new(root: &Path, run: &str) -> Result<Self, StoreError> {
        let path = root.join(format!("{PREFIX}{run}{SUFFIX}"));
        let mut attempts = 0;
        loop {
            let file = files::open_lock(&path).map_err(StoreError::io("open", &path))?;
            match file.try_lock() {
                // Another process may have removed it meanwhile.
                Ok(()) if is_at(&file, &path) => return Ok(Self { path, _file: file }),
                Ok(()) => {}
                // Another process may be sweeping.
                Err(TryLockError::WouldBlock) if attempts < SWEEP_ATTEMPTS => {
                    attempts += 1;
                    thread::sleep(SWEEP_TIME);
                }
                Err(TryLockError::WouldBlock) => return Err(StoreError::Claimed { run: run.to_owned() }),
                Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path)(error)),
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the files of killed processes.
pub(crate) fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let run = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
        if run.is_some_and(id::is_id) {
            // Removes it if nobody has claimed it.
            if let Ok(file) = files::open_own(&entry.path(), File::options().read(true))
                && file.try_lock().is_ok()
                && is_at(&file, &entry.path())
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Whether an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), fs::metadata(path)), (Ok(opened), Ok(found)) if id(&opened) == id(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "01JD7N4Q8ZK3V5X0W2M6T9RBCE";

    #[test]
    fn the_file_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not() {
        let root = tempfile::tempdir().unwrap();
        let count = || fs::read_dir(root.path()).unwrap().count();
        let claim = Claim::new(root.path(), RUN).unwrap();
        sweep(root.path());
        assert_eq!(count(), 1);
        assert!(matches!(Claim::new(root.path(), RUN), Err(StoreError::Claimed { .. })));
        drop(claim);
        assert_eq!(count(), 0);
        // As the kernel does it: the lock is released, the file remains.
        fs::write(root.path().join(format!("{PREFIX}{RUN}{SUFFIX}")), "").unwrap();
        fs::write(root.path().join(".run-notes.lock"), "somebody else's").unwrap();
        sweep(root.path());
        assert_eq!(count(), 1);
        drop(Claim::new(root.path(), RUN).unwrap());
    }
}
