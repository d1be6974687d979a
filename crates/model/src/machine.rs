//! What a kernel runs on: the machine itself, or a machine in QEMU with processors, storage and kernel parameters of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// What is told of the machine itself: its kernel, its processors, its storage, as they are.
pub const HOST: &str = "host";

/// What executes the instructions of kernel and server.
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
    /// The machine itself: there is no virtual one.
    #[default]
    None,
    /// The machine's processors, in a virtual machine.
    Kvm,
    /// QEMU's emulation, as fast as the machine can: its time is real, and its figures depend on the machine.
    Tcg,
    /// QEMU's emulation of one processor, counting instructions: each takes one nanosecond of the guest's time.
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

    /// Whether its processors are emulated.
    pub const fn is_emulated(self) -> bool {
        matches!(self, Self::Tcg | Self::Icount)
    }
}

/// How QEMU caches a disk (`cache=`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum DiskCache {
    /// Past the host's page cache.
    None,
    /// In the host's page cache.
    #[default]
    Writeback,
    /// In the host's page cache, and on the disk before a write is answered.
    Writethrough,
    /// Past the host's page cache, and on the disk before a write is answered.
    Directsync,
    /// In the host's page cache, flushes being ignored.
    Unsafe,
}

impl DiskCache {
    /// Its name in campaigns, which is QEMU's.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the host's page cache is passed by, which native asynchronous I/O needs.
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::None | Self::Directsync)
    }
}

/// How QEMU reads and writes a disk's file (`aio=`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum DiskAio {
    /// Threads that wait.
    #[default]
    Threads,
    /// The kernel's asynchronous I/O.
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

/// Where a server's data are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Storage {
    /// On the machine's own file systems.
    #[default]
    Host,
    /// In the memory of the virtual machine.
    Memory,
    /// On a disk that QEMU gives the virtual machine by virtio.
    Virtio {
        /// How it is cached.
        cache: DiskCache,
        /// How it is read and written.
        aio: DiskAio,
    },
}

/// What a text should have been that is no [`Storage`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no storage: expected \"memory\", \"virtio\" or \"virtio-CACHE-AIO\", such as \"virtio-none-native\""
)]
pub struct NotStorage(String);

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
    type Err = NotStorage;

    fn from_str(text: &str) -> Result<Self, NotStorage> {
        let virtio = || {
            let modes = text.strip_prefix("virtio-")?;
            let (cache, aio) = modes.split_once('-')?;
            Some(Self::Virtio { cache: cache.parse().ok()?, aio: aio.parse().ok()? })
        };
        match text {
            HOST => Ok(Self::Host),
            "memory" => Ok(Self::Memory),
            "virtio" => Ok(Self::Virtio { cache: DiskCache::default(), aio: DiskAio::default() }),
            _ => virtio().ok_or_else(|| NotStorage(text.to_owned())),
        }
    }
}

impl Serialize for Storage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Kernel parameters that are set before a server starts, by a name of the campaign's.
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

    /// Nothing is set.
    pub fn none() -> Self {
        Self { name: Self::DEFAULT.to_owned(), values: BTreeMap::new() }
    }
}

/// Processors of a virtual machine as campaigns write them: a number, or `"host"` for as many as the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus(pub Option<i64>);

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl de::Visitor<'_> for Either {
            type Value = Cpus;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of processors, or \"host\" for as many as the machine has")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Cpus, E> {
                Ok(Cpus(Some(number)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Cpus, E> {
                match text {
                    HOST => Ok(Cpus(None)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A kernel that a campaign names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelSpec {
    /// As the factor `kernel` has it: a version, a package or a pattern of packages, or a path.
    pub name: String,
    /// A bzImage or a built kernel tree, where the name is a path.
    pub path: Option<PathBuf>,
}

impl KernelSpec {
    /// Of a label in a campaign: with a `/` it is a path.
    pub(crate) fn from_label(label: &str) -> Self {
        Self { name: label.to_owned(), path: label.contains('/').then(|| PathBuf::from(label)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_read_as_it_is_written() {
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
