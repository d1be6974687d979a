//! Paths of open files, for other processes of the same user.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Path by which another process of the same user can open a file that this process has open.
pub(crate) fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}
