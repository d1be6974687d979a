//! Locks between processes, by `flock`: the kernel releases those of dead processes.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, IoContext};
use crate::progress::{Progress, check_interrupted};

/// Time after which a wait is reported.
const REPORT_AFTER: Duration = Duration::from_secs(1);
/// Time between attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A lock held until this is dropped. Programs started meanwhile do not inherit it.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Waits for an exclusive lock.
    pub fn exclusive(path: &Path) -> Result<Self, Error> {
        Self::wait(path, FlockOperation::LockExclusive)
    }

    /// Waits for a shared lock.
    pub fn shared(path: &Path) -> Result<Self, Error> {
        Self::wait(path, FlockOperation::LockShared)
    }

    /// Waits for a lock that another process may hold for minutes while it creates `what`. Reports the holder after a
    /// second.
    ///
    /// # Errors
    /// The user interrupts; the file can't be locked.
    pub fn exclusive_for(path: &Path, what: &str, progress: &dyn Progress) -> Result<Self, Error> {
        Self::wait_for(path, FlockOperation::NonBlockingLockExclusive, what, progress)
    }

    /// Returns what `find` finds, or creates it under an exclusive lock. Several processes may do this at once: those that wait
    /// return as soon as one of them has created it, which others may share for hours while they use it. Reports the holder after a
    /// second.
    ///
    /// # Errors
    /// The user interrupts; the file can't be locked; those of `find` and `create`.
    pub fn create_once<T, E: From<Error>>(
        path: &Path,
        what: &str,
        progress: &dyn Progress,
        mut find: impl FnMut() -> Result<Option<T>, E>,
        create: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut wait = Wait::new(path, what, progress);
        loop {
            if let Some(found) = find()? {
                return Ok(found);
            }
            let Some(_lock) = wait.attempt(FlockOperation::NonBlockingLockExclusive)? else { continue };
            return match find()? {
                Some(found) => Ok(found),
                None => create(),
            };
        }
    }

    /// Like [`Self::exclusive_for`], for a shared lock.
    ///
    /// # Errors
    /// The user interrupts; the file can't be locked.
    pub fn shared_for(path: &Path, what: &str, progress: &dyn Progress) -> Result<Self, Error> {
        Self::wait_for(path, FlockOperation::NonBlockingLockShared, what, progress)
    }

    /// Tries an exclusive lock; none if another process has the lock.
    pub fn try_exclusive(path: &Path) -> Result<Option<Self>, Error> {
        Self::attempt(path, FlockOperation::NonBlockingLockExclusive)
    }

    fn wait_for(
        path: &Path,
        operation: FlockOperation,
        what: &str,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let mut wait = Wait::new(path, what, progress);
        loop {
            if let Some(lock) = wait.attempt(operation)? {
                return Ok(lock);
            }
        }
    }

    /// Returns none if another process has the lock.
    fn attempt(path: &Path, operation: FlockOperation) -> Result<Option<Self>, Error> {
        let file = open(path)?;
        loop {
            match flock(&file, operation) {
                Ok(()) => return Ok(Some(Self { file })),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error)).doing("lock", path),
            }
        }
    }

    /// Sets the file's modification time to now, if possible.
    pub fn touch(&self) {
        let _ = self.file.set_modified(SystemTime::now());
    }

    fn wait(path: &Path, operation: FlockOperation) -> Result<Self, Error> {
        let file = open(path)?;
        loop {
            match flock(&file, operation) {
                Ok(()) => return Ok(Self { file }),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error)).doing("lock", path),
            }
        }
    }
}

/// A wait for a lock that is reported once.
struct Wait<'a> {
    path: &'a Path,
    what: &'a str,
    progress: &'a dyn Progress,
    start: Instant,
    is_reported: bool,
}

impl<'a> Wait<'a> {
    fn new(path: &'a Path, what: &'a str, progress: &'a dyn Progress) -> Self {
        Self { path, what, progress, start: Instant::now(), is_reported: false }
    }

