//! Disk image for a guest: a file system with a copy of a directory.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::vm::descriptor::by_descriptor;
use host::IoContext;

/// Space in addition to the copied files: for WAL, growing tables, and the file system's metadata.
const SPARE_BYTES: u64 = 2 << 30;
/// Program that creates the file system.
const MKE2FS: &str = "mke2fs";

/// An ext4 file system with the content of a directory of so many bytes, in an unnamed, sparse file in `directory`.
/// Owners and modes are those of the directory.
///
/// # Errors
/// No mke2fs, or it fails.
pub fn image(from: &Path, bytes: u64, directory: &Path) -> Result<File, Error> {
    let file = tempfile::tempfile_in(directory).doing("create a file in", directory)?;
    file.set_len(2 * bytes + SPARE_BYTES).doing("create a disk for", from)?;
    let mut command = Command::new(MKE2FS);
    command.args(["-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,nodiscard", "-d"]).arg(from);
    let output = command.arg(by_descriptor(&file)).stdin(Stdio::null()).output();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let why = format!("{MKE2FS} is not installed: install the package e2fsprogs");
            return Ok(Err(io::Error::other(why)).doing("create a disk for", from)?);
        }
        output => output.doing("create a disk for", from)?,
    };
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let why = io::Error::other(format!("{MKE2FS}: {} ({})", stderr.trim(), output.status));
        return Ok(Err(why).doing("create a disk for", from)?);
    }
    Ok(file)
}
