//! Files under a root directory. What can't be read is none.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Path of `/`.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    path: PathBuf,
}

impl Root {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Whether this is the machine itself, not a copy of its files.
    pub(crate) fn is_real(&self) -> bool {
        self.path == Path::new("/")
    }

    /// Path of a file.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// The content of a file.
    pub(crate) fn bytes(&self, file: &str) -> Option<Vec<u8>> {
        fs::read(self.path(file)).ok()
    }

    /// The text of a file.
    pub(crate) fn text(&self, file: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(file)?).into_owned())
    }

    /// First line of a file, trimmed; none if empty.
    pub(crate) fn line(&self, file: &str) -> Option<String> {
        let line = self.text(file)?.lines().next()?.trim().to_owned();
        (!line.is_empty()).then_some(line)
    }

    /// Number on the first line of a file.
    pub(crate) fn number<T: FromStr>(&self, file: &str) -> Option<T> {
        self.line(file)?.parse().ok()
    }

    /// Whether a file exists.
    pub(crate) fn has(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    /// Names of the files in a directory, in order.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(directory)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Numbers after a prefix in the names of a directory's files, in order: 0 and 1 for `node`.
    pub(crate) fn numbered(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            self.names(directory).iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}
