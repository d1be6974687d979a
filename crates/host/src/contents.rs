//! Hashes of large files and directories: computed once, and remembered while these do not change.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::cache::Cache;
use crate::error::{Error, IoContext};
use crate::hash::{Fingerprint, OnRead, sha256_with};
use crate::progress::{Progress, check_interrupted};

/// Smaller ones are hashed at once, without progress.
const REMEMBERED_BYTES: u64 = 64 << 20;
/// Interval of progress, in bytes.
const PROGRESS_BYTES: u64 = 16 << 20;
/// A file that changed later may change again without another time of change.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Content of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// SHA-256 in hexadecimal: of a file as `sha256sum` prints it; of a directory over names and contents of its files.
    pub sha256: String,
    /// Size of all files.
    pub bytes: u64,
}

impl Contents {
    /// Reads a file, or all files below a directory; symbolic links in it count by their targets' names. The hash of a
    /// large one is remembered in the cache, by its files' inodes, sizes, and times of modification and change.
    ///
    /// # Errors
    /// It does not exist, or can't be read; the user wants to stop.
    pub fn read(path: &Path, progress: &dyn Progress) -> Result<Self, Error> {
        let path = &fs::canonicalize(path).doing("find", path)?;
        let mut files = Vec::new();
        list(path, &mut files)?;
        let bytes = files.iter().map(|(_, meta)| meta.len()).sum();
        let remembered =
            if bytes < REMEMBERED_BYTES { None } else { memory(path, &files, SystemTime::now()) };
        let known = remembered.as_ref().and_then(|place| fs::read_to_string(place).ok());
        if let Some(sha256) = known.filter(|known| known.len() == 64) {
            return Ok(Self { sha256, bytes });
        }
        let what = format!("reading {} to identify its content", path.display());
        let (mut done, mut reported) = (0, 0);
        let sha256 = hash(path, &files, &mut |read| {
            check_interrupted(progress)?;
            if bytes >= REMEMBERED_BYTES && (done == 0 || done >= reported + PROGRESS_BYTES) {
                progress.step(&what, done, Some(bytes));
                reported = done;
            }
            done += read;
            Ok(())
        })?;
        if let Some(place) = remembered {
            // Without it, the files are read again.
            let _ = fs::write(place, &sha256);
        }
        Ok(Self { sha256, bytes })
    }
}

/// The files at or below a path, in order of their names.
fn list(path: &Path, files: &mut Vec<(PathBuf, Metadata)>) -> Result<(), Error> {
    let meta = fs::symlink_metadata(path).doing("inspect", path)?;
    if !meta.is_dir() {
        if !meta.is_file() && !meta.is_symlink() {
            // Reading a pipe would wait for somebody who writes to it.
            return Err(io::Error::other("it is neither a file nor a directory")).doing("read", path);
        }
        files.push((path.to_owned(), meta));
        return Ok(());
    }
    let mut below = Vec::new();
    for entry in fs::read_dir(path).doing("read the directory", path)? {
        below.push(entry.doing("read the directory", path)?.path());
    }
    below.sort();
    below.iter().try_for_each(|path| list(path, files))
}

fn hash(path: &Path, files: &[(PathBuf, Metadata)], on_read: &mut OnRead<'_>) -> Result<String, Error> {
    if path.is_file() {
        return sha256_with(path, on_read);
    }
    let mut hash = Fingerprint::new();
    for (file, meta) in files {
        hash.add(file.strip_prefix(path).unwrap_or(file).as_os_str().as_encoded_bytes());
        if meta.is_symlink() {
            hash.add(fs::read_link(file).doing("read the link", file)?.as_os_str().as_encoded_bytes());
        } else {
            hash.add_file_with(file, on_read)?;
        }
    }
    Ok(hash.finish())
}

