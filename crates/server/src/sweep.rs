//! Removes leftovers of a killed pgdyno: data directories, servers that still run on them, their control groups,
//! partial installations, temporary files.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::cluster::{DATA, OWNER_LOCK, remove_cluster, remove_groups};
use crate::error::Error;
use crate::process::end_all;
use crate::programs::installation::sweep_partial;
use host::Cache;
use host::Lock;
use host::Scratch;
use host::files::entries;

/// Findings of a sweep, which it removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Removed directories.
    pub removed: Vec<PathBuf>,
    /// Number of PostgreSQL processes that were still running on them.
    pub processes: usize,
}

impl Swept {
    /// Message for the user; none if nothing was found.
    pub fn notice(&self) -> Option<String> {
        let Self { removed, processes } = self;
        let directories = removed.len();
        (directories > 0).then(|| {
            format!("removed leftovers of a killed pgdyno: {directories} directories, {processes} processes")
        })
    }
}

/// Removes leftovers of dead pgdyno processes. Anything with a living owner is left alone.
///
/// # Errors
/// Something can't be removed, or a server does not end.
pub fn sweep(cache: &Cache) -> Result<Swept, Error> {
    let mut swept = Swept { removed: sweep_partial(cache)?, processes: 0 };
    swept.removed.append(&mut Scratch::sweep(cache)?);
    for (directory, _owner) in abandoned_clusters(cache)? {
        swept.processes += end_all(&directory.join(DATA))?;
        remove_groups(&directory);
        remove_cluster(&directory)?;
        swept.removed.push(directory);
    }
    Ok(swept)
}

/// Clusters without a living owner, with the locks that make this process their owner.
fn abandoned_clusters(cache: &Cache) -> Result<Vec<(PathBuf, Option<Lock>)>, Error> {
    // No cluster is created while this is held.
    let _lock = cache.clusters_lock()?;
    let mut found = Vec::new();
    for (_, directory) in entries(&cache.clusters())? {
        match ownership(&directory)? {
            Ownership::Alive => {}
            Ownership::Ours(lock) => found.push((directory, Some(lock))),
            Ownership::Lost => found.push((directory, None)),
        }
    }
    Ok(found)
}

enum Ownership {
    /// It has another owner.
    Alive,
    /// Its owner has died.
    Ours(Lock),
    /// Its creator died before it had an owner, or it is being removed.
    Lost,
}

fn ownership(directory: &Path) -> Result<Ownership, Error> {
    let lock = directory.join(OWNER_LOCK);
    if !lock.exists() {
        return Ok(Ownership::Lost);
    }
    match Lock::try_exclusive(&lock) {
        Ok(lock) => Ok(lock.map_or(Ownership::Alive, Ownership::Ours)),
        Err(host::Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(Ownership::Lost),
        Err(error) => Err(error.into()),
    }
}
