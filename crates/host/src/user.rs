//! The user that servers run as. PostgreSQL refuses root, so root drops to an unprivileged user, which must be able to
//! reach the server's files.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, chownat, fchown, statat};

use nix::unistd::{Gid, Uid, User, setfsgid, setfsuid};

use crate::error::{Error, IoContext};

/// Name of the user that runs pgdyno.
///
/// # Errors
/// It has none.
pub fn current_user_name() -> Result<String, Error> {
    let uid = Uid::effective();
    let user = User::from_uid(uid).ok().flatten();
    user.map(|user| user.name).ok_or(Error::NoUserName { uid: uid.as_raw() })
}

/// The user that servers run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerUser {
    /// The user that runs pgdyno.
    Current,
    /// pgdyno is root and drops to this one.
    Unprivileged {
        /// Name.
        name: String,
        /// User ID.
        uid: u32,
        /// ID of the primary group.
        gid: u32,
    },
}

impl ServerUser {
    /// For root: `PGDYNO_SERVER_USER`, else `pgdyno`, else `nobody`. `postgres` only on request: it owns the machine's
    /// own clusters, which a superuser of a benchmark's server could then read and write.
    pub fn choose() -> Result<Self, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Current);
        }
        match std::env::var("PGDYNO_SERVER_USER") {
            Ok(name) if !name.is_empty() => Self::named(&name),
            _ => Self::named("pgdyno").or_else(|_| Self::named("nobody")),
        }
    }

    fn named(name: &str) -> Result<Self, Error> {
        match User::from_name(name) {
            Ok(Some(user)) if !user.uid.is_root() => {
                Ok(Self::Unprivileged { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() })
            }
            _ => Err(Error::NoServerUser { name: name.to_owned() }),
        }
    }

    /// Name for messages; none for the user that runs pgdyno.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Current => None,
            Self::Unprivileged { name, .. } => Some(name),
        }
    }

    /// User ID.
    pub fn uid(&self) -> u32 {
        match self {
            Self::Current => rustix::process::geteuid().as_raw(),
            Self::Unprivileged { uid, .. } => *uid,
        }
    }

    /// Makes a command run as this user, without root's groups.
    pub fn apply_to(&self, command: &mut Command) {
        if let Self::Unprivileged { uid, gid, .. } = self {
            // As root, the standard library also clears the supplementary groups.
            command.uid(*uid).gid(*gid);
        }
    }

    /// Makes this user the owner of a file or directory. Symbolic links are not followed. The path's directory must not
    /// be this user's: below that, use [`Self::run_as`].
    pub fn chown(&self, path: &Path) -> Result<(), Error> {
        match self {
            Self::Current => Ok(()),
            Self::Unprivileged { uid, gid, .. } => {
                lchown(path, Some(*uid), Some(*gid)).doing("change the owner of", path)
            }
        }
    }

    /// Makes this user the owner of a directory tree that has another owner, that of an earlier pgdyno. Symbolic links
    /// are not followed. Files with several hard links are left alone, since one may be another user's.
    ///
    /// # Errors
    /// A directory can't be read, or the owner of a file can't be changed.
    pub fn take_over(&self, directory: &Path) -> Result<(), Error> {
        let Self::Unprivileged { uid, gid, .. } = self else { return Ok(()) };
        let opened = open_directory(rustix::fs::CWD, directory).doing("open", directory)?;
        let owner = rustix::fs::fstat(&opened).doing("inspect", directory)?.st_uid;
        if owner == *uid {
            return Ok(());
        }
        let (uid, gid) = (rustix::process::Uid::from_raw(*uid), rustix::process::Gid::from_raw(*gid));
        chown_tree(&opened, uid, gid).doing("change the owner of", directory)
    }

    /// Runs `work` with this user's rights to files, in a thread of its own; threads that it starts inherit them. A
    /// symbolic link planted by a process of this user then leads to no file that the user could not open itself.
    ///
    /// Source: setfsuid(2), which also drops root's capabilities over files, and setgroups(2), which the kernel applies
    /// to one thread. The real user stays root, so that this user's processes cannot signal the thread.
    ///
    /// # Errors
    /// The kernel refuses the change of user.
    pub fn run_as<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let Self::Unprivileged { name, uid, gid } = self else { return Ok(work()) };
        let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
        let outcome = thread::scope(|scope| {
            let thread = scope.spawn(move || {
                rustix::thread::set_thread_groups(&[])?;
                setfsgid(gid);
                setfsuid(uid);
                // Both calls return the former id, whether or not they succeed.
                if setfsgid(gid) != gid || setfsuid(uid) != uid {
                    return Err(io::Error::from(io::ErrorKind::PermissionDenied));
                }
                Ok(work())
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        outcome.map_err(|source| Error::ServerUserRights { name: name.clone(), source })
    }

    /// Whether this user may search every directory of a path, as far as it exists. ACLs are ignored.
    pub fn can_reach(&self, path: &Path) -> bool {
        let Self::Unprivileged { uid, gid, .. } = self else { return true };
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

fn open_directory(at: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, path, flags, Mode::empty())
}

fn chown_tree(
    directory: &OwnedFd,
    uid: rustix::process::Uid,
    gid: rustix::process::Gid,
) -> rustix::io::Result<()> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let path = Path::new(OsStr::from_bytes(name.to_bytes()));
                chown_tree(&open_directory(directory, path)?, uid, gid)?
            }
            FileType::RegularFile if stat.st_nlink > 1 => {}
            _ => chownat(directory, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?,
        }
    }
    fchown(directory, Some(uid), Some(gid))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn root_assumes_the_rights_of_the_servers_user_in_one_thread_only() {
        let Ok(nobody) = ServerUser::named("nobody") else {
            return skip::skip("there is no user nobody");
        };
        if !rustix::process::geteuid().is_root() {
            return skip::skip("the rights of the server's user: this test does not run as root");
        }
        let directory = tempfile::tempdir().unwrap();
        let ours = directory.path().join("ours");
        fs::write(&ours, "secret").unwrap();
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o600)).unwrap();
        let shared = directory.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        nobody.chown(&shared).unwrap();
        let link = shared.join("link");
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        let refused = nobody.run_as(|| fs::read(&link).unwrap_err().kind()).unwrap();
        assert_eq!(refused, io::ErrorKind::PermissionDenied);
        let inherited =
            nobody.run_as(|| thread::scope(|scope| scope.spawn(|| fs::write(&link, "x")).join().unwrap()));
        assert_eq!(inherited.unwrap().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        nobody.run_as(|| fs::write(shared.join("new"), "new")).unwrap().unwrap();
        let ServerUser::Unprivileged { uid, gid, .. } = nobody else { unreachable!() };
        let new = fs::metadata(shared.join("new")).unwrap();
        assert_eq!((new.uid(), new.gid()), (uid, gid));
        assert_eq!(fs::read(&link).unwrap(), b"secret", "this thread is root as before");
    }

    #[test]
    fn another_users_directory_is_taken_over_and_links_in_it_are_not_followed() {
        let Ok(nobody) = ServerUser::named("nobody") else {
            return skip::skip("there is no user nobody");
        };
        if !rustix::process::geteuid().is_root() {
            return skip::skip("taking over files: this test does not run as root");
        }
        let directory = tempfile::tempdir().unwrap();
        let (data, ours) = (directory.path().join("data"), directory.path().join("ours"));
        fs::create_dir_all(data.join("base/1")).unwrap();
        fs::write(data.join("base/1/table"), "").unwrap();
        fs::write(&ours, "").unwrap();
        std::os::unix::fs::symlink(&ours, data.join("link")).unwrap();
        std::os::unix::fs::symlink(directory.path(), data.join("base/up")).unwrap();
        fs::hard_link(&ours, data.join("name")).unwrap();
        nobody.take_over(&data).unwrap();
        let ServerUser::Unprivileged { uid, .. } = nobody else { unreachable!() };
        let owner = |path: &str| fs::symlink_metadata(directory.path().join(path)).unwrap().uid();
        assert_eq!(
            ["data", "data/base", "data/base/1", "data/base/1/table", "data/link"].map(owner),
            [uid; 5]
        );
        assert_eq!(["ours", "data/name", ""].map(owner), [0; 3]);
    }

    #[test]
    fn files_below_an_inaccessible_directory_are_out_of_reach() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        let other_user = ServerUser::Unprivileged { name: "other".to_owned(), uid: 54_321, gid: 54_321 };
        let close = |mode| fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        close(0o755);
        assert!(other_user.can_reach(&below));
        assert!(other_user.can_reach(&below.join("not/yet/there")));
        close(0o700);
        assert!(!other_user.can_reach(&below));
        assert!(ServerUser::Current.can_reach(&below));
    }
}
