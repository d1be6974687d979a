//! Location of a workload's files.

use std::io;
use std::path::{Path, PathBuf};

/// Names and texts of the files of a bundled directory.
pub(crate) type Files = &'static [(&'static str, &'static str)];

/// A directory with a workload's files.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    /// On disk.
    Directory(PathBuf),
    /// Bundled with pgdyno.
    Shipped {
        /// Its name below `workloads/`.
        directory: &'static str,
        /// Names and texts of its files.
        files: Files,
        /// The workload in a directory with many; none in one with a single workload.
        member: Option<&'static str>,
    },
}

impl Location {
    /// The file that defines the workload.
    pub(crate) const fn table_file(&self) -> &'static str {
        match self {
            Self::Shipped { member: Some(_), .. } => "workloads.toml",
            _ => "workload.toml",
        }
    }

    /// The workload in a directory with many.
    pub(crate) const fn member(&self) -> Option<&'static str> {
        match self {
            Self::Shipped { member, .. } => *member,
            Self::Directory(_) => None,
        }
    }

    /// Path of a file in messages.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        match self {
            Self::Directory(directory) => directory.join(file),
            Self::Shipped { directory, .. } => Path::new("workloads").join(directory).join(file),
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
            Self::Shipped { files, .. } => files
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
