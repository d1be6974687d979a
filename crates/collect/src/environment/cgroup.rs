//! Limits of this process's control group. Sources: the kernel's admin-guide/cgroup-v2 and admin-guide/cgroup-v1;
//! cgroups(7).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::slice;

use super::mount::{self, Mount};
use crate::root::Root;

/// A limit: its name in cgroup v2, its controller, and its file in v1.
const LIMITS: [(&str, &str, &str); 4] = [
    ("cpu.max", "cpu", "cpu.cfs_quota_us"),
    ("cpuset.cpus", "cpuset", "cpuset.cpus"),
    ("memory.max", "memory", "memory.limit_in_bytes"),
    ("pids.max", "pids", "pids.max"),
];

/// Values from this on mean unlimited in v1, which reports the largest possible number of pages.
const V1_UNLIMITED_BYTES: u64 = 1 << 62;

/// Limits in force: the tightest of the group and its ancestors. `max` if unlimited.
pub(super) fn limits(root: &Root) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let groups = Groups::read(root);
    if let Some((version, path)) = groups.version_and_path() {
        facts.insert("version".to_owned(), version.to_owned());
        facts.insert("path".to_owned(), path);
    }
    for (name, controller, v1_file) in LIMITS {
        let value = match groups.directories(controller) {
            Some((Version::V2, directories)) => v2(root, &directories, name),
            Some((Version::V1, directories)) => v1(root, &directories, name, v1_file),
            None => None,
        };
        if let Some(value) = value {
            facts.insert(name.to_owned(), value);
        }
    }
    facts
}

/// Directory in which to create groups: that of our own group, in v2 or in v1's memory hierarchy.
pub(crate) fn own_directory(root: &Root) -> Option<PathBuf> {
    let (_, directories) = Groups::read(root).directories("memory")?;
    directories.into_iter().next()
}

/// Directories with one of [`LIMITS`], of our own and the server's groups and their ancestors; and whether they are in
/// v1.
pub(crate) fn limited_groups(root: &Root, server: Option<u32>, limit: &str) -> (bool, Vec<PathBuf>) {
    let (mut is_v1, mut limited) = (false, Vec::new());
    let Some((name, controller, v1_file)) = LIMITS.into_iter().find(|(name, ..)| *name == limit) else {
        return (is_v1, limited);
    };
    for process in [Some("self".to_owned()), server.map(|pid| pid.to_string())].into_iter().flatten() {
        let Some((version, directories)) = Groups::new(root, &process).directories(controller) else {
            continue;
        };
        is_v1 = matches!(version, Version::V1);
        let value = |group: &PathBuf| match version {
            Version::V1 => v1(root, slice::from_ref(group), name, v1_file),
            Version::V2 => v2(root, slice::from_ref(group), name),
        };
        let is_limited = |group: &PathBuf| value(group).is_some_and(|value| value != "max");
        let more: Vec<PathBuf> =
            directories.into_iter().filter(|group| !limited.contains(group) && is_limited(group)).collect();
        limited.extend(more);
    }
    (is_v1, limited)
}

/// Directories with a disk limit, of a server's group and its ancestors, with the disk's number, such as `254:0`; and
/// whether they are in v1.
pub(crate) fn disk_limited_groups(root: &Root, server: u32) -> (bool, Vec<(PathBuf, String)>) {
    const V1: [&str; 4] = [
        "blkio.throttle.read_bps_device",
        "blkio.throttle.read_iops_device",
        "blkio.throttle.write_bps_device",
        "blkio.throttle.write_iops_device",
    ];
    let groups = Groups::new(root, &server.to_string());
    let Some((version, directories)) = groups.directories("blkio") else { return (false, Vec::new()) };
    let (is_v1, files) = match version {
        Version::V1 => (true, V1.as_slice()),
        Version::V2 => (false, ["io.max"].as_slice()),
    };
    let limited = |group: PathBuf| {
        let limit = files.iter().find_map(|file| line(root, &group, file).filter(|line| !line.is_empty()))?;
        let device = limit.split(' ').next()?.to_owned();
        Some((group, device))
    };
    (is_v1, directories.into_iter().filter_map(limited).collect())
}

#[derive(Clone, Copy)]
enum Version {
    V1,
    V2,
}

/// The hierarchies, and a process's group in each.
struct Groups {
    /// Controllers separated by commas (empty in v2), and the path of the group.
    ours: Vec<(String, String)>,
    mounts: Vec<Mount>,
}

