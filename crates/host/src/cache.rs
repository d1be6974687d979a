//! The cache directory: installed servers, templates, clusters of running trials, instances, journals.
//!
//! ```text
//! installations/18.1/         binaries, with installation.json
//! builds/<id>/                a source, its build directory, and build.log
//! answers/<hash>              results of `configure`'s checks on this machine
//! templates/18.1-scale-10-v2/ filled data directories
//! kernels/<package>_<version>/ a kernel with its modules, with kernel.json
//! kernels/src-<hash>/         the same, built from a commit, with build.log
//! builds/kernel-<id>/         the source of a kernel, its build directory, and build.log
//! kernel-labels/6.12          a link to the kernel that a campaign's label stands for
//! clusters/<id>/              data directory, sockets and log of a server; its owner holds owner.lock, and groups
//!                             lists its control groups
//! servers/18/                 the same for an instance
//! journals/<server>.json      settings to restore on a server that pgdyno does not own
//! contents/<hash>             the hash of a large dump or base backup, by the state of its files
//! scratch/<id>/                temporary files of a process, which holds owner.lock
//! locks/                      lock files, never deleted
//! ```

use std::path::{Path, PathBuf};

use crate::error::{Error, IoContext};
use crate::files::create_public_directory;
use crate::lock::Lock;
use crate::user::ServerUser;

/// Cache directory of root if the server's user can't reach root's own.
const SYSTEM_CACHE: &str = "/var/cache/pgdyno";

/// The cache of one machine's user, shared by all pgdyno processes.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    user: ServerUser,
}

impl Cache {
    /// Opens the cache at `PGDYNO_CACHE`, else `$XDG_CACHE_HOME/pgdyno`, else `~/.cache/pgdyno`. For root, if the user
    /// that servers run as can't reach the latter two, at `/var/cache/pgdyno`.
    ///
    /// # Errors
    /// None of these variables is set, or the directory can't be written to or reached.
    pub fn open() -> Result<Self, Error> {
        let user = ServerUser::choose()?;
        if let Some(requested) = directory_from("PGDYNO_CACHE") {
            return Self::at(&requested);
        }
        let default = directory_from("XDG_CACHE_HOME")
            .or_else(|| directory_from("HOME").map(|home| home.join(".cache")))
            .map(|directory| directory.join("pgdyno"));
        match default {
            Some(default) if user.can_reach(&default) => Self::at(&default),
            None if user == ServerUser::Current => Err(Error::NoCache),
            _ => Self::at(Path::new(SYSTEM_CACHE)),
        }
    }

    /// Opens the cache at a directory, which is created if missing.
    ///
    /// # Errors
    /// The directory can't be written to, or can't be reached by the user that servers run as.
    pub fn at(root: &Path) -> Result<Self, Error> {
        let user = ServerUser::choose()?;
        let root = std::path::absolute(root).doing("find", root)?;
        if root.to_str().is_none() {
            return Err(Error::CacheNotUtf8 { path: root });
        }
        if let (false, Some(name)) = (user.can_reach(&root), user.name()) {
            return Err(Error::CacheOutOfReach { path: root, user: name.to_owned() });
        }
        for name in [
            "installations",
            "builds",
            "answers",
            "templates",
            "kernels",
            "kernel-labels",
            "clusters",
            "servers",
            "journals",
            "contents",
            "scratch",
            "locks",
        ] {
            create_public_directory(&root.join(name))?;
        }
        // Servers and the kernel report canonical paths.
        let root = root.canonicalize().doing("find", &root)?;
        Ok(Self { root, user })
    }

    /// The cache's directory.
    pub fn directory(&self) -> &Path {
        &self.root
    }

    /// User that servers run as.
    pub fn user(&self) -> &ServerUser {
        &self.user
    }

    /// Directory of installed servers.
    pub fn installations(&self) -> PathBuf {
        self.root.join("installations")
    }

    /// Directory of the results of `configure`'s checks on this machine.
    pub fn configure_results(&self) -> PathBuf {
        self.root.join("answers")
    }

    /// Directory of builds.
    pub fn builds(&self) -> PathBuf {
        self.root.join("builds")
    }

    /// Directory of filled data directories.
    pub fn templates(&self) -> PathBuf {
        self.root.join("templates")
    }

    /// Directory of kernels.
    pub fn kernels(&self) -> PathBuf {
        self.root.join("kernels")
    }

    /// Directory of links from labels to kernels.
    pub fn kernel_labels(&self) -> PathBuf {
        self.root.join("kernel-labels")
    }

    /// Directory of the clusters of running trials.
    pub fn clusters(&self) -> PathBuf {
        self.root.join("clusters")
    }

    /// Directory of instances.
    pub fn servers(&self) -> PathBuf {
        self.root.join("servers")
    }

    /// Directory of journals.
    pub fn journals(&self) -> PathBuf {
        self.root.join("journals")
    }

    /// Directory of hashes of large files.
    pub(crate) fn contents(&self) -> PathBuf {
        self.root.join("contents")
    }

    /// Directory of temporary directories.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.root.join("scratch")
    }

    /// Lock file of a named resource.
    pub fn lock_file(&self, resource: &str) -> PathBuf {
        self.root.join("locks").join(format!("{resource}.lock"))
    }

    /// Lock for creating and scanning clusters: while it is held, a cluster without an owner is abandoned.
    ///
    /// # Errors
    /// The lock file can't be opened.
    pub fn clusters_lock(&self) -> Result<Lock, Error> {
        Lock::exclusive(&self.lock_file("clusters"))
    }
}

fn directory_from(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}
