//! Files that are there when they are whole: written under a temporary name beside theirs, and renamed.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

/// Where rows go, until they are all there. What is dropped before leaves nothing.
pub(super) struct Pending {
    /// None is standard output.
    path: Option<PathBuf>,
    /// None where it is no file that can be replaced: a pipe, say.
    temporary: Option<NamedTempFile>,
}

impl Pending {
    pub(super) fn stdout() -> Self {
        Self { path: None, temporary: None }
    }

    pub(super) fn file(path: &Path) -> anyhow::Result<Self> {
        // A link stays a link: the file that it names is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.exists() && !path.is_file() {
            return Ok(Self { path: Some(path), temporary: None });
        }
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = tempfile::Builder::new()
            .prefix(".pgdyno-export-")
            // As files usually are, less what the umask takes.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
            .with_context(|| format!("could not write to {}", directory.display()))?;
        Ok(Self { path: Some(path), temporary: Some(temporary) })
    }

    /// What to write to.
    pub(super) fn writer(&self) -> anyhow::Result<Box<dyn Write + Send>> {
        let file = match (&self.path, &self.temporary) {
            (None, _) => return Ok(Box::new(BufWriter::new(io::stdout()))),
            (Some(_), Some(temporary)) => temporary.reopen(),
            (Some(path), None) => File::options().write(true).open(path),
        };
        Ok(Box::new(BufWriter::new(file.with_context(|| self.failed())?)))
    }

    /// What could not be done where writing fails.
    pub(super) fn failed(&self) -> String {
        format!("could not write {}", self.shown())
    }

    /// Gives it its name, and says it.
    pub(super) fn publish(self) -> anyhow::Result<String> {
        let shown = self.shown();
        if let (Some(path), Some(temporary)) = (self.path, self.temporary) {
            let named = temporary.as_file().sync_all().and_then(|()| Ok(temporary.persist(&path)?));
            named.with_context(|| format!("could not write {shown}"))?;
        }
        Ok(shown)
    }

    fn shown(&self) -> String {
        self.path.as_ref().map_or("standard output".to_owned(), |path| path.display().to_string())
    }
}
