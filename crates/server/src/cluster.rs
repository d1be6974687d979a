//! Clusters: data directories that belong to one pgdyno process and are deleted with it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::limits::Limits;
use model::workload::Transport;
use rustix::fs::{Advice, fadvise};

use crate::access::Access;
use crate::data::copy::{Copied, Stamps, mirror_tree};
use crate::data::initdb::initdb;
use crate::error::Error;
use crate::limits::{self, Group};
use crate::programs::installation::Installation;
use crate::sockets;
use host::Cache;
use host::IoContext;
use host::Lock;
use host::Progress;
use host::ServerUser;
use host::files::{open_regular, remove_tree};

/// Lock held by the owner of a cluster.
pub(crate) const OWNER_LOCK: &str = "owner.lock";
/// File with the directories of the control groups that a cluster's server may have had, one per line.
const GROUPS: &str = "groups";
/// The data directory within a cluster's directory.
pub(crate) const DATA: &str = "data";

/// Data directory of a stopped server, with directories for its sockets and its log. It is deleted when this is
/// dropped.
#[derive(Debug)]
pub struct Cluster {
    directory: PathBuf,
    installation: Installation,
    user: ServerUser,
    sockets: PathBuf,
    /// State of its files after the last copy.
    stamps: Stamps,
    copied: Copied,
    /// Lines of `pg_hba.conf` that replace pgdyno's own.
    rules: Option<String>,
    _owner: Lock,
    /// None while it is being installed.
    _installation_in_use: Option<Lock>,
}

impl Cluster {
    /// A new cluster created by `initdb` with these options, without the tested database.
    ///
    /// # Errors
    /// The installation is gone, the directory can't be created, an option is one that pgdyno sets itself, `initdb`
    /// fails.
    pub fn empty(cache: &Cache, installation: &Installation, options: &[String]) -> Result<Self, Error> {
        let cluster = Self::without_data(cache, installation)?;
        cluster.initdb(options)?;
        Ok(cluster)
    }

    /// A new cluster of an installation under way, whose lock the caller holds.
    pub(crate) fn of_unfinished(cache: &Cache, installation: &Installation) -> Result<Self, Error> {
        let cluster = Self::with_lock(cache, installation, None)?;
        cluster.initdb(&[])?;
        Ok(cluster)
    }

    fn initdb(&self, options: &[String]) -> Result<(), Error> {
        let log = self.directory.join("initdb.log");
        initdb(&self.installation, options, &self.user, &self.data_directory(), &log)
    }

    /// A copy of a data directory without a running server. Progress is reported as the step `what`.
    pub(crate) fn from_copy(
        cache: &Cache,
        installation: &Installation,
        data: &Path,
        what: &str,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let mut cluster = Self::without_data(cache, installation)?;
        cluster.restore_from(data, what, progress)?;
        Ok(cluster)
    }

    /// A copy of it; no server may run on it.
    ///
    /// # Errors
    /// The copy can't be made, or the user wants to stop.
    pub fn duplicate(&self, cache: &Cache, progress: &dyn Progress) -> Result<Self, Error> {
        let mut copy = Self::without_data(cache, &self.installation)?;
        copy.copy_from(self, progress)?;
        Ok(copy)
    }

    /// Makes its data directory equal to that of another cluster, by writing only what differs; no server may run on either.
    ///
    /// # Errors
    /// It can't be written, or the user wants to stop; it can then be copied again.
    pub fn copy_from(&mut self, other: &Self, progress: &dyn Progress) -> Result<(), Error> {
        self.restore_from(&other.data_directory(), "copying the data for a replica", progress)
    }

    /// Makes its data directory equal to this one.
    pub(crate) fn restore_from(
        &mut self,
        data: &Path,
        what: &str,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let to = self.data_directory();
        self.copied = mirror_tree(data, &to, &self.user, &mut self.stamps, what, progress)?;
        Ok(())
    }

    /// Cost of the last copy, when it was created or restored; zero if it is not a copy.
    pub fn copied(&self) -> Copied {
        self.copied
    }

    /// A new cluster that takes over the existing data directory `data` among the cache's clusters.
    pub(crate) fn adopt(cache: &Cache, installation: &Installation) -> Result<Self, Error> {
        let cluster = Self::without_data(cache, installation)?;
        let from = cache.clusters().join(DATA);
        fs::rename(&from, cluster.data_directory()).doing("take over", &from)?;
        Ok(cluster)
    }

