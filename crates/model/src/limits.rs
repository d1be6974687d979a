//! Limits that a server is put under, so that data are larger than memory, or disks slow, on any machine.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::units::Size;

/// How much memory a server may have, the page cache of what it reads and writes counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryLimit {
    /// None without a limit.
    size: Option<Size>,
}

impl MemoryLimit {
    /// As much as the machine has.
    pub const NONE: Self = Self { size: None };

    /// At most so much.
    pub const fn new(size: Size) -> Self {
        Self { size: Some(size) }
    }

    /// In bytes; none without a limit.
    pub fn bytes(self) -> Option<u64> {
        self.size.map(Size::bytes)
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            None => f.write_str("none"),
            Some(size) => size.fmt(f),
        }
    }
}

impl FromStr for MemoryLimit {
    type Err = <Size as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::NONE),
            size => size.parse().map(Self::new),
        }
    }
}

impl Serialize for MemoryLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.size.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MemoryLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = MemoryLimit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size with its unit, such as \"512MB\", or \"none\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<MemoryLimit, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// How much of a disk a server may use, by a name of the campaign's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DiskLimit {
    /// Its name in the campaign; `none` is the disk as it is.
    pub name: String,
    /// Bytes that are read in a second; none without a limit, as in all others.
    pub read_bytes_s: Option<u64>,
    /// Requests to read in a second.
    pub read_iops: Option<u64>,
    /// Bytes that are written in a second.
    pub write_bytes_s: Option<u64>,
    /// Requests to write in a second.
    pub write_iops: Option<u64>,
}

impl DiskLimit {
    /// The disk as it is.
    pub fn none() -> Self {
        Self {
            name: "none".to_owned(),
            read_bytes_s: None,
            read_iops: None,
            write_bytes_s: None,
            write_iops: None,
        }
    }

    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        [self.read_bytes_s, self.read_iops, self.write_bytes_s, self.write_iops].iter().all(Option::is_none)
    }
}

/// All that a server is limited in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limits {
    /// Its memory.
    pub memory: MemoryLimit,
    /// Its disk.
    pub disk: DiskLimit,
}

impl Limits {
    /// No limit at all.
    pub fn none() -> Self {
        Self { memory: MemoryLimit::NONE, disk: DiskLimit::none() }
    }

    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        self.memory == MemoryLimit::NONE && self.disk.is_none()
    }
}

/// The limits that a server was under, as the kernel had them, and what they did to it. Source: the kernel's
/// admin-guide/cgroup-v2, admin-guide/cgroup-v1/memory and admin-guide/cgroup-v1/blkio-controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsInForce {
    /// Which control groups: `v1` or `v2`.
    pub cgroup: String,
    /// Directories of the server's groups.
    pub groups: Vec<String>,
    /// Memory that it might have, with its page cache; none without a limit.
    pub memory_bytes: Option<u64>,
    /// How often memory had to be made free for the limit's sake, since the server's start.
    pub memory_limit_hits: Option<u64>,
    /// Processes of the server that the kernel killed for want of memory, since its start.
    pub oom_kills: Option<u64>,
    /// The block device that was limited, such as `sda`; none without a limit.
    pub device: Option<String>,
    /// Bytes that might be read in a second; none without a limit, as in all others.
    pub read_bytes_s: Option<u64>,
    /// Requests to read in a second.
    pub read_iops: Option<u64>,
    /// Bytes that might be written in a second.
    pub write_bytes_s: Option<u64>,
    /// Requests to write in a second.
    pub write_iops: Option<u64>,
}
