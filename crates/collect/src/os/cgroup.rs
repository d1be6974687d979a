//! Effects of control groups' limits on us and on the server. Sources: the kernel's admin-guide/cgroup-v2,
//! admin-guide/cgroup-v1/memory, admin-guide/cgroup-v1/blkio-controller and scheduler/sched-bwc.

use std::path::{Path, PathBuf};

use model::metric;
use model::metrics::Metric;

use super::kernel_file::KernelFile;
use crate::Reading;
use crate::environment::{disk_limited_groups, limited_groups};
use crate::root::Root;

/// Groups with a limit among our own, the server's, and their ancestors: any of them may be the effective one.
#[derive(Debug)]
pub(super) struct Groups {
    files: Vec<File>,
    disks: Vec<Disk>,
}

/// I/O of a group on a disk that is limited.
#[derive(Debug)]
struct Disk {
    /// The group's directory.
    group: String,
    /// The disk, such as `254:0`.
    device: String,
    file: KernelFile,
    is_v1: bool,
}

#[derive(Debug)]
struct File {
    /// The group's directory.
    group: String,
    file: KernelFile,
    figures: &'static [Figure],
}

/// A line's first word (none if the file is a single number), the metric, and the factor to its unit.
type Figure = (Option<&'static str>, &'static Metric, f64);

/// Names of a limit's files.
type Files = &'static [(&'static str, &'static [Figure])];

const CPU_V2: Files = &[(
    "cpu.stat",
    &[
        (Some("nr_periods"), metric!("cgroup.periods"), 1.0),
        (Some("nr_throttled"), metric!("cgroup.throttled_periods"), 1.0),
        (Some("throttled_usec"), metric!("cgroup.throttled_us"), 1.0),
    ],
)];
const CPU_V1: Files = &[(
    "cpu.stat",
    &[
        (Some("nr_periods"), metric!("cgroup.periods"), 1.0),
        (Some("nr_throttled"), metric!("cgroup.throttled_periods"), 1.0),
        (Some("throttled_time"), metric!("cgroup.throttled_us"), 1e-3),
    ],
)];
const MEMORY_V2: Files = &[
    ("memory.current", &[(None, metric!("cgroup.memory_bytes"), 1.0)]),
    ("memory.max", &[(None, metric!("cgroup.memory_limit_bytes"), 1.0)]),
    (
        "memory.events",
        &[
            (Some("max"), metric!("cgroup.memory_limit_hits"), 1.0),
            (Some("oom_kill"), metric!("cgroup.oom_kills"), 1.0),
        ],
    ),
];
const MEMORY_V1: Files = &[
    ("memory.usage_in_bytes", &[(None, metric!("cgroup.memory_bytes"), 1.0)]),
    ("memory.limit_in_bytes", &[(None, metric!("cgroup.memory_limit_bytes"), 1.0)]),
    ("memory.failcnt", &[(None, metric!("cgroup.memory_limit_hits"), 1.0)]),
    ("memory.oom_control", &[(Some("oom_kill"), metric!("cgroup.oom_kills"), 1.0)]),
];

impl Groups {
    pub(super) fn new(root: &Root, server: Option<u32>) -> Self {
        let mut files = Vec::new();
        for (limit, v1, v2) in [("cpu.max", CPU_V1, CPU_V2), ("memory.max", MEMORY_V1, MEMORY_V2)] {
            let (is_v1, directories) = limited_groups(root, server, limit);
            for directory in directories {
                let names = if is_v1 { v1 } else { v2 };
                files
                    .extend(names.iter().filter_map(|(name, figures)| open(root, &directory, name, figures)));
            }
        }
        let (is_v1, directories) =
            server.map_or((false, Vec::new()), |server| disk_limited_groups(root, server));
        let name = if is_v1 { "blkio.throttle.io_service_bytes" } else { "io.stat" };
        let disk = |(directory, device): (PathBuf, String)| {
            let file = KernelFile::open(root, directory.join(name).to_str()?)?;
            Some(Disk { group: directory.to_str()?.to_owned(), device, file, is_v1 })
        };
        Self { files, disks: directories.into_iter().filter_map(disk).collect() }
    }

    pub(super) fn read(&mut self, into: &mut Reading) {
        for disk in &mut self.disks {
            if let Some(bytes) = disk.bytes_read() {
                into.add(metric!("cgroup.read_bytes"), Some(&disk.group), bytes);
            }
        }
        for File { group, file, figures } in &mut self.files {
            let Some(text) = file.text() else { continue };
            for (word, metric, unit) in *figures {
                if let Some(value) = value(text, *word) {
                    into.add(metric, Some(group), value * unit);
                }
            }
        }
    }
}

impl Disk {
    /// Zero before its first read.
    fn bytes_read(&mut self) -> Option<f64> {
        let mut lines =
            self.file.text()?.lines().filter_map(|line| line.strip_prefix(&self.device)?.strip_prefix(' '));
        let value = if self.is_v1 {
            lines.find_map(|line| line.strip_prefix("Read "))
        } else {
            lines.next().and_then(|line| line.split(' ').find_map(|value| value.strip_prefix("rbytes=")))
        };
        value.map_or(Some(0.0), |value| value.parse().ok())
    }
}

fn open(root: &Root, directory: &Path, name: &str, figures: &'static [Figure]) -> Option<File> {
    let group = directory.to_str()?.to_owned();
    let file = KernelFile::open(root, directory.join(name).to_str()?)?;
    Some(File { group, file, figures })
}

fn value(text: &str, word: Option<&str>) -> Option<f64> {
    match word {
        None => text.trim().parse().ok(),
        Some(word) => text
            .lines()
            .find_map(|line| line.split_once(' ').filter(|(name, _)| *name == word))?
            .1
            .parse()
            .ok(),
    }
}
