//! Resolves a server of a campaign to its programs.

use model::server::Source;

use crate::error::Error;
use crate::programs::in_place::in_place;
use crate::programs::install::install;
use crate::programs::installation::Installation;
use crate::programs::source;
use host::{Cache, Progress};

/// Makes the programs of a server available: downloads, builds, or uses existing ones. Cached ones are used as they
/// are. Several processes may do this at once.
///
/// # Errors
/// An invalid or unknown version; no programs in a directory; no source, or one that can't be built; a server that
/// pgdyno does not own; interrupted.
pub fn installation(cache: &Cache, source: &Source, progress: &dyn Progress) -> Result<Installation, Error> {
    match source {
        Source::Embedded(version) => install(cache, version, progress),
        Source::Bin(directory) => in_place(cache, directory),
        Source::Build(build) => source::build(cache, build, progress),
        Source::Dsn(_) => Err(Error::NoPrograms),
    }
}
