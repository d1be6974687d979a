//! A file that the kernel writes anew for every reader. It is opened once: to open costs more than to read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::str;

use crate::root::Root;

/// Larger than most files are, so that the first read has them whole.
const ROOM: usize = 16 * 1024;

/// An open file of `/proc` or `/sys`.
#[derive(Debug)]
pub(super) struct KernelFile {
    file: File,
    content: Vec<u8>,
}

impl KernelFile {
    /// None where there is no such file, or not for us.
    pub(super) fn open(root: &Root, path: &str) -> Option<Self> {
        let file = File::open(root.path(path.trim_start_matches('/'))).ok()?;
        Some(Self { file, content: Vec::new() })
    }

    /// What it says now.
    pub(super) fn text(&mut self) -> Option<&str> {
        let mut length = 0;
        loop {
            if self.content.len() < length + ROOM {
                self.content.resize(length + ROOM, 0);
            }
            match self.file.read_at(&mut self.content[length..], length as u64).ok()? {
                0 => break,
                read => length += read,
            }
        }
        str::from_utf8(&self.content[..length]).ok()
    }

    /// The number that is all it says.
    pub(super) fn number(&mut self) -> Option<f64> {
        self.text()?.trim().parse().ok()
    }
}
