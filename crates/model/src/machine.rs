//! Machines that run a kernel: the host itself, or a QEMU guest with its own CPUs, storage and kernel parameters.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Serialize, Serializer};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// The level for the machine itself: its own kernel, CPUs or storage.
pub const HOST: &str = "host";

/// Executor of the instructions of kernel and server.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Acceleration {
    /// The machine itself: no virtual machine.
    #[default]
    None,
    /// A virtual machine on the machine's CPUs.
    Kvm,
    /// QEMU's emulation at full speed: in real time, so that results depend on the machine.
    Tcg,
    /// QEMU's emulation of one CPU with counted instructions: each takes one nanosecond of the guest's time.
    Icount,
}

impl Acceleration {
    /// Its name in campaigns and bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether there is a virtual machine.
    pub const fn is_virtual(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether its CPUs are emulated.
    pub const fn is_emulated(self) -> bool {
        matches!(self, Self::Tcg | Self::Icount)
    }
}

/// QEMU's cache mode of a disk (`cache=`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum DiskCache {
    /// Bypasses the host's page cache.
    None,
    /// Uses the host's page cache.
    #[default]
    Writeback,
    /// Uses the host's page cache; a write completes when it is on disk.
    Writethrough,
    /// Bypasses the host's page cache; a write completes when it is on disk.
    Directsync,
    /// Uses the host's page cache and ignores flushes.
    Unsafe,
}

impl DiskCache {
    /// Its name in campaigns, which is QEMU's.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether it bypasses the host's page cache, which native asynchronous I/O requires.
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::None | Self::Directsync)
    }
}

/// QEMU's I/O method for a disk (`aio=`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum DiskAio {
    /// Blocking threads.
    #[default]
    Threads,
    /// Linux's native asynchronous I/O.
    Native,
    /// io_uring.
    IoUring,
}

impl DiskAio {
    /// Its name in campaigns, which is QEMU's.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Location of a server's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Storage {
    /// On the machine's own file systems.
    #[default]
    Host,
    /// In the memory of the virtual machine.
    Memory,
    /// On a virtio disk of the virtual machine.
    Virtio {
        /// Cache mode.
        cache: DiskCache,
        /// I/O method.
        aio: DiskAio,
    },
}

/// A text that is not a [`Storage`], with the forms expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a storage: expected \"memory\", \"virtio\" or \"virtio-CACHE-AIO\", such as \"virtio-none-native\""
)]
pub struct ParseStorageError(String);

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str(HOST),
            Self::Memory => f.write_str("memory"),
            Self::Virtio { cache, aio } => write!(f, "virtio-{}-{}", cache.as_str(), aio.as_str()),
        }
    }
}

impl FromStr for Storage {
    type Err = ParseStorageError;

    fn from_str(text: &str) -> Result<Self, ParseStorageError> {
        let virtio = || {
            let modes = text.strip_prefix("virtio-")?;
            let (cache, aio) = modes.split_once('-')?;
            Some(Self::Virtio { cache: cache.parse().ok()?, aio: aio.parse().ok()? })
        };
        match text {
            HOST => Ok(Self::Host),
            "memory" => Ok(Self::Memory),
            "virtio" => Ok(Self::Virtio { cache: DiskCache::default(), aio: DiskAio::default() }),
            _ => virtio().ok_or_else(|| ParseStorageError(text.to_owned())),
        }
    }
}

impl Serialize for Storage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Kernel parameters set before a server starts, named by the campaign.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SysctlVariant {
    /// Its name in the campaign; `default` sets nothing.
    pub name: String,
    /// Values by name (`vm.swappiness`) or by path (`/sys/kernel/mm/transparent_hugepage/enabled`).
    pub values: BTreeMap<String, String>,
}

impl SysctlVariant {
    /// The variant that sets nothing.
    pub const DEFAULT: &'static str = "default";

    /// No parameters.
    pub fn none() -> Self {
        Self { name: Self::DEFAULT.to_owned(), values: BTreeMap::new() }
    }
}

/// Path of the repository and name of the commit in a kernel's label, such as `./linux@v6.6`; none if the label is of another form. The
/// label of an existing file may have this form, too.
pub fn kernel_commit(label: &str) -> Option<(&str, &str)> {
    let (repository, name) = label.rsplit_once('@').filter(|_| label.contains('/'))?;
    (!repository.is_empty() && !name.is_empty()).then_some((repository, name))
}

/// A kernel named by a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelSpec {
    /// Level of the factor `kernel`: a version, a package or a pattern of packages, a path, or a commit of a repository.
    pub name: String,
    /// A bzImage or a built kernel tree, if the name is a path; or the repository, followed by `@` and the commit's name.
    pub path: Option<PathBuf>,
}

impl KernelSpec {
    /// Path of the repository and name of the commit that it is built from; none if its label does not show one: a name with a `/`
    /// could be the rest of a path.
    pub fn commit(&self) -> Option<(&Path, &str)> {
        let (repository, name) = kernel_commit(self.path.as_ref()?.to_str()?)?;
        (!name.contains('/')).then_some((Path::new(repository), name))
    }

    /// Parses a label of a campaign: one with a `/` is a path.
    pub(crate) fn from_label(label: &str) -> Self {
        Self { name: label.to_owned(), path: label.contains('/').then(|| PathBuf::from(label)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_of_a_repository_is_a_kernel() {
        for (label, commit) in [
            ("./linux@v6.6", Some(("./linux", "v6.6"))),
            ("/home/me@here/linux/bzImage", None),
            ("/me@here/linux@0123abcd", Some(("/me@here/linux", "0123abcd"))),
            ("./linux", None),
            ("./linux@", None),
            ("linux@v6.6", None),
            ("6.6", None),
        ] {
            let kernel = KernelSpec::from_label(label);
            let expected = commit.map(|(repository, name)| (Path::new(repository), name));
            assert_eq!(kernel.commit(), expected, "{label}");
        }
        assert_eq!(kernel_commit("./linux@origin/master"), Some(("./linux", "origin/master")));
    }

    #[test]
    fn storage_round_trips() {
        let mut all = vec![Storage::Host, Storage::Memory];
        for &cache in DiskCache::VARIANTS {
            all.extend(DiskAio::VARIANTS.iter().map(|&aio| Storage::Virtio { cache, aio }));
        }
        for storage in all {
            assert_eq!(storage.to_string().parse(), Ok(storage));
        }
        assert_eq!("virtio".parse::<Storage>().unwrap().to_string(), "virtio-writeback-threads");
        for wrong in ["", "disk", "virtio-", "virtio-none", "virtio-none-", "virtio-native-none", "Memory"] {
            assert!(
                wrong.parse::<Storage>().unwrap_err().to_string().contains("virtio-none-native"),
                "{wrong}"
            );
        }
    }
}
