//! Databases of the user's own: whether they can be used, and whether they are still those that were planned.

use host::{Contents, Progress};
use model::dataset::DatasetSource;
use model::version::Major;

use crate::dataset::content::Content;
use crate::dataset::{base_backup, dump};
use crate::error::Error;
use crate::programs::installation::Installation;

/// Checks that a database can be made for a server, as far as its files show. A server of pgdyno's own is given by its
/// programs, or by its major alone.
///
/// # Errors
/// It is no dump or base backup, one that can't be read here, or a base backup of another major.
pub fn check_source(
    source: &DatasetSource,
    major: Option<Major>,
    programs: Option<&Installation>,
) -> Result<(), Error> {
    match source {
        DatasetSource::Dump(path) => dump::Format::check(path, programs),
        DatasetSource::BaseBackup { directory, .. } => base_backup::check(directory, major),
        DatasetSource::Template(_) => Ok(()),
    }
}

/// Checks that what a database is made from is what the trials are to run on.
///
/// # Errors
/// It is another database, or its files have changed or can't be read; the user wants to stop.
pub(crate) fn check_unchanged(
    content: &Content,
    source: Option<&DatasetSource>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let Some(own) = &content.own else { return Ok(()) };
    let changed = |what: String, why: String| Err(Error::Changed { what, why });
    let source =
        source.filter(|source| source.kind() == own.kind && source.database() == own.database.as_deref());
    let Some(source) = source else {
        return changed(
            format!("data set {}", own.name),
            "the campaign defines another of that name".to_owned(),
        );
    };
    let Some(path) = source.path() else { return Ok(()) };
    let what = format!("{} {}", own.kind.in_words(), path.display());
    match Contents::read(path, progress) {
        Ok(contents) if own.content.as_ref() == Some(&contents.sha256) => Ok(()),
        Ok(_) => changed(what, "it has changed since the run began".to_owned()),
        Err(error @ host::Error::Interrupted) => Err(error.into()),
        Err(error) => changed(what, error.to_string()),
    }
}