/// The file that remembers the hash of files in this state; none if they have just changed, or there is no cache.
fn memory(path: &Path, files: &[(PathBuf, Metadata)], now: SystemTime) -> Option<PathBuf> {
    let settled = now.checked_sub(SETTLED_AFTER)?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let mut state = Fingerprint::new();
    state.add(path.as_os_str().as_encoded_bytes());
    for (file, meta) in files {
        if meta.ctime() >= i64::try_from(settled.as_secs()).ok()? {
            return None;
        }
        state.add(file.as_os_str().as_encoded_bytes());
        let numbers = [meta.ctime(), meta.ctime_nsec(), meta.mtime(), meta.mtime_nsec()];
        numbers.iter().for_each(|number| state.add(number.to_le_bytes()));
        [meta.dev(), meta.ino(), meta.len()].iter().for_each(|number| state.add(number.to_le_bytes()));
    }
    Some(Cache::open().ok()?.contents().join(state.finish()))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::progress::NoProgress;

    #[test]
    fn a_file_has_the_sum_of_sha256sum_and_a_directory_those_of_its_names_and_files() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a");
        fs::write(&file, "abc").unwrap();
        let contents = Contents::read(&file, &NoProgress).unwrap();
        assert_eq!(contents.bytes, 3);
        assert_eq!(contents.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");

        let directory = || Contents::read(place.path(), &NoProgress).unwrap();
        let first = directory();
        fs::rename(&file, place.path().join("b")).unwrap();
        let renamed = directory();
        fs::write(place.path().join("b"), "abd").unwrap();
        let changed = directory();
        assert!(
            first != renamed && renamed != changed && changed.bytes == 3,
            "{first:?} {renamed:?} {changed:?}"
        );
        fs::write(place.path().join("b"), "abc").unwrap();
        assert_eq!(directory(), renamed, "by content, not by time");
        assert!(Contents::read(&file, &NoProgress).unwrap_err().to_string().contains("/a"));
    }

    #[test]
    fn nobody_waits_for_a_pipe() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [place.path(), &pipe] {
            let refused = Contents::read(path, &NoProgress).unwrap_err().to_string();
            assert!(
                refused.contains("/pipe") && refused.contains("neither a file nor a directory"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_hash_is_remembered_for_one_state_of_the_files() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a");
        let state = |now: SystemTime| {
            let mut files = Vec::new();
            list(place.path(), &mut files).unwrap();
            memory(place.path(), &files, now)
        };
        fs::write(&file, "abc").unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        let (before, modified) = (state(later), fs::metadata(&file).unwrap().modified().unwrap());
        assert!(before.is_some());
        assert_eq!(state(later), before);
        assert_eq!(state(SystemTime::now()), None, "it may change again within the same tick");

        // Another content of the same size, with the former time of modification.
        fs::rename(&file, place.path().join("former")).unwrap();
        fs::write(&file, "abd").unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        fs::remove_file(place.path().join("former")).unwrap();
        assert_ne!(state(later), before);
    }

    /// Keeps steps, and interrupts after the first.
    #[derive(Default)]
    struct Recorder {
        steps: Mutex<Vec<(u64, Option<u64>)>>,
        interrupts: bool,
        has_begun: AtomicBool,
    }

    impl Progress for Recorder {
        fn step(&self, what: &str, done: u64, total: Option<u64>) {
            assert!(what.starts_with("reading ") && what.contains("/dump"), "{what}");
            self.steps.lock().unwrap().push((done, total));
            self.has_begun.store(true, Ordering::Relaxed);
        }

        fn interrupted(&self) -> bool {
            self.interrupts && self.has_begun.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn reading_a_large_file_has_progress_and_can_be_interrupted() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("dump");
        fs::File::create(&file).unwrap().set_len(REMEMBERED_BYTES).unwrap();
        let interrupting = Recorder { interrupts: true, ..Recorder::default() };
        let read = Contents::read(&file, &interrupting);
        assert!(matches!(read, Err(Error::Interrupted)), "{read:?}");
        assert_eq!(*interrupting.steps.lock().unwrap(), [(0, Some(REMEMBERED_BYTES))]);

        let recorder = Recorder::default();
        Contents::read(&file, &recorder).unwrap();
        let expected = (0..4).map(|step| (step * PROGRESS_BYTES, Some(REMEMBERED_BYTES)));
        assert_eq!(*recorder.steps.lock().unwrap(), expected.collect::<Vec<_>>());
    }
}
