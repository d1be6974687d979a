//! Provides the programs of a campaign's server. A build from source counts as installed once a server has run from it.

use std::collections::BTreeMap;

use model::server::Source;

use crate::cluster::Cluster;
use crate::error::Error;
use crate::programs::in_place::in_place;
use crate::programs::install::install;
use crate::programs::installation::{Installation, find};
use crate::programs::source;
use crate::remove;
use crate::server::StopMode;
use host::{Cache, Progress};

/// Makes the programs of a server available: downloads, builds, or uses existing ones. Cached ones are used as they
/// are. Several processes may do this at once.
///
/// # Errors
/// An invalid or unknown version; no programs in a directory; no source, or one that can't be built; a build whose server
/// does not start; a server that pgdyno does not own; interrupted.
pub fn installation(cache: &Cache, source: &Source, progress: &dyn Progress) -> Result<Installation, Error> {
    match source {
        Source::Embedded(version) => install(cache, version, progress),
        Source::Installed(name) => {
            find(cache, name)?.ok_or_else(|| Error::NotInstalled { version: name.clone() })
        }
        Source::Bin(directory) => in_place(cache, directory),
        Source::Build(build) => {
            let make_room = || remove::make_room(cache, progress);
            source::build(cache, build, &make_room, &|installation| try_out(cache, installation), progress)
        }
        Source::Dsn(_) => Err(Error::NoPrograms),
    }
}

/// Runs `initdb` and starts a server once. The caller holds the installation's lock.
fn try_out(cache: &Cache, installation: &Installation) -> Result<(), Error> {
    let cluster = Cluster::of_unfinished(cache, installation)?;
    cluster.start(&BTreeMap::new())?.stop(StopMode::Immediate).map(drop)
}
