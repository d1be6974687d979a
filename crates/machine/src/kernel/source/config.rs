//! Configuration of a kernel: that of the repository's work tree, or one for virtual machines.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::commit::Commit;
use crate::error::Error;
use host::{Fingerprint, IoContext};

/// Configuration file of a tree.
pub(super) const FILE: &str = ".config";

/// Options that a guest needs, built in: its console and the link to the host, its file systems, and what pgdyno and PostgreSQL use.
const REQUIRED: [&str; 26] = [
    "64BIT",
    "ADVISE_SYSCALLS",
    "BINFMT_ELF",
    "BINFMT_SCRIPT",
    "BLK_DEV_INITRD",
    "DEVTMPFS",
    "EPOLL",
    "EVENTFD",
    "FILE_LOCKING",
    "FUTEX",
    "MULTIUSER",
    "NET",
    "POSIX_TIMERS",
    "PRINTK",
    "PROC_FS",
    "PROC_SYSCTL",
    "SERIAL_8250",
    "SERIAL_8250_CONSOLE",
    "SHMEM",
    "SIGNALFD",
    "SYSFS",
    "SYSVIPC",
    "TIMERFD",
    "TMPFS",
    "TTY",
    "UNIX",
];

/// Options of the default configuration for disks of data and for this machine's files in a guest.
const WANTED: [&str; 9] = [
    "BLK_DEV",
    "EXT4_FS",
    "FUSE_FS",
    "OVERLAY_FS",
    "PCI",
    "VIRTIO_BLK",
    "VIRTIO_FS",
    "VIRTIO_MENU",
    "VIRTIO_PCI",
];

/// Options that the default configuration omits: modules, debugging information, and drivers of what no guest has.
const UNWANTED: [&str; 16] = [
    "AGP",
    "DEBUG_INFO",
    "DRM",
    "ETHERNET",
    "HID_SUPPORT",
    "LOCALVERSION_AUTO",
    "MACINTOSH_DRIVERS",
    "MEDIA_SUPPORT",
    "MODULES",
    "NETFILTER",
    "PCCARD",
    "SOUND",
    "USB_SUPPORT",
    "WERROR",
    "WIRELESS",
    "WLAN",
];

/// What a kernel is configured with before each commit's own defaults are added.
pub(super) enum Config {
    /// The `.config` of the repository's work tree.
    Given {
        /// Its path.
        path: PathBuf,
        /// Its content.
        text: String,
    },
    /// The kernel's own for this architecture and virtual machines, with all that a guest needs built in.
    Default,
}

impl Config {
    /// The configuration for commits of a repository.
    pub(super) fn of(repository: &Path) -> Result<Self, Error> {
        let path = repository.join(FILE);
        match fs::read(&path) {
            Ok(text) => Ok(Self::Given { path, text: String::from_utf8_lossy(&text).into_owned() }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::Default),
            Err(error) => Ok(Err(error).doing("read", &path)?),
        }
    }

    /// SHA-256 of a given one.
    pub(super) fn identity(&self) -> Option<String> {
        match self {
            Self::Default => None,
            Self::Given { text, .. } => {
                let mut fingerprint = Fingerprint::new();
                fingerprint.add(text);
                Some(fingerprint.finish())
            }
        }
    }

    /// What to do about missing options.
    fn advice(&self) -> String {
        match self {
            Self::Given { path, .. } => format!(
                "enable them in {}, or remove that file for pgdyno's own configuration",
                path.display()
            ),
            Self::Default => format!(
                "this version of Linux may not have them for x86; a {FILE} in the repository replaces pgdyno's \
                 own configuration"
            ),
        }
    }
}

/// Lines that make the kernel's own configuration one for guests. In a configuration, the last line of an option counts.
pub(super) fn lines_for_guests() -> String {
    let on = REQUIRED.iter().chain(&WANTED).map(|option| format!("CONFIG_{option}=y\n"));
    let off = UNWANTED.iter().map(|option| format!("# CONFIG_{option} is not set\n"));
    let own = ["CONFIG_LOCALVERSION=\"\"\n", "CONFIG_DEBUG_INFO_NONE=y\n"].map(str::to_owned);
    on.chain(off).chain(own).collect()
}

/// A commit's complete configuration.
pub(super) struct CompleteConfig(String);

impl CompleteConfig {
    /// Reads it, and checks that a guest boots with it.
    ///
    /// # Errors
    /// It can't be read, or lacks options.
    pub(super) fn read(file: &Path, config: &Config, commit: &Commit) -> Result<Self, Error> {
        let text = fs::read(file).doing("read", file)?;
        let complete = Self(String::from_utf8_lossy(&text).into_owned());
        let missing = complete.missing();
        if missing.is_empty() {
            return Ok(complete);
        }
        let why = format!(
            "its configuration lacks {}, which a virtual machine needs built in; {}",
            missing.join(", "),
            config.advice()
        );
        Err(Error::Kernel { kernel: commit.origin(), why })
    }

    /// Whether it has modules.
    pub(super) fn has_modules(&self) -> bool {
        self.has("MODULES", "y") && self.0.lines().any(|line| line.ends_with("=m"))
    }

    /// Required options that are off or modules, with those that are not available because of others; none if no option is off: earlier
    /// kernels do not have all, and then they have what it stands for.
    fn missing(&self) -> Vec<&'static str> {
        let is_off = |option: &&str| {
            self.has(option, "m") || self.0.contains(&format!("# CONFIG_{option} is not set\n"))
        };
        if !REQUIRED.iter().any(is_off) {
            return Vec::new();
        }
        REQUIRED.iter().copied().filter(|option| !self.has(option, "y")).collect()
    }

    fn has(&self, option: &str, value: &str) -> bool {
        let line = format!("CONFIG_{option}={value}");
        self.0.lines().any(|other| other == line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_off_are_missing_with_those_that_depend_on_them() {
        let all = || lines_for_guests().replace("# CONFIG_MODULES is not set", "CONFIG_MODULES=y");
        let missing = |text: String| CompleteConfig(text).missing().join(" ");
        assert_eq!(missing(all()), "");
        assert_eq!(missing(String::new()), "", "an option may be newer than the kernel");
        assert_eq!(missing(all().replace("CONFIG_TTY=y", "")), "");
        let without_net =
            all().replace("CONFIG_NET=y", "# CONFIG_NET is not set").replace("CONFIG_UNIX=y\n", "");
        assert_eq!(missing(without_net), "NET UNIX");
        assert_eq!(missing(all().replace("CONFIG_TMPFS=y", "CONFIG_TMPFS=m")), "TMPFS");

        assert!(!CompleteConfig(all()).has_modules());
        assert!(CompleteConfig(all() + "CONFIG_XFS_FS=m\n").has_modules());
        assert!(!CompleteConfig(lines_for_guests() + "CONFIG_XFS_FS=m\n").has_modules());
    }
}
