//! Files under a root. What can't be read is none.

use std::fs;
use std::path::{Path, PathBuf};

/// Where `/` is.
pub(super) struct Root {
    path: PathBuf,
}

impl Root {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The text of a file.
    pub(super) fn text(&self, file: &str) -> Option<String> {
        let bytes = fs::read(self.path.join(file)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first line of a file, trimmed; none where it is empty.
    pub(super) fn line(&self, file: &str) -> Option<String> {
        let line = self.text(file)?.lines().next()?.trim().to_owned();
        (!line.is_empty()).then_some(line)
    }

    /// Whether there is such a file.
    pub(super) fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    /// Names of the files in a directory, in order.
    pub(super) fn names(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path.join(directory)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}
