//! Copying a data directory: sharing blocks where the file system can (FICLONE), else in the kernel.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::cache::remove_tree;
use crate::error::{Doing, TargetError};
use crate::user::ServerUser;

/// Files from this size on are waited for until they are on the disk; what smaller ones add is soon written.
const LARGE_BYTES: u64 = 1 << 20;

/// Makes one tree of directories and files like another, modes included, and gives it to the server's user. What is
/// alike already stays as it is: a file of the same size and time of change, which a copy takes over from what it was
/// copied from. So a data directory that a server has worked on is put back by writing only what has changed.
///
/// When it is there, the bulk of it has been written to the disk, so that this does not go on while something is
/// measured. It would not survive a crash of the machine: nothing that is copied has to.
pub(crate) fn make_alike(from: &Path, to: &Path, user: &ServerUser) -> Result<(), TargetError> {
    let mut large = Vec::new();
    directory(from, to, user, &mut large)?;
    // All are begun before the first is waited for.
    for file in &large {
        write_back(file, libc::SYNC_FILE_RANGE_WRITE);
    }
    for file in &large {
        write_back(file, libc::SYNC_FILE_RANGE_WAIT_AFTER);
    }
    Ok(())
}

fn directory(from: &Path, to: &Path, user: &ServerUser, large: &mut Vec<File>) -> Result<(), TargetError> {
    match fs::create_dir(to) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => remove_strangers(from, to)?,
        made => {
            made.doing("make the directory", to)?;
            user.own(to)?;
        }
    }
    for entry in fs::read_dir(from).doing("read the directory", from)? {
        let entry = entry.doing("read the directory", from)?;
        let kind = entry.file_type().doing("look at", &entry.path())?;
        let copy = to.join(entry.file_name());
        if kind.is_dir() {
            directory(&entry.path(), &copy, user, large)?;
        } else if kind.is_file() {
            file(&entry.path(), &copy, user, large)?;
        }
    }
    let mode = fs::metadata(from).doing("look at", from)?.permissions();
    fs::set_permissions(to, mode).doing("set the mode of", to)
}

/// Removes what only the copy has.
fn remove_strangers(from: &Path, to: &Path) -> Result<(), TargetError> {
    for entry in fs::read_dir(to).doing("read the directory", to)? {
        let entry = entry.doing("read the directory", to)?;
        if fs::symlink_metadata(from.join(entry.file_name())).is_err() {
            match entry.file_type().doing("look at", &entry.path())?.is_dir() {
                true => remove_tree(&entry.path())?,
                false => fs::remove_file(entry.path()).doing("remove", &entry.path())?,
            }
        }
    }
    Ok(())
}

fn file(from: &Path, to: &Path, user: &ServerUser, large: &mut Vec<File>) -> Result<(), TargetError> {
    let wanted = fs::metadata(from).doing("look at", from)?;
    let is_new = match fs::metadata(to) {
        Ok(there) if is_alike(&there, &wanted) => return Ok(()),
        there => there.is_err(),
    };
    let copy = copy_file(from, to, &wanted).doing("copy", from)?;
    if is_new {
        user.own(to)?;
    }
    if wanted.len() >= LARGE_BYTES {
        large.push(copy);
    }
    Ok(())
}

fn is_alike(there: &Metadata, wanted: &Metadata) -> bool {
    let key = |meta: &Metadata| (meta.len(), meta.mtime(), meta.mtime_nsec());
    key(there) == key(wanted)
}

fn copy_file(from: &Path, to: &Path, wanted: &Metadata) -> io::Result<File> {
    let mut source = File::open(from)?;
    let mode = wanted.mode() & 0o777;
    let mut copy = OpenOptions::new().write(true).create(true).truncate(false).mode(mode).open(to)?;
    if wanted.len() > 0 && rustix::fs::ioctl_ficlone(&copy, &source).is_err() {
        // This is copy_file_range where the kernel has it.
        io::copy(&mut source, &mut copy)?;
    }
    copy.set_len(wanted.len())?;
    copy.set_modified(wanted.modified()?)?;
    Ok(copy)
}

/// Where the kernel or the file system can't do this, writing back is left to them.
fn write_back(file: &File, how: libc::c_uint) {
    // SAFETY: only the file descriptor is used, which lives as long as `file`.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), 0, 0, how);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every path of a tree with its content (none for directories), in order.
    fn tree(root: &Path) -> Vec<(String, Option<Vec<u8>>)> {
        let mut found = Vec::new();
        let mut ahead = vec![root.to_owned()];
        while let Some(directory) = ahead.pop() {
            for entry in fs::read_dir(&directory).unwrap().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.push((name, fs::read(&path).ok()));
                if path.is_dir() {
                    ahead.push(path);
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_tree_that_was_worked_on_is_put_back_and_what_did_not_change_is_not_written() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("base/1")).unwrap();
        fs::write(from.join("base/1/table"), vec![7; 100_000]).unwrap();
        fs::write(from.join("base/1/index"), b"index").unwrap();
        fs::write(from.join("empty"), b"").unwrap();
        let user = ServerUser::Ourselves;
        make_alike(&from, &to, &user).unwrap();
        assert_eq!(tree(&from), tree(&to));

        let untouched = fs::metadata(to.join("base/1/index")).unwrap().ctime_nsec();
        fs::write(to.join("base/1/table"), vec![8; 100_000]).unwrap();
        fs::write(to.join("empty"), b"grown").unwrap();
        fs::write(to.join("base/1/new"), b"new").unwrap();
        fs::create_dir_all(to.join("base/2/deep")).unwrap();
        fs::remove_file(to.join("base/1/index")).unwrap();
        make_alike(&from, &to, &user).unwrap();
        assert_eq!(tree(&from), tree(&to));

        let written = |name: &str| fs::metadata(to.join(name)).unwrap().ctime_nsec();
        let (table, index) = (written("base/1/table"), written("base/1/index"));
        assert_ne!(index, untouched, "it was gone and is new");
        make_alike(&from, &to, &user).unwrap();
        assert_eq!(
            (written("base/1/table"), written("base/1/index")),
            (table, index),
            "nothing is written twice"
        );
    }
}
