//! The block device that holds a directory. Sources: the kernel's ABI/stable/sysfs-block and ABI/testing/sysfs-dev.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

use crate::error::LimitError;

/// A whole disk, or a similar device; control groups do not know partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// Such as `254:0`.
    pub(super) number: String,
    /// Such as `vda`.
    pub(super) name: String,
}

/// Device of a directory's file system.
///
/// # Errors
/// It is on none; with advice.
pub(super) fn under(directory: &Path) -> Result<Device, LimitError> {
    let number = fs::metadata(directory).map(|meta| meta.dev());
    let number = number.map_err(|source| LimitError::Inspect { directory: directory.to_owned(), source })?;
    device_from_number(Path::new("/"), major(number), minor(number))
        .ok_or_else(|| LimitError::NoDevice { directory: directory.to_owned() })
}

fn device_from_number(root: &Path, major: u32, minor: u32) -> Option<Device> {
    // A link to the device's directory, which for a partition is inside that of its disk.
    let mut device = root.join(format!("sys/dev/block/{major}:{minor}")).canonicalize().ok()?;
    if device.join("partition").exists() {
        device.pop();
    }
    let number = fs::read_to_string(device.join("dev")).ok()?.trim().to_owned();
    Some(Device { number, name: device.file_name()?.to_str()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_partition_is_its_disk_and_a_file_system_without_a_device_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sys/devices/pci/block/sda/dev", "8:0\n");
        put("sys/devices/pci/block/sda/sda2/dev", "8:2\n");
        put("sys/devices/pci/block/sda/sda2/partition", "2\n");
        fs::create_dir_all(root.path().join("sys/dev/block")).unwrap();
        for (number, device) in [("8:0", "sda"), ("8:2", "sda/sda2")] {
            let link = root.path().join("sys/dev/block").join(number);
            symlink(format!("../../devices/pci/block/{device}"), link).unwrap();
        }
        let sda = Device { number: "8:0".to_owned(), name: "sda".to_owned() };
        assert_eq!(device_from_number(root.path(), 8, 0), Some(sda.clone()));
        assert_eq!(device_from_number(root.path(), 8, 2), Some(sda));
        assert_eq!(device_from_number(root.path(), 0, 33), None);
        let why = under(Path::new("/proc/self")).unwrap_err().to_string();
        assert!(why.contains("/proc/self") && why.contains("PGDYNO_CACHE"), "{why}");
    }
}
