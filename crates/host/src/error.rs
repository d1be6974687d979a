//! Errors of files, locks and users of this host, and what to do about them.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Advice for a full disk.
pub const DISK_FULL_ADVICE: &str = "; free some space (`pgdyno dataset list` shows what uses it, `pgdyno dataset \
                                    remove` frees it), or set PGDYNO_CACHE to a directory on a larger file \
                                    system";

/// Error of work on this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The user interrupted the operation.
    #[error("interrupted")]
    Interrupted,
    /// Another pgdyno has changed settings of the kernel.
    #[error("another pgdyno has changed settings of this kernel: wait until its command ends")]
    KernelSettingsInUse,
    /// No user to run servers as.
    #[error(
        "PostgreSQL does not run as root, and there is no user \"{name}\" to run it as; set PGDYNO_SERVER_USER to an \
         unprivileged user of this machine"
    )]
    NoServerUser {
        /// Name of the missing user.
        name: String,
    },
    /// The user that runs pgdyno has no name.
    #[error(
        "the user ID {uid} has no name on this machine, and PostgreSQL authenticates users by name; add it to \
         /etc/passwd"
    )]
    NoUserName {
        /// User ID.
        uid: u32,
    },
    /// pgdyno can't take on the rights of the server's user for its files.
    #[error(
        "could not assume the rights of the user \"{name}\", who runs the servers when pgdyno is root: {source}; a container \
         needs the capabilities CAP_SETUID and CAP_SETGID for this"
    )]
    ServerUserRights {
        /// The user.
        name: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The cache can't be used by the user that servers run as.
    #[error(
        "the user \"{user}\", who runs the servers when pgdyno is root, can't reach PGDYNO_CACHE ({path}); make its \
         directories accessible (chmod o+x) or choose another directory"
    )]
    CacheOutOfReach {
        /// The cache.
        path: PathBuf,
        /// The server user.
        user: String,
    },
    /// The location of the cache is unknown.
    #[error(
        "the cache has no location: none of PGDYNO_CACHE, XDG_CACHE_HOME and HOME is set; set PGDYNO_CACHE"
    )]
    NoCache,
    /// The cache's path is not UTF-8: PostgreSQL's settings, sockets and messages could not have it.
    #[error("the path of the cache, {path:?}, is not valid UTF-8; set PGDYNO_CACHE to another directory")]
    CacheNotUtf8 {
        /// Path of the cache.
        path: PathBuf,
    },
    /// Commits can't be listed.
    #[error("commits of {repository}: {why}")]
    Commits {
        /// The repository.
        repository: PathBuf,
        /// Cause.
        why: String,
    },
    /// A tool that a build needs is missing.
    #[error(
        "building from source needs `{tool}`, which can't be found in PATH; install it (Debian: apt-get install {package})"
    )]
    Tool {
        /// Command.
        tool: String,
        /// Debian package of the tool.
        package: String,
    },
    /// An operation on a file or directory failed.
    #[error("could not {doing} {path}: {source}{}", advice(source))]
    File {
        /// Operation.
        doing: &'static str,
        /// Path.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DISK_FULL_ADVICE,
        io::ErrorKind::FileTooLarge => "; raise the limit on the size of files (ulimit -f)",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; set PGDYNO_CACHE to a directory that you may write to"
        }
        _ => "",
    }
}

/// Whether an error, or one of its causes, is that this host is out of disk space, open files, processes or memory.
pub fn is_exhausted(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).any(is_exhausted_io)
}

fn is_exhausted_io(error: &io::Error) -> bool {
    // EAGAIN is an error of fork(2): the files that are read and written here are not in non-blocking mode.
    const ERRNOS: [Errno; 6] =
        [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    match error.raw_os_error() {
        Some(raw) => ERRNOS.contains(&Errno::from_raw_os_error(raw)),
        // Its source is that of the error that it wraps.
        None => error.get_ref().is_some_and(|wrapped| is_exhausted(wrapped)),
    }
}

/// Context of an I/O error: the operation and the path.
pub trait IoContext<T> {
    /// Adds the operation, such as `read`, and the path.
    ///
    /// # Errors
    /// [`Error::File`] if the operation failed.
    fn doing(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> IoContext<T> for Result<T, E> {
    fn doing(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|error| Error::File { doing: what, path: path.to_owned(), source: error.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_host_is_found_among_the_causes() {
        let full = || io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error());
        let in_file: Result<(), Error> = Err(full()).doing("write", Path::new("x"));
        assert!(is_exhausted(&in_file.unwrap_err()));
        assert!(is_exhausted(&full()));
        assert!(is_exhausted(&io::Error::other(io::Error::from_raw_os_error(Errno::MFILE.raw_os_error()))));
        let missing: Result<(), Error> =
            Err(io::Error::from(io::ErrorKind::NotFound)).doing("read", Path::new("x"));
        assert!(!is_exhausted(&missing.unwrap_err()));
        assert!(!is_exhausted(&Error::Interrupted));
    }
}
