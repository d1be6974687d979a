//! Block devices. Source: the kernel's `ABI/stable/sysfs-block`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model::environment::BlockDevice;

use super::memory::chosen;
use super::mount::{self, Mount};
use crate::root::Root;

/// Deeper than any stack of devices.
const MAX_DEPTH: usize = 8;

/// The device of a filesystem, followed by those below it (the disks of a volume).
pub(super) fn under(root: &Root, mount: &Mount) -> Vec<BlockDevice> {
    let mut devices: Vec<BlockDevice> = Vec::new();
    let mut level: Vec<String> = disk(root, mount).into_iter().collect();
    for _ in 0..MAX_DEPTH {
        let mut below = Vec::new();
        for name in level {
            if !devices.iter().any(|device| device.name == name) {
                // A partition's disk is its parent directory.
                below.extend(root.names(&format!("sys/block/{name}/slaves")));
                devices.push(device(root, name));
            }
        }
        level = below.iter().map(|name| whole_disk(root, name)).collect();
    }
    devices
}

/// Names of the devices under a directory.
pub(crate) fn names_under(root: &Root, directory: &Path) -> Vec<String> {
    let mounts = mount::all(root);
    let devices = mount::containing(&mounts, directory).map(|mount| under(root, mount));
    devices.into_iter().flatten().map(|device| device.name).collect()
}

/// Names of all other devices that have a size.
pub(super) fn others(root: &Root, devices: &[BlockDevice]) -> Vec<String> {
    let mut names = root.names("sys/block");
    names.retain(|name| {
        let has_size = root.number::<u64>(&format!("sys/block/{name}/size")).is_some_and(|size| size > 0);
        has_size && !devices.iter().any(|device| device.name == *name)
    });
    names
}

/// The disk of a filesystem, by its device number, or by the mount source for filesystems without one (such as btrfs).
fn disk(root: &Root, mount: &Mount) -> Option<String> {
    let uevent = root.text(&format!("sys/dev/block/{}/uevent", mount.device));
    let by_number = uevent.and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(|name| name.replace('/', "!"))
    });
    let by_source = || {
        let source = mount.source.strip_prefix("/dev/")?;
        // Such as `mapper/vg-data`, a link to `../dm-0`.
        let real = fs::canonicalize(root.path(&format!("dev/{source}"))).ok();
        let name = real.as_ref().and_then(|path| path.file_name()?.to_str());
        Some(name.unwrap_or(source).to_owned())
    };
    let name = whole_disk(root, &by_number.or_else(by_source)?);
    root.has(&format!("sys/block/{name}")).then_some(name)
}

/// The disk of a partition; a disk itself.
fn whole_disk(root: &Root, name: &str) -> String {
    if root.has(&format!("sys/block/{name}")) {
        name.to_owned()
    } else {
        root.names("sys/block")
            .into_iter()
            .find(|disk| root.has(&format!("sys/block/{disk}/{name}/partition")))
            .unwrap_or_else(|| name.to_owned())
    }
}

fn device(root: &Root, name: String) -> BlockDevice {
    const QUEUE: [&str; 5] = ["nr_requests", "read_ahead_kb", "rotational", "wbt_lat_usec", "write_cache"];
    let read = |file: &str| root.line(&format!("sys/block/{name}/{file}"));
    let mut facts: BTreeMap<String, String> = BTreeMap::new();
    let mut put = |fact: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.insert(fact.to_owned(), value);
        }
    };
    for fact in QUEUE {
        put(fact, read(&format!("queue/{fact}")));
    }
    // Devices without a choice have `none`.
    put("scheduler", read("queue/scheduler").map(|choices| chosen(&choices).unwrap_or(choices)));
    put("model", read("device/model"));
    // In sectors of 512 bytes, regardless of the disk's own.
    let bytes = read("size").and_then(|size| size.parse::<u64>().ok()?.checked_mul(512));
    put("size_bytes", bytes.map(|bytes| bytes.to_string()));
    BlockDevice { name, facts }
}
