//! What remains of a pgdyno that has ended: processes, sockets, mounts, control groups, directories.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Control groups whose names begin with this are pgdyno's.
const PREFIX: &str = "pgdyno-";

/// The host's state that a pgdyno could leave something in.
#[derive(Debug)]
pub(crate) struct HostState {
    mounts: BTreeSet<String>,
    groups: BTreeSet<PathBuf>,
}

impl HostState {
    pub(crate) fn read() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        // The mount point is the fifth field.
        let mounts = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(str::to_owned).collect();
        let mut groups = BTreeSet::new();
        let mut directories = vec![PathBuf::from("/sys/fs/cgroup")];
        while let Some(directory) = directories.pop() {
            for path in names(&directory).filter(|path| path.is_dir() && !path.is_symlink()) {
                if is_ours(&path) {
                    groups.insert(path);
                } else {
                    directories.push(path);
                }
            }
        }
        Self { mounts, groups }
    }

    pub(crate) fn new_mounts(&self, before: &Self) -> Vec<String> {
        self.mounts.difference(&before.mounts).cloned().collect()
    }

    /// Those without processes: the others are of a pgdyno that runs, as one of other tests, or what is in them is left, too.
    pub(crate) fn new_groups(&self, before: &Self) -> Vec<PathBuf> {
        let is_empty = |group: &&PathBuf| {
            fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|processes| processes.is_empty())
        };
        self.groups.difference(&before.groups).filter(is_empty).cloned().collect()
    }
}

fn is_ours(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
}

fn names(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Processes started from a site: with its mark in their environment, or working in its directory.
pub(crate) fn processes(mark: &str, directory: &Path) -> Vec<(i32, String)> {
    let own = std::process::id() as i32;
    names(Path::new("/proc"))
        .filter_map(|path| {
            let pid: i32 = path.file_name()?.to_str()?.parse().ok()?;
            let stat = fs::read_to_string(path.join("stat")).ok()?;
            let is_zombie = stat.rsplit_once(") ")?.1.starts_with('Z');
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            let has_mark = environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
            let is_inside = ["cwd", "exe"]
                .iter()
                .any(|link| fs::read_link(path.join(link)).is_ok_and(|to| to.starts_with(directory)));
            let command = fs::read(path.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            (pid != own && !is_zombie && (has_mark || is_inside)).then_some((pid, command))
        })
        .collect()
}
