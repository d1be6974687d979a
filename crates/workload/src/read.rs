//! Location of a workload's files.

use std::io;
use std::path::{Path, PathBuf};

/// A directory with a workload's files.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    /// On disk.
    Directory(PathBuf),
    /// Bundled with pgdyno: names and texts.
    Shipped(&'static str, &'static [(&'static str, &'static str)]),
}

impl Location {
    /// Path of a file in messages.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        match self {
            Self::Directory(directory) => directory.join(file),
            Self::Shipped(name, _) => Path::new("workloads").join(name).join(file),
        }
    }

    /// The text of a file.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn read(&self, file: &str) -> Result<String, FileError> {
        let failed = |problem| FileError { path: self.path(file), problem };
        match self {
            Self::Directory(directory) => std::fs::read(directory.join(file))
                .map_err(|error| failed(FileProblem::Io(error)))
                .and_then(|bytes| String::from_utf8(bytes).map_err(|_| failed(FileProblem::NotUtf8))),
            Self::Shipped(_, files) => files
                .iter()
                .find(|(name, _)| *name == file)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| failed(FileProblem::Missing)),
        }
    }
}

/// A file that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{path} can't be read: {problem}")]
pub(crate) struct FileError {
    path: PathBuf,
    problem: FileProblem,
}

/// Cause of a [`FileError`].
#[derive(Debug, thiserror::Error)]
enum FileProblem {
    #[error("{0}")]
    Io(io::Error),
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("no such file")]
    Missing,
}
