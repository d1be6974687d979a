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
use host::IoContext;
use host::ServerUser;
use host::files::{open_regular, remove_irregular, remove_tree};
use host::{Progress, check_interrupted};

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
pub(crate) fn mirror_tree(
    from: &Path,
    to: &Path,
    user: &ServerUser,
    stamps: &mut Stamps,
    what: &str,
    progress: &dyn Progress,
) -> Result<Copied, Error> {
    let start = Instant::now();
    if !to.try_exists().doing("inspect", to)? {
        fs::create_dir(to).doing("create the directory", to)?;
        user.chown(to)?;
    }
    let mut copy = TreeCopy {
        progress,
        before: std::mem::take(stamps),
        stamps,
        large: Vec::new(),
        copied: Copied::default(),
    };
    // Processes of the server's user may have replaced any file with a link to another user's.
    let copied = user.run_as(|| {
        copy.directory(from, to)?;
        copy.large(what)?;
        Ok(copy.copied)
    })?;
    copied.map(|copied| Copied { seconds: start.elapsed().as_secs_f64(), ..copied })
}

struct TreeCopy<'a> {
    progress: &'a dyn Progress,
    /// Stamps of the last copy.
    before: Stamps,
    /// Stamps of this copy.
    stamps: &'a mut Stamps,
    /// Files yet to be copied.
    large: Vec<Job>,
    copied: Copied,
}

impl TreeCopy<'_> {
    fn directory(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        match fs::symlink_metadata(to) {
            Ok(there) if there.is_dir() => remove_extra_files(from, to)?,
            Ok(_) => {
                fs::remove_file(to).doing("remove", to)?;
                fs::create_dir(to).doing("create the directory", to)?;
            }
            Err(_) => fs::create_dir(to).doing("create the directory", to)?,
        }
        for entry in fs::read_dir(from).doing("read the directory", from)? {
            let entry = entry.doing("read the directory", from)?;
            let kind = entry.file_type().doing("inspect", &entry.path())?;
            let copy = to.join(entry.file_name());
            if kind.is_dir() {
                self.directory(&entry.path(), &copy)?;
            } else if kind.is_file() {
                self.file(&entry.path(), &copy)?;
            }
        }
        let mode = fs::metadata(from).doing("inspect", from)?.permissions();
        Ok(fs::set_permissions(to, mode).doing("set the mode of", to)?)
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let wanted = fs::metadata(from).doing("inspect", from)?;
        if let (Some(&stamp), Ok(there)) = (self.before.get(to), fs::symlink_metadata(to))
            && Stamp::new(&there) == stamp
            && has_same_size_and_time(&there, &wanted)
        {
            self.stamps.insert(to.to_owned(), stamp);
            self.copied.kept_bytes += wanted.len();
            return Ok(());
        }
        check_interrupted(self.progress)?;
        let mut source = open_regular(from).doing("read", from)?;
        remove_irregular(to).doing("remove", to)?;
        let mut copy =
            write_options().create(true).mode(wanted.mode() & 0o777).open(to).doing("write", to)?;
        if rustix::fs::ioctl_ficlone(&copy, &source).is_ok() {
            self.copied.reflinked_bytes += wanted.len();
        } else if wanted.len() < LARGE_BYTES {
            io::copy(&mut source, &mut copy).doing("copy to", to)?;
            self.copied.copied_bytes += wanted.len();
        } else {
            reserve(&copy, wanted.len()).doing("reserve space for", to)?;
            self.large.push(Job { from: from.to_owned(), to: to.to_owned(), bytes: wanted.len() });
            return Ok(());
        }
        self.finish(&copy, to, &wanted)
    }

    fn large(&mut self, what: &str) -> Result<(), Error> {
        let jobs = std::mem::take(&mut self.large);
        copy_blocks(&jobs, what, self.progress)?;
        for Job { from, to, bytes } in jobs {
            let wanted = fs::metadata(&from).doing("inspect", &from)?;
            let copy = write_options().open(&to).doing("write", &to)?;
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
fn write_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).truncate(false).custom_flags(libc::O_NOFOLLOW);
    options
}

fn has_same_size_and_time(there: &Metadata, wanted: &Metadata) -> bool {
    let key = |meta: &Metadata| (meta.len(), meta.mtime(), meta.mtime_nsec());
    key(there) == key(wanted)
}

/// Removes what only the copy has.
fn remove_extra_files(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(to).doing("read the directory", to)? {
        let entry = entry.doing("read the directory", to)?;
        if fs::symlink_metadata(from.join(entry.file_name())).is_err() {
            if entry.file_type().doing("inspect", &entry.path())?.is_dir() {
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
        let mut pending = vec![root.to_owned()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(&directory).unwrap().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.push((name, fs::read(&path).ok(), entry.metadata().unwrap().mode()));
                if path.is_dir() {
                    pending.push(path);
                }
            }
        }
        found.sort();
        found
    }

    fn copy(from: &Path, to: &Path, stamps: &mut Stamps) -> Copied {
        mirror_tree(from, to, &ServerUser::Current, stamps, "copying", &Recorder::new(u64::MAX)).unwrap()
    }

    fn noise(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
    }

    #[test]
    fn a_modified_tree_is_restored_by_writing_only_the_changes() {
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

        fs::write(to.join("base/1/table"), vec![8; 10 << 20]).unwrap();
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
    fn a_modified_file_with_the_same_size_and_time_is_restored() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("table"), b"before").unwrap();
        let mut stamps = Stamps::new();
        copy(&from, &to, &mut stamps);
        let modified = fs::metadata(to.join("table")).unwrap().modified().unwrap();
        fs::write(to.join("table"), b"after!").unwrap();
        OpenOptions::new().write(true).open(to.join("table")).unwrap().set_modified(modified).unwrap();
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
        let outcome = mirror_tree(&from, &to, &ServerUser::Current, &mut stamps, "copying", &stopping);
        // Shared blocks leave nothing to interrupt.
        if !outcome.is_ok_and(|copied| copied.reflinked_bytes > 0) {
            assert_ne!(tree(&from), tree(&to));
        }
        copy(&from, &to, &mut stamps);
        assert_eq!(tree(&from), tree(&to));
    }
}
