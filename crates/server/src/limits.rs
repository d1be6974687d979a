//! Limits on a server's memory and disk, by control groups: the postmaster is started in a group, so that its shared
//! memory, its processes and the page cache of what they read are all charged to it. Sources: the kernel's
//! admin-guide/cgroup-v2, admin-guide/cgroup-v1/memory and admin-guide/cgroup-v1/blkio-controller; cgroups(7).

mod device;
mod groups;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use model::limits::{DiskLimit, Limits, LimitsInForce, MemoryLimit};
use rustix::process::Signal;

use crate::error::{Error, LimitError};
use device::Device;
use groups::{Controller, Version};
use host::Cache;
use host::IoContext;
use host::process::{STOP_TIMEOUT, signal, wait_until};

/// Value of v1 without a limit: the largest possible number of pages.
const V1_UNLIMITED_BYTES: u64 = 1 << 62;

/// Checks that servers in this cache can be limited so, here, with a group without processes.
///
/// # Errors
/// Groups can't be created, or reject such a limit; with advice.
pub fn check_limits(cache: &Cache, limits: &Limits) -> Result<(), Error> {
    static CHECKS: AtomicU32 = AtomicU32::new(0);
    let name = format!("pgdyno-check-{}-{}", std::process::id(), CHECKS.fetch_add(1, Ordering::Relaxed));
    Group::create(limits, &cache.clusters(), &name, &mut |_| Ok(())).map(drop)
}

/// Control groups of one server: one in v2, one per controller in v1. Dropping it ends their remaining processes, and
/// removes them.
#[derive(Debug)]
pub(crate) struct Group {
    /// Group with the memory limit.
    memory: Option<(Version, PathBuf)>,
    /// Group with the disk limits, and the disk.
    disk: Option<((Version, PathBuf), Device)>,
    directories: Vec<PathBuf>,
}

impl Group {
    /// Creates groups of this name with these limits, on the disk that holds `data`. `note` is called with each
    /// directory before it is created.
    pub(crate) fn create(
        limits: &Limits,
        data: &Path,
        name: &str,
        note: &mut dyn FnMut(&Path) -> io::Result<()>,
    ) -> Result<Self, Error> {
        let refuse = |source| Error::Limit { what: description(limits), source };
        let mut wanted = Vec::new();
        wanted.extend((limits.memory != MemoryLimit::NONE).then_some(Controller::Memory));
        let device = if limits.disk.is_none() {
            None
        } else {
            wanted.push(Controller::Io);
            Some(device::under(data).map_err(refuse)?)
        };
        let made = groups::make(Path::new("/"), &wanted, name, note).map_err(refuse)?;
        let place = |controller| {
            let made = made.iter().find(|made| made.controllers.contains(&controller))?;
            Some((made.version, made.directory.clone()))
        };
        // From here on, dropping removes what has been created.
        let group = Self {
            memory: place(Controller::Memory),
            disk: place(Controller::Io).zip(device),
            directories: made.iter().map(|made| made.directory.clone()).collect(),
        };
        group.limit_memory(limits.memory).and_then(|()| group.limit_disk(&limits.disk)).map_err(refuse)?;
        Ok(group)
    }

    fn limit_memory(&self, limit: MemoryLimit) -> Result<(), LimitError> {
        let (Some((version, directory)), Some(bytes)) = (&self.memory, limit.bytes()) else { return Ok(()) };
        let write = |file: &str, value: u64| write_limit(directory, file, &value.to_string());
        // Memory must not be swapped out: swap would be another disk.
        match version {
            Version::V2 => {
                write("memory.max", bytes)?;
                if directory.join("memory.swap.max").exists() {
                    write("memory.swap.max", 0)?;
                }
            }
            Version::V1 => {
                write("memory.limit_in_bytes", bytes)?;
                // At a group's limit, 0 disables swapping; a limit of memory with swap would hide the hits of this one.
                write("memory.swappiness", 0)?;
            }
        }
        Ok(())
    }

    fn limit_disk(&self, limit: &DiskLimit) -> Result<(), LimitError> {
        let Some(((version, directory), device)) = &self.disk else { return Ok(()) };
        for (in_v2, in_v1, value) in DISK_LIMITS.map(|(in_v2, in_v1, of)| (in_v2, in_v1, of(limit))) {
            let Some(value) = value else { continue };
            match version {
                Version::V2 => {
                    write_limit(directory, "io.max", &format!("{} {in_v2}={value}", device.number))?;
                }
                Version::V1 => write_limit(directory, in_v1, &format!("{} {value}", device.number))?,
            }
        }
        Ok(())
    }

