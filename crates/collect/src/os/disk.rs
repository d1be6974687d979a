//! Counters of block devices. Source: the kernel's `ABI/testing/procfs-diskstats` and admin-guide/iostats.

use std::collections::HashMap;

use procfs::DiskStats;
use procfs::prelude::FromBufRead;

use model::metric;

use super::kernel_file::KernelFile;
use crate::Reading;
use crate::root::Root;

/// Devices in memory, or in files of another device.
const NO_DISKS: [&str; 3] = ["loop", "ram", "zram"];
/// Sector size of `/proc/diskstats`, regardless of the disk's own.
const SECTOR_BYTES: f64 = 512.0;
const US_PER_MS: f64 = 1000.0;

/// All disks, in one file.
#[derive(Debug)]
pub(super) struct Disks {
    root: Root,
    stats: Option<KernelFile>,
    /// Devices of any kind that hold the data: always reported.
    of_data: Vec<String>,
    /// Whether a device is reported.
    reported: HashMap<String, bool>,
}

impl Disks {
    pub(super) fn new(root: &Root, of_data: Vec<String>) -> Self {
        let stats = KernelFile::open(root, "proc/diskstats");
        Self { root: root.clone(), stats, of_data, reported: HashMap::new() }
    }

    pub(super) fn read(&mut self, into: &mut Reading) -> Option<()> {
        let DiskStats(disks) = DiskStats::from_buf_read(self.stats.as_mut()?.text()?.as_bytes()).ok()?;
        for disk in &disks {
            let is_reported = match self.reported.get(&disk.name) {
                Some(&is_reported) => is_reported,
                None => {
                    let is_reported = self.of_data.contains(&disk.name) || is_disk(&self.root, &disk.name);
                    *self.reported.entry(disk.name.clone()).or_insert(is_reported)
                }
            };
            if !is_reported {
                continue;
            }
            let label = Some(disk.name.as_str());
            let counters = [
                (metric!("disk.reads"), Some(disk.reads), 1.0),
                (metric!("disk.writes"), Some(disk.writes), 1.0),
                (metric!("disk.flushes"), disk.flushes, 1.0),
                (metric!("disk.read_bytes"), Some(disk.sectors_read), SECTOR_BYTES),
                (metric!("disk.write_bytes"), Some(disk.sectors_written), SECTOR_BYTES),
                (metric!("disk.discard_bytes"), disk.sectors_discarded, SECTOR_BYTES),
                (metric!("disk.read_us"), Some(disk.time_reading), US_PER_MS),
                (metric!("disk.write_us"), Some(disk.time_writing), US_PER_MS),
                (metric!("disk.flush_us"), disk.time_flushing, US_PER_MS),
                (metric!("disk.busy_us"), Some(disk.time_in_progress), US_PER_MS),
                (metric!("disk.queue_us"), Some(disk.weighted_time_in_progress), US_PER_MS),
            ];
            for (metric, count, unit) in counters {
                if let Some(count) = count {
                    into.add(metric, label, count as f64 * unit);
                }
            }
            into.add(metric!("disk.in_flight"), label, disk.in_progress as f64);
        }
        Some(())
    }
}

/// Whether it is a whole device with a size: no partition, no empty drive, not disconnected.
fn is_disk(root: &Root, name: &str) -> bool {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    // In sysfs, names have exclamation marks for slashes.
    let size = root.number::<u64>(&format!("sys/block/{}/size", name.replace('/', "!")));
    !NO_DISKS.contains(&kind) && size.is_some_and(|size| size > 0)
}
