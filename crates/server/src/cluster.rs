//! Clusters: data directories that belong to one pgdyno process and go with it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::limits::Limits;
use model::workload::Transport;
use rustix::fs::{Advice, fadvise};

use crate::access::Access;
use crate::data::copy::{Copied, Stamps, make_alike};
use crate::data::initdb::initdb;
use crate::error::Error;
use crate::limits::{self, Group};
use crate::programs::installation::Installation;
use crate::sockets;
use host::Cache;
use host::Doing;
use host::Lock;
use host::Progress;
use host::ServerUser;
use host::files::{open_regular, remove_tree};

/// Held by the owner of a cluster as long as it lives.
pub(crate) const OWNER_LOCK: &str = "owner.lock";
/// Directories of the control groups that a cluster's server may have had, a line each.
const GROUPS: &str = "groups";
/// The data directory within a cluster's directory.
pub(crate) const DATA: &str = "data";

/// A stopped server's data directory, with a place for its sockets and its log. It is deleted when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    directory: PathBuf,
    installation: Installation,
    user: ServerUser,
    sockets: PathBuf,
    /// How its files were left by the last copying.
    stamps: Stamps,
    copied: Copied,
    /// Lines of `pg_hba.conf` in place of pgdyno's own.
    rules: Option<String>,
    _owner: Lock,
    _installation_in_use: Lock,
}

impl Cluster {
    /// A new cluster as `initdb` makes it with these options, without the tested database.
    ///
    /// # Errors
    /// The installation is gone, the directory can't be made, an option that pgdyno sets itself, `initdb` fails.
    pub fn empty(cache: &Cache, installation: &Installation, options: &[String]) -> Result<Self, Error> {
        let cluster = Self::frame(cache, installation)?;
        initdb(
            installation,
            options,
            &cluster.user,
            &cluster.data_directory(),
            &cluster.directory.join("initdb.log"),
        )?;
        Ok(cluster)
    }

    /// A copy of a data directory that no server runs on. `what` is told as the step.
    pub(crate) fn copy_of(
        cache: &Cache,
        installation: &Installation,
        data: &Path,
        what: &str,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let mut cluster = Self::frame(cache, installation)?;
        cluster.put_back(data, what, progress)?;
        Ok(cluster)
    }

    /// Makes its data directory what this one is.
    pub(crate) fn put_back(&mut self, data: &Path, what: &str, progress: &dyn Progress) -> Result<(), Error> {
        let to = self.data_directory();
        self.copied = make_alike(data, &to, &self.user, &mut self.stamps, what, progress)?;
        Ok(())
    }

    /// What its last copying took, when it was made or put back; nothing where it is no copy.
    pub fn copied(&self) -> Copied {
        self.copied
    }

    /// A new cluster with a data directory that is there already, in `data` among the cache's clusters: it is the
    /// cluster's from now on.
    pub(crate) fn adopt(cache: &Cache, installation: &Installation) -> Result<Self, Error> {
        let cluster = Self::frame(cache, installation)?;
        let from = cache.clusters().join(DATA);
        fs::rename(&from, cluster.data_directory()).doing("take over", &from)?;
        Ok(cluster)
    }

    /// Everything but the data directory.
    fn frame(cache: &Cache, installation: &Installation) -> Result<Self, Error> {
        let installation_in_use = installation.in_use(cache)?;
        let _lock = cache.clusters_lock()?;
        let directory = tempfile::Builder::new()
            .prefix("c-")
            .tempdir_in(cache.clusters())
            .doing("make a directory in", &cache.clusters())?;
        let owner = Lock::exclusive(&directory.path().join(OWNER_LOCK))?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))
            .doing("open to all", directory.path())?;
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
            _installation_in_use: installation_in_use,
        })
    }

    /// Puts its files out of the system's page cache.
    ///
    /// # Errors
    /// A file can't be opened or synced.
    pub fn forget_files(&self) -> Result<(), Error> {
        self.user.act(|| forget_files(&self.data_directory()))?
    }

    /// Control groups for its server. Their directories are written down before they are made, for the next sweep.
    pub(crate) fn group(&self, limits: &Limits) -> Result<Group, Error> {
        let journal = self.directory.join(GROUPS);
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        Group::make(limits, &self.data_directory(), &format!("pgdyno-{name}"), &mut |directory| {
            let mut file = OpenOptions::new().create(true).append(true).open(&journal)?;
            file.write_all(format!("{}\n", directory.display()).as_bytes())
        })
    }

    /// Lets in whom these lines of `pg_hba.conf` say, through the socket and on 127.0.0.1, at each start from now on: for
    /// tests of clients. pgdyno's own sessions come through the socket as [`crate::USER`].
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

    /// Its directory, which is pgdyno's own.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// PostgreSQL's data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.directory.join(DATA)
    }

    /// The version whose server it is for.
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
            // What stays is found by the next sweep.
            tracing::warn!("{error}");
        }
    }
}

/// Takes away the control groups that a killed pgdyno has left of a cluster's server.
pub(crate) fn remove_groups(directory: &Path) {
    let groups = fs::read_to_string(directory.join(GROUPS)).unwrap_or_default();
    groups.lines().for_each(|group| limits::remove(Path::new(group)));
}

/// Takes away a cluster on which no server runs.
pub(crate) fn remove_cluster(directory: &Path) -> Result<(), Error> {
    sockets::remove(directory)?;
    Ok(remove_tree(directory)?)
}

/// Brings everything of the file system that holds `path` to the disk.
pub(crate) fn sync_file_system(path: &Path) -> Result<(), Error> {
    let opened = fs::File::open(path).doing("open", path)?;
    Ok(rustix::fs::syncfs(&opened).doing("sync", path)?)
}

/// Puts the files below a directory out of the system's page cache. What is dirty is written first. Whoever uses the
/// files in the meantime brings them back.
fn forget_files(directory: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(directory).doing("read the directory", directory)? {
        let path = entry.doing("read the directory", directory)?.path();
        let meta = path.symlink_metadata().doing("look at", &path)?;
        if meta.is_dir() {
            forget_files(&path)?;
        } else if meta.is_file() {
            let file = open_regular(&path).doing("open", &path)?;
            file.sync_data().doing("sync", &path)?;
            fadvise(&file, 0, None, Advice::DontNeed).doing("put out of the page cache", &path)?;
        }
    }
    Ok(())
}