    /// Files through which a process enters, open for writing: the kernel checks the rights of the opener.
    pub(crate) fn procs_files(&self) -> Result<Vec<File>, Error> {
        let open = |directory: &PathBuf| {
            let procs = directory.join("cgroup.procs");
            OpenOptions::new().write(true).open(&procs).doing("open", &procs)
        };
        Ok(self.directories.iter().map(open).collect::<Result<_, _>>()?)
    }

    /// Limits in force in the kernel, and their effects.
    pub(crate) fn in_force(&self) -> LimitsInForce {
        let mut found = LimitsInForce {
            groups: self.directories.iter().map(|directory| directory.display().to_string()).collect(),
            ..LimitsInForce::default()
        };
        if let Some((version, directory)) = &self.memory {
            let [max, hits, kills] = match version {
                Version::V2 => [
                    number(directory, "memory.max", None),
                    number(directory, "memory.events", Some("max")),
                    number(directory, "memory.events", Some("oom_kill")),
                ],
                Version::V1 => [
                    number(directory, "memory.limit_in_bytes", None),
                    number(directory, "memory.failcnt", None),
                    number(directory, "memory.oom_control", Some("oom_kill")),
                ],
            };
            found.cgroup = version.name().to_owned();
            found.memory_bytes = max.filter(|bytes| *bytes < V1_UNLIMITED_BYTES);
            found.memory_limit_hits = hits;
            found.oom_kills = kills;
        }
        if let Some(((version, directory), device)) = &self.disk {
            let value = |in_v2: &str, in_v1: &str| match version {
                Version::V1 => number(directory, in_v1, Some(&device.number)),
                Version::V2 => {
                    let text = fs::read_to_string(directory.join("io.max")).ok()?;
                    let of_device = |line: &str| Some(line.strip_prefix(&device.number)?.to_owned());
                    let values = text.lines().find_map(of_device)?;
                    values
                        .split(' ')
                        .find_map(|value| value.strip_prefix(in_v2)?.strip_prefix('=')?.parse().ok())
                }
            };
            let [read_bytes_s, read_iops, write_bytes_s, write_iops] =
                DISK_LIMITS.map(|(in_v2, in_v1, _)| value(in_v2, in_v1));
            found.cgroup = version.name().to_owned();
            found.device = Some(device.name.clone());
            found = LimitsInForce { read_bytes_s, read_iops, write_bytes_s, write_iops, ..found };
        }
        found
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for directory in &self.directories {
            remove(directory);
        }
    }
}

/// Ends the remaining processes of a group, and removes it. A group that can't be removed remains, without processes.
pub(crate) fn remove(directory: &Path) {
    let mut outcome = Ok(());
    wait_until(STOP_TIMEOUT, || {
        outcome = fs::remove_dir(directory);
        let busy = outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::ResourceBusy);
        if busy {
            // Only processes started by pgdyno have ever been in it.
            let processes = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            processes.lines().filter_map(|pid| pid.parse().ok()).for_each(|pid| signal(pid, Signal::KILL));
        }
        !busy
    });
    match outcome {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!("could not remove the control group {}: {error}", directory.display());
        }
        _ => {}
    }
}

/// Key in `io.max`, file in v1, and value of a campaign.
type Limited = (&'static str, &'static str, fn(&DiskLimit) -> Option<u64>);

const DISK_LIMITS: [Limited; 4] = [
    ("rbps", "blkio.throttle.read_bps_device", |limit| limit.read_bytes_s),
    ("riops", "blkio.throttle.read_iops_device", |limit| limit.read_iops),
    ("wbps", "blkio.throttle.write_bps_device", |limit| limit.write_bytes_s),
    ("wiops", "blkio.throttle.write_iops_device", |limit| limit.write_iops),
];

fn write_limit(directory: &Path, file: &str, value: &str) -> Result<(), LimitError> {
    let file = directory.join(file);
    // Not created if missing: then the kernel was built without it.
    let written =
        OpenOptions::new().write(true).open(&file).and_then(|mut open| open.write_all(value.as_bytes()));
    written.map_err(|source| LimitError::Refused { file, value: value.to_owned(), source })
}

/// The number in a file, or on its line that begins with a word.
fn number(directory: &Path, file: &str, word: Option<&str>) -> Option<u64> {
    let text = fs::read_to_string(directory.join(file)).ok()?;
    let value = match word {
        None => text.trim(),
        Some(word) => text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '))?,
    };
    value.trim().parse().ok()
}

/// The limits, for errors.
fn description(limits: &Limits) -> String {
    let memory = (limits.memory != MemoryLimit::NONE).then(|| format!("memory to {}", limits.memory));
    let disk = (!limits.disk.is_none()).then(|| format!("the use of the disk to \"{}\"", limits.disk.name));
    memory.into_iter().chain(disk).collect::<Vec<_>>().join(" and ")
}
