//! Where a workload's files are.

use std::path::{Path, PathBuf};

/// A directory with a workload's files.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// On the disk.
    Directory(PathBuf),
    /// Brought along: names and texts.
    Shipped(&'static str, &'static [(&'static str, &'static str)]),
}

impl Place {
    /// What a file is called in messages.
    pub(crate) fn called(&self, file: &str) -> PathBuf {
        match self {
            Self::Directory(directory) => directory.join(file),
            Self::Shipped(name, _) => Path::new("workloads").join(name).join(file),
        }
    }

    /// The text of a file.
    ///
    /// # Errors
    /// It can't be read: why.
    pub(crate) fn read(&self, file: &str) -> Result<String, String> {
        let failed = |why: String| format!("{} can't be read: {why}", self.called(file).display());
        match self {
            Self::Directory(directory) => std::fs::read(directory.join(file))
                .map_err(|error| failed(error.to_string()))
                .and_then(|bytes| String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))),
            Self::Shipped(_, files) => files
                .iter()
                .find(|(name, _)| *name == file)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| failed("there is no such file".to_owned())),
        }
    }
}
