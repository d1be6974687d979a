//! Copying a data directory: sharing blocks if the file system can (FICLONE), else bypassing the page cache, with
//! several threads.
//!
//! `O_DIRECT`, because a data directory may be as large as memory: through the page cache, the copy would evict its
//! content, and would still have to be written to disk before anything is measured.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::data::blocks::{Job, copy_blocks, reserve};
use crate::error::Error;
use host::Doing;
use host::ServerUser;
use host::files::{make_regular, open_regular, remove_tree};
use host::{Progress, unless_interrupted};

/// Files below this size are copied through the page cache; they are written back quickly.
const LARGE_BYTES: u64 = 1 << 20;

/// Cost of copying a data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Copied {
    /// Bytes of files that share their blocks with the original (reflink).
    pub reflinked_bytes: u64,
    /// Bytes of files that were copied.
    pub copied_bytes: u64,
    /// Bytes of files that were unchanged.
    pub kept_bytes: u64,
    /// Wall time in seconds.
    pub seconds: f64,
}

/// State in which files were left: inode and time of the last change of content, attributes or name (ctime), which no
/// program can set. A file with the same stamp has not been modified.
pub(crate) type Stamps = HashMap<PathBuf, Stamp>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn new(meta: &Metadata) -> Self {
        Self { inode: meta.ino(), changed: (meta.ctime(), meta.ctime_nsec()) }
    }
}

/// Makes one tree of directories and files equal to another, including modes, and owned by the server's user. A file is
/// kept if it has not been modified since it was left with these `stamps`, and its original has not changed either,
/// judged by its size and modification time, which a copy takes over. A data directory that a server has modified is
/// thus restored by writing only the changes.
///
/// On return, the bulk of it has been written to disk, so that write-back does not continue during a measurement. It
/// would not survive a crash of the machine, and need not.
///
/// # Errors
/// A file can't be read or written; the user wants to stop. What was copied by then remains, and the next call corrects
/// it.
pub(crate) fn make_alike(
    from: &Path,
    to: &Path,
    user: &ServerUser,
    stamps: &mut Stamps,
    what: &str,
    progress: &dyn Progress,
) -> Result<Copied, Error> {
    let begun = Instant::now();
    if !to.try_exists().doing("look at", to)? {
        fs::create_dir(to).doing("make the directory", to)?;
        user.own(to)?;
    }
    let mut copying = Copying {
        progress,
        before: std::mem::take(stamps),
        stamps,
        large: Vec::new(),
        copied: Copied::default(),
    };
    // Processes of the server's user may have replaced any file with a link to another user's.
    let copied = user.act(|| {
        copying.directory(from, to)?;
        copying.large(what)?;
        Ok(copying.copied)
    })?;
    copied.map(|copied| Copied { seconds: begun.elapsed().as_secs_f64(), ..copied })
}

struct Copying<'a> {
    progress: &'a dyn Progress,
    /// Stamps of the last copy.
    before: Stamps,
    /// Stamps of this copy.
    stamps: &'a mut Stamps,
    /// Files yet to be copied.
    large: Vec<Job>,
    copied: Copied,
}