    /// Tries the lock; if another process has it, returns none after a pause.
    fn attempt(&mut self, operation: FlockOperation) -> Result<Option<Lock>, Error> {
        if let Some(lock) = Lock::attempt(self.path, operation)? {
            return Ok(Some(lock));
        }
        check_interrupted(self.progress)?;
        if !self.is_reported && self.start.elapsed() >= REPORT_AFTER {
            self.is_reported = true;
            let holder = holder(self.path).unwrap_or_else(|| "another process".to_owned());
            self.progress.notice(&format!("waiting for {}, which {holder} has locked", self.what));
        }
        std::thread::sleep(POLL_INTERVAL);
        Ok(None)
    }
}

/// Unlocks for every descriptor of the open file: a child forked by another thread has a copy until it executes its
/// program.
impl Drop for Lock {
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The process that holds the lock of a file, with its command. Source: proc(5), `/proc/locks`.
fn holder(path: &Path) -> Option<String> {
    let inode = path.metadata().ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let held = locks.lines().find_map(|line| {
        // `5: FLOCK  ADVISORY  WRITE 4711 08:01:1234567 0 EOF`; a process that waits has `->` after the number.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[_, "FLOCK", _, _, pid, place, ..] = fields.as_slice() else { return None };
        (place.rsplit(':').next() == Some(&inode)).then(|| pid.to_owned())
    })?;
    let command = fs::read(format!("/proc/{held}/cmdline")).unwrap_or_default();
    let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let command = words.join(" ");
    Some(match command.trim() {
        "" => format!("process {held}"),
        command => format!("process {held} ({command})"),
    })
}

/// Lock files are never deleted, because two processes could then hold the lock. Only the owner may open one, because
/// any reader could lock it.
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
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;
    use crate::progress::NoProgress;

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
        let childs_descriptor = lock.file.try_clone().unwrap();
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        drop(lock);
        assert!(Lock::try_exclusive(&path).unwrap().is_some());
        drop(childs_descriptor);
    }

    #[derive(Default)]
    struct Notices(Mutex<Vec<String>>, AtomicBool);

    impl Progress for Notices {
        fn step(&self, _: &str, _: u64, _: Option<u64>) {}

        fn interrupted(&self) -> bool {
            self.1.load(Ordering::Relaxed)
        }

        fn notice(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
            self.1.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_waits_to_create_something_returns_when_another_has_created_it_and_still_uses_it() {
        let directory = tempfile::tempdir().unwrap();
        let (path, place) = (directory.path().join("lock"), directory.path().join("place"));
        let find = || Ok::<_, Error>(place.exists().then_some("found"));
        let used = Lock::shared(&path).unwrap();
        let polls = AtomicU32::new(0);
        let found = Lock::create_once(
            &path,
            "the data set",
            &NoProgress,
            || {
                if polls.fetch_add(1, Ordering::Relaxed) == 3 {
                    std::fs::write(&place, "").unwrap();
                }
                find()
            },
            || panic!("another process has the lock"),
        );
        assert_eq!((found.unwrap(), polls.load(Ordering::Relaxed)), ("found", 4));
        // Without waiting, and without the lock.
        assert_eq!(Lock::create_once(&path, "", &NoProgress, find, || panic!("it exists")).unwrap(), "found");
        drop(used);
        std::fs::remove_file(&place).unwrap();
        let create = || {
            assert!(Lock::try_exclusive(&path).unwrap().is_none(), "only one creates it");
            Ok("created")
        };
        assert_eq!(Lock::create_once(&path, "", &NoProgress, find, create).unwrap(), "created");
    }

    #[test]
    fn a_long_wait_is_reported_with_the_holder_and_ends_when_interrupted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let notices = Notices::default();
        drop(Lock::exclusive_for(&path, "the data set", &notices).unwrap());
        assert!(notices.0.lock().unwrap().is_empty());
        let held = Lock::exclusive(&path).unwrap();
        let error = Lock::shared_for(&path, "the data set", &notices).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{error}");
        let notices = notices.0.into_inner().unwrap();
        let own = std::process::id();
        let start = format!("waiting for the data set, which process {own} (");
        assert!(notices.len() == 1 && notices[0].starts_with(&start), "{notices:?}");
        drop(held);
    }
}
