//! Bundles of trials in one file.

use std::fmt;
use std::path::PathBuf;

use model::record::Trial;
use store::{BundleArchive, Redacted, StoreReader};

use super::ExportError;
use super::file::PendingFile;

/// An export of bundles.
#[derive(Clone, Debug)]
pub struct BundleExport {
    /// The file; `-` for standard output.
    pub output: PathBuf,
    /// Whether names of hosts and users are replaced.
    pub redacts: bool,
}

/// A complete file of bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenBundles {
    /// Its path, or `standard output`.
    pub path: String,
    /// Number of its trials.
    pub trials: usize,
    /// What was replaced; none if nothing was to be.
    pub redacted: Option<Redacted>,
}

impl fmt::Display for WrittenBundles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, trials, redacted } = self;
        write!(f, "{path}: the bundles of {trials} {}", if *trials == 1 { "trial" } else { "trials" })?;
        let Some(redacted) = redacted else { return Ok(()) };
        if redacted.places.is_empty() {
            f.write_str("\nredacted: nothing, there are no names of hosts or users in them")?;
        }
        for (what, files) in &redacted.places {
            let n: usize = files.values().sum();
            let files: Vec<&str> = files.keys().map(String::as_str).collect();
            write!(f, "\nredacted: {what}s in {n} places of {}", files.join(", "))?;
        }
        Ok(())
    }
}

impl BundleExport {
    /// Writes the bundles of these trials, without those that can't be read. None if the user interrupted the export: there is
    /// no file; `is_interrupted` is called before each trial.
    ///
    /// # Errors
    /// The file can't be written, a name can't be replaced, or none of the trials can be read.
    pub fn write(
        &self,
        reader: &StoreReader,
        trials: &[&Trial],
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<WrittenBundles>, ExportError> {
        let pending = PendingFile::single(&self.output)?;
        let failed = |source| pending.failed(source);
        let mut archive = BundleArchive::new(pending.writer()?, self.redacts).map_err(failed)?;
        let mut written = 0;
        for trial in trials {
            if is_interrupted() {
                return Ok(None);
            }
            let Some(record) = reader.load(&trial.id) else { continue };
            archive.add(reader.store(), &record)?;
            written += 1;
        }
        if let Some(first) = trials.first().filter(|_| written == 0) {
            return Err(reader.error(&first.id).into());
        }
        let redacted = archive.finish().map_err(failed)?;
        let redacted = self.redacts.then_some(redacted);
        Ok(Some(WrittenBundles { path: pending.publish()?, trials: written, redacted }))
    }
}