impl Copying<'_> {
    fn directory(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        match fs::symlink_metadata(to) {
            Ok(there) if there.is_dir() => remove_strangers(from, to)?,
            Ok(_) => {
                fs::remove_file(to).doing("remove", to)?;
                fs::create_dir(to).doing("make the directory", to)?;
            }
            Err(_) => fs::create_dir(to).doing("make the directory", to)?,
        }
        for entry in fs::read_dir(from).doing("read the directory", from)? {
            let entry = entry.doing("read the directory", from)?;
            let kind = entry.file_type().doing("look at", &entry.path())?;
            let copy = to.join(entry.file_name());
            if kind.is_dir() {
                self.directory(&entry.path(), &copy)?;
            } else if kind.is_file() {
                self.file(&entry.path(), &copy)?;
            }
        }
        let mode = fs::metadata(from).doing("look at", from)?.permissions();
        Ok(fs::set_permissions(to, mode).doing("set the mode of", to)?)
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let wanted = fs::metadata(from).doing("look at", from)?;
        if let (Some(&stamp), Ok(there)) = (self.before.get(to), fs::symlink_metadata(to))
            && Stamp::new(&there) == stamp
            && is_alike(&there, &wanted)
        {
            self.stamps.insert(to.to_owned(), stamp);
            self.copied.kept_bytes += wanted.len();
            return Ok(());
        }
        unless_interrupted(self.progress)?;
        let mut source = open_regular(from).doing("read", from)?;
        make_regular(to).doing("remove", to)?;
        let mut copy = to_write().create(true).mode(wanted.mode() & 0o777).open(to).doing("write", to)?;
        if rustix::fs::ioctl_ficlone(&copy, &source).is_ok() {
            self.copied.reflinked_bytes += wanted.len();
        } else if wanted.len() < LARGE_BYTES {
            io::copy(&mut source, &mut copy).doing("copy to", to)?;
            self.copied.copied_bytes += wanted.len();
        } else {
            reserve(&copy, wanted.len()).doing("make room for", to)?;
            self.large.push(Job { from: from.to_owned(), to: to.to_owned(), bytes: wanted.len() });
            return Ok(());
        }
        self.finish(&copy, to, &wanted)
    }

    fn large(&mut self, what: &str) -> Result<(), Error> {
        let jobs = std::mem::take(&mut self.large);
        copy_blocks(&jobs, what, self.progress)?;
        for Job { from, to, bytes } in jobs {
            let wanted = fs::metadata(&from).doing("look at", &from)?;
            let copy = to_write().open(&to).doing("write", &to)?;
            self.finish(&copy, &to, &wanted)?;
            self.copied.copied_bytes += bytes;
        }
        Ok(())
    }

    /// Sets the rest of a file that has its content: length, owner, mode, modification time.
    fn finish(&mut self, copy: &File, to: &Path, wanted: &Metadata) -> Result<(), Error> {
        let stamp = copy
            .set_len(wanted.len())
            .and_then(|()| copy.set_permissions(fs::Permissions::from_mode(wanted.mode() & 0o7777)))
            .and_then(|()| copy.set_modified(wanted.modified()?))
            .and_then(|()| copy.metadata())
            .map(|left| Stamp::new(&left))
            .doing("write", to)?;
        self.stamps.insert(to.to_owned(), stamp);
        Ok(())
    }
}

/// Opens a file of the copy for writing, without following symbolic links.
fn to_write() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).truncate(false).custom_flags(libc::O_NOFOLLOW);
    options
}

fn is_alike(there: &Metadata, wanted: &Metadata) -> bool {
    let key = |meta: &Metadata| (meta.len(), meta.mtime(), meta.mtime_nsec());
    key(there) == key(wanted)
}