    /// Creates everything but the data directory.
    fn without_data(cache: &Cache, installation: &Installation) -> Result<Self, Error> {
        let in_use = installation.in_use(cache)?;
        Self::with_lock(cache, installation, Some(in_use))
    }

    fn with_lock(cache: &Cache, installation: &Installation, in_use: Option<Lock>) -> Result<Self, Error> {
        let _lock = cache.clusters_lock()?;
        let directory = tempfile::Builder::new()
            .prefix("c-")
            .tempdir_in(cache.clusters())
            .doing("create a directory in", &cache.clusters())?;
        let owner = Lock::exclusive(&directory.path().join(OWNER_LOCK))?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))
            .doing("make readable by all users", directory.path())?;
        let sockets = sockets::make(directory.path(), cache.user())?;
        Ok(Self {
            directory: directory.keep(),
            installation: installation.clone(),
            user: cache.user().clone(),
            sockets,
            stamps: Stamps::default(),
            copied: Copied::default(),
            rules: None,
            _owner: owner,
            _installation_in_use: in_use,
        })
    }

    /// Drops its files from the system's page cache.
    ///
    /// # Errors
    /// A file can't be opened or synced.
    pub fn drop_page_cache(&self) -> Result<(), Error> {
        self.user.run_as(|| drop_page_cache(&self.data_directory()))?
    }

    /// Control groups for its server. Their directories are recorded before they are created, for the next sweep.
    pub(crate) fn group(&self, limits: &Limits) -> Result<Group, Error> {
        let journal = self.directory.join(GROUPS);
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        Group::create(limits, &self.data_directory(), &format!("pgdyno-{name}"), &mut |directory| {
            let mut file = OpenOptions::new().create(true).append(true).open(&journal)?;
            file.write_all(format!("{}\n", directory.display()).as_bytes())
        })
    }

    /// Replaces the access rules at each start from now on with these lines of `pg_hba.conf`, through the socket and on
    /// 127.0.0.1: for tests of clients. pgdyno's own sessions connect through the socket as [`crate::USER`].
    pub fn with_rules(mut self, rules: &str) -> Self {
        self.rules = Some(rules.to_owned());
        self
    }

    pub(crate) fn access(&self, transport: Transport) -> Access<'_> {
        match (&self.rules, transport) {
            (Some(rules), _) => Access::Rules(rules),
            (None, Transport::Tcp) => Access::Tcp,
            (None, Transport::Unix) => Access::Socket,
        }
    }

    /// Its directory, owned by pgdyno.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// PostgreSQL's data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.directory.join(DATA)
    }

    /// The installation that runs on it.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    pub(crate) fn user(&self) -> &ServerUser {
        &self.user
    }

    pub(crate) fn sockets(&self) -> &Path {
        &self.sockets
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.directory.join("server.log")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = remove_cluster(&self.directory) {
            // The next sweep finds what remains.
            tracing::warn!("{error}");
        }
    }
}

/// Removes the control groups that a killed pgdyno has left of a cluster's server.
pub(crate) fn remove_groups(directory: &Path) {
    let groups = fs::read_to_string(directory.join(GROUPS)).unwrap_or_default();
    groups.lines().for_each(|group| limits::remove(Path::new(group)));
}

/// Removes a cluster without a running server.
pub(crate) fn remove_cluster(directory: &Path) -> Result<(), Error> {
    sockets::remove(directory)?;
    Ok(remove_tree(directory)?)
}

/// Syncs the file system that holds `path`.
pub(crate) fn sync_file_system(path: &Path) -> Result<(), Error> {
    let opened = fs::File::open(path).doing("open", path)?;
    Ok(rustix::fs::syncfs(&opened).doing("sync", path)?)
}

/// Drops the files below a directory from the system's page cache. Dirty pages are written first. Any use of the files
/// in the meantime caches them again.
fn drop_page_cache(directory: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(directory).doing("read the directory", directory)? {
        let path = entry.doing("read the directory", directory)?.path();
        let meta = path.symlink_metadata().doing("inspect", &path)?;
        if meta.is_dir() {
            drop_page_cache(&path)?;
        } else if meta.is_file() {
            let file = open_regular(&path).doing("open", &path)?;
            file.sync_data().doing("sync", &path)?;
            fadvise(&file, 0, None, Advice::DontNeed).doing("drop from the page cache", &path)?;
        }
    }
    Ok(())
}
