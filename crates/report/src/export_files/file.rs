//! Files that appear when they are complete: written under a temporary name in the same directory, and renamed.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::ExportError;

/// A file that is being written. Nothing remains of it if it is dropped before it is complete.
pub(super) struct PendingFile {
    /// None for standard output.
    path: Option<PathBuf>,
    /// None if the path is not a file that can be replaced, such as a pipe.
    temporary: Option<NamedTempFile>,
}

impl PendingFile {
    pub(super) fn stdout() -> Self {
        Self { path: None, temporary: None }
    }

    /// The only file of an export, `-` for standard output.
    pub(super) fn single(path: &Path) -> Result<Self, ExportError> {
        match path {
            path if path.is_dir() => Err(ExportError::IsADirectory(path.to_owned())),
            path if path == Path::new("-") => Ok(Self::stdout()),
            path => Self::file(path),
        }
    }

    pub(super) fn file(path: &Path) -> Result<Self, ExportError> {
        // A symbolic link is kept: its target is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.exists() && !path.is_file() {
            return Ok(Self { path: Some(path), temporary: None });
        }
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = tempfile::Builder::new()
            .prefix(".pgdyno-export-")
            // Usual permissions of a file, restricted by the umask.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
            .map_err(|source| ExportError::Write { place: format!("to {}", directory.display()), source })?;
        Ok(Self { path: Some(path), temporary: Some(temporary) })
    }

    /// Writer of the content.
    pub(super) fn writer(&self) -> Result<Box<dyn Write + Send>, ExportError> {
        let file = match (&self.path, &self.temporary) {
            (None, _) => return Ok(Box::new(BufWriter::new(io::stdout()))),
            (Some(_), Some(temporary)) => temporary.reopen(),
            (Some(path), None) => File::options().write(true).open(path),
        };
        Ok(Box::new(BufWriter::new(file.map_err(|source| self.failed(source))?)))
    }

    /// A nameless file for what must be written in another order: next to the file if it is one.
    pub(super) fn scratch(&self) -> io::Result<File> {
        match self.temporary.as_ref().and_then(|temporary| temporary.path().parent()) {
            Some(directory) => tempfile::tempfile_in(directory),
            None => tempfile::tempfile(),
        }
    }

    /// The error of a failed write.
    pub(super) fn failed(&self, source: io::Error) -> ExportError {
        ExportError::Write { place: self.shown(), source }
    }

    /// Renames the file to its final name, which it returns.
    pub(super) fn publish(self) -> Result<String, ExportError> {
        let shown = self.shown();
        if let (Some(path), Some(temporary)) = (self.path, self.temporary) {
            let named = temporary.as_file().sync_all().and_then(|()| Ok(temporary.persist(&path)?));
            named.map_err(|source| ExportError::Write { place: shown.clone(), source })?;
        }
        Ok(shown)
    }

    fn shown(&self) -> String {
        self.path.as_ref().map_or("standard output".to_owned(), |path| path.display().to_string())
    }
}
