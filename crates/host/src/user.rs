//! As whom servers run. PostgreSQL refuses root, so root drops to an unprivileged user who must be able to reach the
//! server's files.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::User;

use crate::error::{Doing, Error};

/// The user that servers run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerUser {
    /// Whoever runs pgdyno.
    Ourselves,
    /// pgdyno is root and drops to this one.
    Dropped {
        /// Its name.
        name: String,
        /// Its id.
        uid: u32,
        /// Id of its primary group.
        gid: u32,
    },
}

impl ServerUser {
    /// For root: `PGDYNO_SERVER_USER`, else `postgres`, else `nobody`.
    pub fn choose() -> Result<Self, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Ourselves);
        }
        match std::env::var("PGDYNO_SERVER_USER") {
            Ok(name) if !name.is_empty() => Self::named(&name),
            _ => Self::named("postgres").or_else(|_| Self::named("nobody")),
        }
    }

    fn named(name: &str) -> Result<Self, Error> {
        match User::from_name(name) {
            Ok(Some(user)) if !user.uid.is_root() => {
                Ok(Self::Dropped { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() })
            }
            _ => Err(Error::NoServerUser { name: name.to_owned() }),
        }
    }

    /// Its name, for messages; none where it is our own.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Ourselves => None,
            Self::Dropped { name, .. } => Some(name),
        }
    }

    /// Makes a command run as this user, without root's groups.
    pub fn run(&self, command: &mut Command) {
        if let Self::Dropped { uid, gid, .. } = self {
            // As root, the standard library also clears the supplementary groups.
            command.uid(*uid).gid(*gid);
        }
    }

    /// Gives a file or directory to this user.
    pub fn own(&self, path: &Path) -> Result<(), Error> {
        match self {
            Self::Ourselves => Ok(()),
            Self::Dropped { uid, gid, .. } => {
                chown(path, Some(*uid), Some(*gid)).doing("give to the server's user", path)
            }
        }
    }

    /// Whether this user may pass through every directory of a path, as far as it exists. Access lists are not looked
    /// at.
    pub fn can_reach(&self, path: &Path) -> bool {
        let Self::Dropped { uid, gid, .. } = self else { return true };
        path.ancestors().filter_map(|directory| fs::metadata(directory).ok()).all(|meta| {
            let may_pass = if meta.uid() == *uid {
                0o100
            } else if meta.gid() == *gid {
                0o010
            } else {
                0o001
            };
            meta.mode() & may_pass != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_closed_directory_above_is_out_of_reach() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        let stranger = ServerUser::Dropped { name: "stranger".to_owned(), uid: 54_321, gid: 54_321 };
        let close = |mode| fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        close(0o755);
        assert!(stranger.can_reach(&below));
        assert!(stranger.can_reach(&below.join("not/yet/there")));
        close(0o700);
        assert!(!stranger.can_reach(&below));
        assert!(ServerUser::Ourselves.can_reach(&below));
    }
}
