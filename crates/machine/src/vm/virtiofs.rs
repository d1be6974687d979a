//! This machine's files for a guest, served read-only by virtiofsd. Sources: virtiofsd(1), mount_setattr(2),
//! user_namespaces(7).

use std::fs::{File, Permissions};
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Signal, Uid, getegid, geteuid};
use rustix::thread::UnshareFlags;

use crate::vm::descriptor::by_descriptor;
use crate::vm::error::VmError;
use host::process::{inherit_fd, spawn, withhold_variables};
use model::secret::is_secret_name;

/// Tag by which the guest mounts them.
pub(crate) const TAG: &str = "host";

/// Paths of virtiofsd: in Debian 13 and others; in Arch; in Debian 12, as a part of QEMU.
const PLACES: [(&str, &[&str]); 3] =
    [("/usr/libexec/virtiofsd", &OPTIONS), ("/usr/lib/virtiofsd", &OPTIONS), (OF_QEMU, &OPTIONS_OF_QEMU)];
const OF_QEMU: &str = "/usr/lib/qemu/virtiofsd";
/// An overlay does not cross mounts below its lower directory, so the guest must not see any.
const OPTIONS: [&str; 4] =
    ["--shared-dir=/", "--sandbox=none", "--no-announce-submounts", "--log-level=error"];
/// It requires a sandbox; this one has no process of its own.
const OPTIONS_OF_QEMU: [&str; 2] = ["-o", "source=/,sandbox=chroot,log_level=err"];

/// Server of this machine's files. It ends when this is dropped, with the guest, and by the kernel when this process
/// dies.
pub(crate) struct HostFiles {
    child: Child,
    stderr: File,
}

impl HostFiles {
    /// Starts the server. Also returns the socket over which the emulator requests files.
    pub(crate) fn serve() -> Result<(Self, OwnedFd), VmError> {
        let is_root = geteuid().is_root();
        let (program, options) = installed(&PLACES, is_root)?;
        let (listener, socket) = socket_pair()?;
        let stderr = tempfile::tempfile()?;
        let mut command = Command::new(program);
        command.args(options).arg(format!("--fd={}", listener.as_raw_fd()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr.try_clone()?);
        inherit_fd(&mut command, listener);
        withhold_variables(&mut command, is_secret_name);
        make_read_only(&mut command, (!is_root).then(|| (geteuid(), getegid())));
        let child = spawn(command, Signal::KILL).map_err(|error| {
            refused(format!(
                "{program} did not start with all file systems read-only ({error}); this needs Linux 5.12 and the right to create \
                 a mount namespace"
            ))
        })?;
        Ok((Self { child, stderr }, socket))
    }

    /// Exit status of the server, if it failed.
    pub(crate) fn failure(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten().filter(|status| !status.success())
    }

    /// Error output of the server.
    pub(crate) fn stderr(&mut self) -> String {
        let mut stderr = Vec::new();
        // If it can't be read, the error has the rest.
        let _ = self.stderr.rewind().and_then(|()| self.stderr.read_to_end(&mut stderr));
        String::from_utf8_lossy(&stderr).trim().to_owned()
    }
}

impl Drop for HostFiles {
    fn drop(&mut self) {
        // It ends by itself when the emulator does.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn refused(why: String) -> VmError {
    VmError::HostFiles { why }
}

/// The first installed one.
fn installed<'a>(
    places: &[(&'a str, &'a [&'a str])],
    is_root: bool,
) -> Result<(&'a str, &'a [&'a str]), VmError> {
    match places.iter().find(|(program, _)| Path::new(program).is_file()) {
        Some((OF_QEMU, _)) if !is_root => Err(refused(format!(
            "{OF_QEMU} requires root; newer versions of virtiofsd, such as the package virtiofsd of Debian 13, do not"
        ))),
        Some(found) => Ok(*found),
        None => Err(refused(
            "virtiofsd is not installed: install the package virtiofsd (in Debian 12, qemu-system-common)"
                .to_owned(),
        )),
    }
}

/// A listening socket, and a connection pending on it. Their path was inaccessible to other users, and is already
/// removed.
fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let own = Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().prefix("pgdyno-").permissions(own).tempdir()?;
    // A socket's path has 107 bytes at most.
    let opened = File::open(directory.path())?;
    let path = by_descriptor(&opened).join("socket");
    let listener = UnixListener::bind(&path)?;
    let stream = UnixStream::connect(&path)?;
    directory.close()?;
    Ok((listener.into(), stream.into()))
}

/// Makes every file system read-only for a command, for any user. Without root, this needs a user namespace, in which
/// files of other users and groups belong to nobody.
fn make_read_only(command: &mut Command, not_root: Option<(Uid, Gid)>) {
    let maps = not_root.map(|(user, group)| {
        [
            (c"/proc/self/uid_map", format!("{user} {user} 1")),
            (c"/proc/self/setgroups", "deny".to_owned()),
            (c"/proc/self/gid_map", format!("{group} {group} 1")),
        ]
    });
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated. Neither namespaces nor
    // attributes of mounts touch memory, and `mount_setattr` only reads what it is given, which lives until it returns.
    unsafe {
        command.pre_exec(move || {
            if let Some(maps) = &maps {
                rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER)?;
                for (file, map) in maps {
                    let file = rustix::fs::open(*file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
                    rustix::io::write(&file, map.as_bytes())?;
                }
            }
            rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)?;
            let wanted = libc::mount_attr {
                attr_set: libc::MOUNT_ATTR_RDONLY,
                attr_clr: 0,
                // Later mounts are not propagated, as they could be writable.
                propagation: libc::MS_PRIVATE,
                userns_fd: 0,
            };
            let done = libc::syscall(
                libc::SYS_mount_setattr,
                libc::AT_FDCWD,
                c"/".as_ptr(),
                libc::AT_RECURSIVE,
                &raw const wanted,
                size_of_val(&wanted),
            );
            if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_virtiofsd_is_reported_with_its_package() {
        let none = installed(&[("/no/virtiofsd", &[])], true).unwrap_err().to_string();
        assert!(none.contains("install the package virtiofsd (in Debian 12, qemu-system-common)"), "{none}");
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        assert_eq!(installed(&[("/no/virtiofsd", &[]), (own, &["-x"])], false).unwrap(), (own, &["-x"][..]));
    }

    #[test]
    fn no_user_can_write_to_read_only_file_systems() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(place.path(), Permissions::from_mode(0o777)).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        let all: &[Option<u32>] = if geteuid().is_root() { &[None, Some(65_533)] } else { &[None] };
        for user in all {
            let mut command = Command::new("sh");
            command.args(["-c", "cat \"$0\"; echo new >\"$0\""]).arg(&file);
            if let Some(user) = user {
                command.uid(*user).gid(*user);
                let dumpable = rustix::process::DumpableBehavior::Dumpable;
                // SAFETY: a system call. After a change of its user, a process may not write its files in /proc.
                unsafe {
                    command.pre_exec(move || Ok(rustix::process::set_dumpable_behavior(dumpable)?));
                }
            }
            let own = (!geteuid().is_root()).then(|| (geteuid(), getegid()));
            make_read_only(&mut command, user.map(|id| (Uid::from_raw(id), Gid::from_raw(id))).or(own));
            let output = command.output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "old", "{user:?}: {stderr}");
            assert!(stderr.contains("Read-only file system"), "{user:?}: {stderr}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        }
    }
}