/// Removes what only the copy has.
fn remove_strangers(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(to).doing("read the directory", to)? {
        let entry = entry.doing("read the directory", to)?;
        if fs::symlink_metadata(from.join(entry.file_name())).is_err() {
            if entry.file_type().doing("look at", &entry.path())?.is_dir() {
                remove_tree(&entry.path())?
            } else {
                fs::remove_file(entry.path()).doing("remove", &entry.path())?
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Counts steps, and interrupts after some.
    struct Recorder {
        steps: AtomicU64,
        stop_after: u64,
    }

    impl Recorder {
        fn new(stop_after: u64) -> Self {
            Self { steps: AtomicU64::new(0), stop_after }
        }
    }

    impl Progress for Recorder {
        fn step(&self, _: &str, done: u64, total: Option<u64>) {
            assert!(Some(done) <= total);
            self.steps.fetch_add(1, Ordering::Relaxed);
        }

        fn interrupted(&self) -> bool {
            self.steps.load(Ordering::Relaxed) >= self.stop_after
        }
    }

    /// All paths of a tree with their content (none for directories) and mode, sorted.
    fn tree(root: &Path) -> Vec<(String, Option<Vec<u8>>, u32)> {
        let mut found = Vec::new();
        let mut ahead = vec![root.to_owned()];
        while let Some(directory) = ahead.pop() {
            for entry in fs::read_dir(&directory).unwrap().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.push((name, fs::read(&path).ok(), entry.metadata().unwrap().mode()));
                if path.is_dir() {
                    ahead.push(path);
                }
            }
        }
        found.sort();
        found
    }

    fn copy(from: &Path, to: &Path, stamps: &mut Stamps) -> Copied {
        make_alike(from, to, &ServerUser::Ourselves, stamps, "copying", &Recorder::new(u64::MAX)).unwrap()
    }

    fn noise(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
    }

    #[test]
    fn a_tree_that_was_worked_on_is_put_back_and_what_did_not_change_is_not_written() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("base/1")).unwrap();
        let (table, odd) = (noise(9 << 20), noise((3 << 20) + 17));
        fs::write(from.join("base/1/table"), &table).unwrap();
        fs::write(from.join("base/1/odd"), &odd).unwrap();
        fs::write(from.join("base/1/index"), b"index").unwrap();
        fs::write(from.join("empty"), b"").unwrap();
        fs::set_permissions(from.join("empty"), fs::Permissions::from_mode(0o640)).unwrap();
        let all = (table.len() + odd.len() + 5) as u64;
        let mut stamps = Stamps::new();
        let copied = copy(&from, &to, &mut stamps);
        assert_eq!(tree(&from), tree(&to));
        assert_eq!((copied.reflinked_bytes + copied.copied_bytes, copied.kept_bytes), (all, 0));

        let table_at = to.join("base/1/table");
        fs::write(&table_at, vec![8; 10 << 20]).unwrap();
        fs::write(to.join("empty"), b"grown").unwrap();
        fs::write(to.join("base/1/new"), b"new").unwrap();
        fs::create_dir_all(to.join("base/2/deep")).unwrap();
        fs::remove_file(to.join("base/1/index")).unwrap();
        let copied = copy(&from, &to, &mut stamps);
        assert_eq!(tree(&from), tree(&to));
        assert_eq!(copied.kept_bytes, odd.len() as u64);

        let copied = copy(&from, &to, &mut stamps);
        assert_eq!((copied.reflinked_bytes, copied.copied_bytes, copied.kept_bytes), (0, 0, all));
    }

    #[test]
    fn a_file_that_only_looks_untouched_is_put_back() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("table"), b"before").unwrap();
        let mut stamps = Stamps::new();
        copy(&from, &to, &mut stamps);
        let made = fs::metadata(to.join("table")).unwrap().modified().unwrap();
        fs::write(to.join("table"), b"after!").unwrap();
        OpenOptions::new().write(true).open(to.join("table")).unwrap().set_modified(made).unwrap();
        copy(&from, &to, &mut stamps);
        assert_eq!(fs::read(to.join("table")).unwrap(), b"before");
    }

    #[test]
    fn an_interrupted_copy_is_finished_by_the_next() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("table"), noise(64 << 20)).unwrap();
        let mut stamps = Stamps::new();
        copy(&from, &to, &mut stamps);
        fs::write(to.join("table"), noise(1 << 20)).unwrap();
        let stopping = Recorder::new(1);
        let outcome = make_alike(&from, &to, &ServerUser::Ourselves, &mut stamps, "copying", &stopping);
        // Shared blocks leave nothing to interrupt.
        if !outcome.is_ok_and(|copied| copied.reflinked_bytes > 0) {
            assert_ne!(tree(&from), tree(&to));
        }
        copy(&from, &to, &mut stamps);
        assert_eq!(tree(&from), tree(&to));
    }
}
