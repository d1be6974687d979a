//! A file that the kernel generates at each read. It is opened once: opening costs more than reading.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::str;

use crate::root::Root;

/// Larger than most files, so that the first read returns them whole.
const BUFFER_BYTES: usize = 16 * 1024;

/// An open file of `/proc` or `/sys`.
#[derive(Debug)]
pub(super) struct KernelFile {
    file: File,
    content: Vec<u8>,
}

impl KernelFile {
    /// Opens a file; none if it does not exist, or is not readable.
    pub(super) fn open(root: &Root, path: &str) -> Option<Self> {
        let file = File::open(root.path(path.trim_start_matches('/'))).ok()?;
        Some(Self { file, content: Vec::new() })
    }

    /// Its current text.
    pub(super) fn text(&mut self) -> Option<&str> {
        let mut length = 0;
        loop {
            if self.content.len() < length + BUFFER_BYTES {
                self.content.resize(length + BUFFER_BYTES, 0);
            }
            match self.file.read_at(&mut self.content[length..], length as u64).ok()? {
                0 => break,
                read => length += read,
            }
        }
        str::from_utf8(&self.content[..length]).ok()
    }

    /// The number that is its whole text.
    pub(super) fn number(&mut self) -> Option<f64> {
        self.text()?.trim().parse().ok()
    }
}
