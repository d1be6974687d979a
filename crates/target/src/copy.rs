//! Copying a data directory: sharing blocks where the file system can (FICLONE), else in the kernel.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::{Doing, TargetError};
use crate::user::ServerUser;

/// Files from this size on are waited for until they are on the disk; what smaller ones add is soon written.
const LARGE_BYTES: u64 = 1 << 20;

/// Copies a tree of directories and files with their modes, and gives the copy to the server's user. When it is there,
/// the bulk of it has been written to the disk, so that this does not go on while something is measured. It would not
/// survive a crash of the machine: nothing that is copied has to.
pub(crate) fn copy_tree(from: &Path, to: &Path, user: &ServerUser) -> Result<(), TargetError> {
    let mut large = Vec::new();
    copy_directory(from, to, user, &mut large)?;
    for file in &large {
        write_back(file, libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER);
    }
    Ok(())
}

fn copy_directory(
    from: &Path,
    to: &Path,
    user: &ServerUser,
    large: &mut Vec<File>,
) -> Result<(), TargetError> {
    let mode = fs::metadata(from).doing("look at", from)?.permissions();
    fs::create_dir(to).doing("make the directory", to)?;
    for entry in fs::read_dir(from).doing("read the directory", from)? {
        let entry = entry.doing("read the directory", from)?;
        let kind = entry.file_type().doing("look at", &entry.path())?;
        let copy = to.join(entry.file_name());
        if kind.is_dir() {
            copy_directory(&entry.path(), &copy, user, large)?;
        } else if kind.is_file() {
            let file = copy_file(&entry.path(), &copy).doing("copy", &entry.path())?;
            user.own(&copy)?;
            if entry.metadata().is_ok_and(|meta| meta.len() >= LARGE_BYTES) {
                large.push(file);
            }
        }
    }
    fs::set_permissions(to, mode).doing("set the mode of", to)?;
    user.own(to)
}

fn copy_file(from: &Path, to: &Path) -> io::Result<File> {
    let mut source = File::open(from)?;
    let meta = source.metadata()?;
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(meta.mode() & 0o777).open(to)?;
    if meta.len() > 0 && rustix::fs::ioctl_ficlone(&copy, &source).is_err() {
        // This is copy_file_range where the kernel has it.
        io::copy(&mut source, &mut copy)?;
        write_back(&copy, libc::SYNC_FILE_RANGE_WRITE);
    }
    Ok(copy)
}

/// Where the kernel or the file system can't do this, writing back is left to them.
fn write_back(file: &File, how: libc::c_uint) {
    // SAFETY: only the file descriptor is used, which lives as long as `file`.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), 0, 0, how);
    }
}