impl Groups {
    fn read(root: &Root) -> Self {
        Self::new(root, "self")
    }

    /// Groups of a process, `self` or an id.
    fn new(root: &Root, process: &str) -> Self {
        let ours = root.text(&format!("proc/{process}/cgroup")).unwrap_or_default();
        let ours = ours.lines().filter_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            Some((controllers.to_owned(), path.to_owned()))
        });
        let mut mounts = mount::all(root);
        mounts.retain(|mount| mount.filesystem == "cgroup" || mount.filesystem == "cgroup2");
        Self { ours: ours.collect(), mounts }
    }

    /// `v2`, `v1`, or `hybrid` if both are mounted.
    fn version_and_path(&self) -> Option<(&'static str, String)> {
        let has = |kind: &str| self.mounts.iter().any(|mount| mount.filesystem == kind);
        let version = match (has("cgroup"), has("cgroup2")) {
            (true, true) => "hybrid",
            (true, false) => "v1",
            (false, true) => "v2",
            (false, false) => return None,
        };
        let path = |wanted: &str| {
            let ours = self.ours.iter().find(|(names, _)| names.split(',').any(|name| name == wanted));
            ours.map(|(_, path)| path.clone())
        };
        let path = if version == "v2" { path("") } else { path("memory").or_else(|| path("")) };
        Some((version, path?))
    }

    /// Directories of the group and its ancestors in a controller's hierarchy; the group first.
    fn directories(&self, controller: &str) -> Option<(Version, Vec<PathBuf>)> {
        let holds = |names: &str, name: &str| names.split(',').any(|one| one == name);
        let v1 = self.ours.iter().find(|(names, _)| holds(names, controller)).and_then(|(_, path)| {
            let is_here = |mount: &&Mount| mount.filesystem == "cgroup" && holds(&mount.options, controller);
            Some((Version::V1, path, self.mounts.iter().find(is_here)?))
        });
        let v2 = || {
            let (_, path) = self.ours.iter().find(|(names, _)| names.is_empty())?;
            Some((Version::V2, path, self.mounts.iter().find(|mount| mount.filesystem == "cgroup2")?))
        };
        let (version, path, mount) = v1.or_else(v2)?;
        // The mount may itself be of a group, as in containers; groups outside of it are not visible.
        let below = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
        let directories = below.ancestors().map(|group| mount.point.join(group)).collect();
        Some((version, directories))
    }
}

fn line(root: &Root, directory: &Path, file: &str) -> Option<String> {
    root.line(directory.join(file).to_str()?.trim_start_matches('/'))
}

fn v2(root: &Root, directories: &[PathBuf], name: &str) -> Option<String> {
    match name {
        "cpuset.cpus" => line(root, directories.first()?, "cpuset.cpus.effective"),
        _ => tightest(directories.iter().filter_map(|group| line(root, group, name)).collect()),
    }
}

/// In the format of v2.
fn v1(root: &Root, directories: &[PathBuf], name: &str, file: &str) -> Option<String> {
    let value = |group: &PathBuf| {
        let value = line(root, group, file)?;
        match name {
            "cpu.max" if value == "-1" => Some("max".to_owned()),
            "cpu.max" => Some(format!("{value} {}", line(root, group, "cpu.cfs_period_us")?)),
            "memory.max" if value.parse::<u64>().ok()? >= V1_UNLIMITED_BYTES => Some("max".to_owned()),
            _ => Some(value),
        }
    };
    match name {
        "cpuset.cpus" => value(directories.first()?),
        _ => tightest(directories.iter().filter_map(value).collect()),
    }
}

/// The smallest of values such as `max`, `1048576`, and `200000 100000` (quota and period); `max` if all are.
fn tightest(values: Vec<String>) -> Option<String> {
    let amount = |value: &String| {
        let mut numbers = value.split(' ');
        let first: f64 = numbers.next()?.parse().ok()?;
        let period: f64 = numbers.next().and_then(|period| period.parse().ok()).unwrap_or(1.0);
        Some(first / period)
    };
    let any = values.first()?.clone();
    let limits = values.into_iter().filter_map(|value| Some((amount(&value)?, value)));
    let least = limits.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, value)| value);
    // Without a limit, v2 appends the period to `max`.
    Some(least.unwrap_or_else(|| any.split(' ').next().unwrap_or_default().to_owned()))
}
