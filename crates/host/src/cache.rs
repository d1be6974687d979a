//! Where everything lives: installed servers, templates, the clusters of running trials, instances, journals.
//!
//! ```text
//! installations/18.1/         binaries, with installation.json
//! builds/<id>/                a source, what is compiled of it, and build.log
//! answers/<hash>              what a `configure` found out of this machine
//! templates/18.1-scale-10-v2/ filled data directories
//! kernels/<package>_<version>/ a kernel with its modules, with kernel.json
//! kernel-labels/6.12          a link to the kernel that a campaign's label stands for
//! clusters/<id>/              data directory, sockets and log of one pgdyno's server; owner.lock is held meanwhile, and
//!                             groups names its control groups
//! servers/18/                 the same of an instance
//! journals/<server>.json      settings of a server that pgdyno does not own, to be put back
//! locks/                      lock files; they stay
//! ```

use std::path::{Path, PathBuf};

use crate::error::{Doing, Error};
use crate::files::make_open;
use crate::lock::Lock;
use crate::user::ServerUser;

/// Where root keeps the cache when the server's user can't reach root's own.
const SYSTEM_CACHE: &str = "/var/cache/pgdyno";

/// The cache of one machine's user, shared by all pgdyno processes.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    user: ServerUser,
}

impl Cache {
    /// Opens the cache at `PGDYNO_CACHE`, else `$XDG_CACHE_HOME/pgdyno`, else `~/.cache/pgdyno`. As root, where the
    /// user that servers run as can't reach the latter two, at `/var/cache/pgdyno`.
    ///
    /// # Errors
    /// No place is known, or it can't be written to or reached.
    pub fn open() -> Result<Self, Error> {
        let user = ServerUser::choose()?;
        if let Some(asked) = directory_from("PGDYNO_CACHE") {
            return Self::at(&asked);
        }
        let own = directory_from("XDG_CACHE_HOME")
            .or_else(|| directory_from("HOME").map(|home| home.join(".cache")))
            .map(|directory| directory.join("pgdyno"));
        match own {
            Some(own) if user.can_reach(&own) => Self::at(&own),
            None if user == ServerUser::Ourselves => Err(Error::NoCache),
            _ => Self::at(Path::new(SYSTEM_CACHE)),
        }
    }

    /// Opens the cache at a directory, which is made where it does not exist.
    ///
    /// # Errors
    /// The directory can't be written to, or not reached by the user that servers run as.
    pub fn at(root: &Path) -> Result<Self, Error> {
        let user = ServerUser::choose()?;
        let root = std::path::absolute(root).doing("find", root)?;
        if let (false, Some(name)) = (user.can_reach(&root), user.name()) {
            return Err(Error::CacheOutOfReach { path: root, user: name.to_owned() });
        }
        for part in [
            "installations",
            "builds",
            "answers",
            "templates",
            "kernels",
            "kernel-labels",
            "clusters",
            "servers",
            "journals",
            "locks",
        ] {
            make_open(&root.join(part))?;
        }
        // Servers and the kernel speak of places by their real names.
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

    /// Directory of what `configure` found out of this machine.
    pub fn answers(&self) -> PathBuf {
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

    /// Directory of hand-started servers.
    pub fn servers(&self) -> PathBuf {
        self.root.join("servers")
    }

    /// Directory of journals.
    pub fn journals(&self) -> PathBuf {
        self.root.join("journals")
    }

    /// The lock file of something with a name.
    pub fn lock_file(&self, what: &str) -> PathBuf {
        self.root.join("locks").join(format!("{what}.lock"))
    }

    /// Held while clusters are made and looked through: what has no owner then is left behind.
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
