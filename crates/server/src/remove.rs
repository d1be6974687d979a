//! Removal of an installation with its data sets.

use std::fs;
use std::sync::OnceLock;

use host::files::remove_tree;
use host::{Cache, IoContext, Lock, Progress};
use model::version::VersionRequest;

use crate::dataset::template;
use crate::error::Error;
use crate::instance;
use crate::programs::installation::{Installation, downloaded, find, installed, lock_file, partial};
use crate::programs::source;
use crate::size_limit::size_limit;

/// Removes the installations of a version (all downloaded releases of a major), or the installation of an identity,
/// with its templates, as far as no other installation shares them. Returns the removed identities.
///
/// # Errors
/// It is not installed, or in use.
pub fn remove(cache: &Cache, version: &str) -> Result<Vec<String>, Error> {
    let found = match find(cache, version)? {
        Some(installation) => vec![installation],
        None => {
            let wanted = version.parse::<VersionRequest>().map_err(|error| {
                // An identity has a hyphen, a mistyped version usually not.
                if version.contains('-') {
                    Error::NotInstalled { version: version.to_owned() }
                } else {
                    error.into()
                }
            })?;
            downloaded(cache, wanted)?
        }
    };
    if found.is_empty() {
        return Err(Error::NotInstalled { version: version.to_owned() });
    }
    for installation in &found {
        remove_one(cache, installation)?;
    }
    Ok(found.into_iter().map(|installation| installation.identity).collect())
}

/// Variable with the maximum size of all builds from source; without it there is no limit.
const BUILDS_MAX: &str = "PGDYNO_BUILDS_MAX";

/// The limit of this process, which counts instead.
static BUILDS_LIMIT: OnceLock<u64> = OnceLock::new();

/// Limits the size of all builds from source in the cache, in bytes, for this process: the first call counts.
pub fn limit_builds(bytes: u64) {
    let _ = BUILDS_LIMIT.set(bytes);
}

/// Removes builds from source with their data sets, the least recently used first, until all are below the limit, or the others are in
/// use.
pub(crate) fn make_room(cache: &Cache, progress: &dyn Progress) -> Result<(), Error> {
    let limit = BUILDS_LIMIT.get().map_or_else(|| size_limit(BUILDS_MAX), |limit| Ok(Some(*limit)))?;
    let Some(limit) = limit else { return Ok(()) };
    let mut builds = installed(cache)?;
    builds.retain(|build| build.build().is_some());
    builds.sort_by_key(|build| build.last_used(cache));
    let sized: Vec<(Installation, u64)> =
        builds.into_iter().map(|build| (build.clone(), template::bytes_below(build.directory()))).collect();
    let mut total: u64 = sized.iter().map(|(_, bytes)| bytes).sum();
    for (build, bytes) in sized {
        if total < limit {
            break;
        }
        match remove_one(cache, &build) {
            Ok(()) => {
                total -= bytes;
                progress.notice(&format!(
                    "removed the build {} because of the limit of builds",
                    build.identity()
                ));
            }
            Err(Error::InUse { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn remove_one(cache: &Cache, installation: &Installation) -> Result<(), Error> {
    let identity = installation.identity();
    let in_use = |by: &str| Error::InUse { what: format!("PostgreSQL {identity}"), by: by.to_owned() };
    if let Some(server) = instance::running_on(cache, identity)? {
        return Err(in_use(&format!("the server {server} (`pgdyno server stop {server}`)")));
    }
    let Some(_lock) = Lock::try_exclusive(&lock_file(cache, identity))? else {
        return Err(in_use("another pgdyno"));
    };
    let others = installed(cache)?.into_iter().filter(|other| other.identity() != identity);
    if !others.into_iter().any(|other| other.data_identity() == installation.data_identity()) {
        for template in template::templates(cache)? {
            if template.is_for(installation) {
                template.remove(cache)?;
            }
        }
    }
    // Renamed first, so that a partly removed installation does not count as one.
    let partial = partial(cache, identity);
    remove_tree(&partial)?;
    fs::rename(&installation.directory, &partial).doing("remove", &installation.directory)?;
    remove_tree(&partial)?;
    match installation.build() {
        Some(build) => source::remove_directory(cache, &build.directory),
        None => Ok(()),
    }
}
