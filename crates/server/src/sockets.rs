//! Directories for Unix-domain sockets. A socket's path is limited to 107 bytes, which a deep cache exceeds.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::error::Error;
use host::IoContext;
use host::ServerUser;
use host::files::remove_tree;

/// Longest path of a socket: `sun_path` without the terminating zero.
const MAX_PATH: usize = 107;
/// PostgreSQL's name of the socket, with the longest port.
const NAME: &str = "/.s.PGSQL.65535";
/// Name of the directory, or of a link to it, in the directory of a cluster.
const SOCKETS: &str = "sockets";

/// Creates a private directory for the sockets of the server in `home`: below it, or, if that path is too long, in a
/// short temporary place with a link to it in `home`, so that it is found again.
pub(crate) fn make(home: &Path, user: &ServerUser) -> Result<PathBuf, Error> {
    let inside = home.join(SOCKETS);
    let directory = if fits(&inside) {
        fs::create_dir(&inside).doing("create the directory", &inside)?;
        inside
    } else {
        let place = short_directory(user);
        // The link first: if pgdyno is killed in between, a sweep finds what was created.
        let link_and_create = |outside: &Path| {
            match fs::remove_file(&inside) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => symlink(outside, &inside)?,
            }
            fs::create_dir(outside)
        };
        let created = tempfile::Builder::new().prefix("pgdyno-").make_in(&place, link_and_create);
        let ((), outside) = created
            .and_then(|created| created.keep().map_err(|failed| failed.error))
            .doing("create a socket directory in", &place)?;
        outside
    };
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))
        .doing("restrict access to", &directory)?;
    user.chown(&directory)?;
    Ok(directory)
}

/// The directory that [`make`] made for the server in `home`.
pub(crate) fn find(home: &Path) -> Option<PathBuf> {
    let inside = home.join(SOCKETS);
    match fs::read_link(&inside) {
        Ok(outside) => Some(outside),
        Err(_) => inside.is_dir().then_some(inside),
    }
}

/// The directory that [`make`] made for the server in `home`, or a new one if it is gone: one outside of `home` may have been
/// deleted, and another user may have taken its name.
pub(crate) fn find_or_make(home: &Path, user: &ServerUser) -> Result<PathBuf, Error> {
    let inside = home.join(SOCKETS);
    match find(home) {
        Some(inside) if inside.parent() == Some(home) => {
            user.chown(&inside)?;
            Ok(inside)
        }
        Some(outside) if is_private(&outside, user) => Ok(outside),
        Some(_) => {
            fs::remove_file(&inside).doing("remove", &inside)?;
            make(home, user)
        }
        None => make(home, user),
    }
}

/// Whether a path is a directory that only this user can enter.
fn is_private(path: &Path, user: &ServerUser) -> bool {
    let is_ours = |meta: Metadata| meta.is_dir() && meta.uid() == user.uid() && meta.mode() & 0o777 == 0o700;
    fs::symlink_metadata(path).is_ok_and(is_ours)
}

/// Removes a directory outside of `home`; one inside is removed with `home`.
pub(crate) fn remove(home: &Path) -> Result<(), Error> {
    match fs::read_link(home.join(SOCKETS)) {
        Ok(outside) => Ok(remove_tree(&outside)?),
        Err(_) => Ok(()),
    }
}

fn fits(directory: &Path) -> bool {
    directory.as_os_str().as_bytes().len() + NAME.len() <= MAX_PATH
}

/// The user's runtime directory, else the temporary one, each if it is short enough and accessible; else `/tmp`.
fn short_directory(user: &ServerUser) -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime
        .into_iter()
        .chain([std::env::temp_dir()])
        .find(|place| place.is_dir() && fits(&place.join("pgdyno-123456")) && user.can_reach(place))
        .unwrap_or_else(|| PathBuf::from("/tmp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_directory_gets_a_short_one_elsewhere_that_is_found_and_removed() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("d".repeat(120));
        fs::create_dir(&deep).unwrap();
        let sockets = make(&deep, &ServerUser::Current).unwrap();
        assert!(fits(&sockets), "{sockets:?}");
        assert_eq!(find(&deep), Some(sockets.clone()));
        remove(&deep).unwrap();
        assert!(!sockets.exists());
    }

    #[test]
    fn a_directory_elsewhere_is_used_again_only_if_it_is_private() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("d".repeat(120));
        fs::create_dir(&deep).unwrap();
        let user = &ServerUser::choose().unwrap();
        let first = find_or_make(&deep, user).unwrap();
        assert_eq!(find_or_make(&deep, user).unwrap(), first);
        let open_to_all = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        open_to_all(&first);
        let second = find_or_make(&deep, user).unwrap();
        assert!(is_private(&second, user) && second != first);
        fs::remove_dir(&second).unwrap();
        symlink(&first, &second).unwrap();
        let third = find_or_make(&deep, user).unwrap();
        assert!(is_private(&third, user) && third != second);
        if rustix::process::geteuid().is_root() {
            fs::remove_dir(&third).unwrap();
            fs::create_dir(&third).unwrap();
            fs::set_permissions(&third, fs::Permissions::from_mode(0o700)).unwrap();
            std::os::unix::fs::chown(&third, Some(54_321), Some(54_321)).unwrap();
            assert_ne!(find_or_make(&deep, user).unwrap(), third, "it is another user's");
            fs::remove_dir(&third).unwrap();
        }
        remove(&deep).unwrap();
        fs::remove_file(&second).unwrap();
        fs::remove_dir(&first).unwrap();
    }

    #[test]
    fn a_shallow_directory_contains_its_sockets() {
        let base = tempfile::tempdir().unwrap();
        let sockets = make(base.path(), &ServerUser::Current).unwrap();
        assert_eq!(sockets, base.path().join("sockets"));
        remove(base.path()).unwrap();
        assert!(sockets.exists());
    }
}
