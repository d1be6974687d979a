//! Limits imposed on a server, to make data larger than memory, or disks slow, on any machine.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::units::Size;

/// Memory that a server may use, including the page cache of its reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryLimit {
    /// None if unlimited.
    size: Option<Size>,
}

impl MemoryLimit {
    /// No limit.
    pub const NONE: Self = Self { size: None };

    /// A limit of this size.
    pub const fn new(size: Size) -> Self {
        Self { size: Some(size) }
    }

    /// The limit in bytes; none if unlimited.
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

/// Disk throughput that a server may use, named by the campaign.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DiskLimit {
    /// Its name in the campaign; `none` means no limit.
    pub name: String,
    /// Bytes read per second; none if unlimited, as for all others.
    pub read_bytes_s: Option<u64>,
    /// Read requests per second.
    pub read_iops: Option<u64>,
    /// Bytes written per second.
    pub write_bytes_s: Option<u64>,
    /// Write requests per second.
    pub write_iops: Option<u64>,
}

impl DiskLimit {
    /// No limit.
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

/// All limits of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limits {
    /// Its memory.
    pub memory: MemoryLimit,
    /// Its disk.
    pub disk: DiskLimit,
}

impl Limits {
    /// No limit.
    pub fn none() -> Self {
        Self { memory: MemoryLimit::NONE, disk: DiskLimit::none() }
    }

    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        self.memory == MemoryLimit::NONE && self.disk.is_none()
    }
}

/// The limits in force on a server, as read from the kernel, and their effects. Source: the kernel's
/// admin-guide/cgroup-v2, admin-guide/cgroup-v1/memory and admin-guide/cgroup-v1/blkio-controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsInForce {
    /// Version of control groups: `v1` or `v2`.
    pub cgroup: String,
    /// Directories of the server's groups.
    pub groups: Vec<String>,
    /// Memory limit, page cache included; none if unlimited.
    pub memory_bytes: Option<u64>,
    /// Number of times that the limit caused memory reclaim, since the server's start.
    pub memory_limit_hits: Option<u64>,
    /// Processes of the server that the kernel's OOM killer ended, since the server's start.
    pub oom_kills: Option<u64>,
    /// The limited block device, such as `sda`; none if unlimited.
    pub device: Option<String>,
    /// Bytes read per second; none if unlimited, as for all others.
    pub read_bytes_s: Option<u64>,
    /// Read requests per second.
    pub read_iops: Option<u64>,
    /// Bytes written per second.
    pub write_bytes_s: Option<u64>,
    /// Write requests per second.
    pub write_iops: Option<u64>,
}
