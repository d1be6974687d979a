//! Where everything lives: installed servers, templates, the clusters of running trials, standing servers, journals.
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
//! servers/18/                 the same of a standing server
//! journals/<server>.json      settings of a server that pgdyno does not own, to be put back
//! locks/                      lock files; they stay
//! ```

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Doing, TargetError};
use crate::lock::Lock;
use crate::programs::installation::{self, Installation};
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
    pub fn open() -> Result<Self, TargetError> {
        let user = ServerUser::choose()?;
        if let Some(asked) = directory_from("PGDYNO_CACHE") {
            return Self::at(&asked);
        }
        let own = directory_from("XDG_CACHE_HOME")
            .or_else(|| directory_from("HOME").map(|home| home.join(".cache")))
            .map(|directory| directory.join("pgdyno"));
        match own {
            Some(own) if user.can_reach(&own) => Self::at(&own),
            None if user == ServerUser::Ourselves => Err(TargetError::NoCache),
            _ => Self::at(Path::new(SYSTEM_CACHE)),
        }
    }

    /// Opens the cache at a directory, which is made where it does not exist.
    ///
    /// # Errors
    /// The directory can't be written to, or not reached by the user that servers run as.
    pub fn at(root: &Path) -> Result<Self, TargetError> {
        let user = ServerUser::choose()?;
        let root = std::path::absolute(root).doing("find", root)?;
        if let (false, Some(name)) = (user.can_reach(&root), user.name()) {
            return Err(TargetError::CacheOutOfReach { path: root, user: name.to_owned() });
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

    /// Every installation, oldest version first.
    ///
    /// # Errors
    /// The cache can't be read.
    pub fn installed(&self) -> Result<Vec<Installation>, TargetError> {
        installation::installed(self)
    }

    pub(crate) fn user(&self) -> &ServerUser {
        &self.user
    }

    pub(crate) fn installations(&self) -> PathBuf {
        self.root.join("installations")
    }

    pub(crate) fn answers(&self) -> PathBuf {
        self.root.join("answers")
    }

    pub(crate) fn builds(&self) -> PathBuf {
        self.root.join("builds")
    }

    pub(crate) fn templates(&self) -> PathBuf {
        self.root.join("templates")
    }

    pub(crate) fn kernels(&self) -> PathBuf {
        self.root.join("kernels")
    }

    pub(crate) fn kernel_labels(&self) -> PathBuf {
        self.root.join("kernel-labels")
    }

    pub(crate) fn clusters(&self) -> PathBuf {
        self.root.join("clusters")
    }

    pub(crate) fn servers(&self) -> PathBuf {
        self.root.join("servers")
    }

    pub(crate) fn journals(&self) -> PathBuf {
        self.root.join("journals")
    }

    /// The lock file of something with a name.
    pub(crate) fn lock_file(&self, what: &str) -> PathBuf {
        self.root.join("locks").join(format!("{what}.lock"))
    }

    /// Held while clusters are made and looked through: what has no owner then is left behind.
    pub(crate) fn clusters_lock(&self) -> Result<Lock, TargetError> {
        Lock::exclusive(&self.lock_file("clusters"))
    }
}

fn directory_from(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Makes a directory that everybody may pass and read, whatever the umask. Those above that exist stay as they are.
pub(crate) fn make_open(directory: &Path) -> Result<(), TargetError> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(above) = directory.parent() {
        make_open(above)?;
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        outcome => outcome.doing("make the directory", directory)?,
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).doing("open to all", directory)
}

/// Takes a file tree away; one that is not there is no error.
pub(crate) fn remove_tree(directory: &Path) -> Result<(), TargetError> {
    // Somebody else may be taking away the same tree: then entries vanish under the walk.
    for _ in 0..3 {
        match fs::remove_dir_all(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !directory.exists() => {
                return Ok(());
            }
            Err(_) => {}
        }
    }
    fs::remove_dir_all(directory).doing("remove", directory)
}

/// Entries of a directory by name, in order; hidden ones are left out.
pub(crate) fn entries(directory: &Path) -> Result<Vec<(String, PathBuf)>, TargetError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).doing("read the directory", directory)? {
        let entry = entry.doing("read the directory", directory)?;
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}
