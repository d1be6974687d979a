//! Mounted filesystems. Source: proc(5), `/proc/self/mountinfo`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::root::Root;

/// A mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) point: PathBuf,
    /// Mounted part of the filesystem: `/` except for bind mounts and control groups.
    pub(crate) root: PathBuf,
    /// Major and minor number of its device, such as `254:1`; meaningless for a filesystem without one.
    pub(crate) device: String,
    /// Mounted device or source, such as `/dev/sda1`.
    pub(crate) source: String,
    /// Its type, such as `ext4`.
    pub(crate) filesystem: String,
    /// Options of the mount and of the filesystem, separated by commas; passwords masked.
    pub(crate) options: String,
}

impl From<Mount> for model::environment::Mount {
    fn from(mount: Mount) -> Self {
        Self {
            point: mount.point.to_string_lossy().into_owned(),
            source: mount.source,
            filesystem: mount.filesystem,
            options: mount.options,
        }
    }
}

/// All mounts, in mount order.
pub(crate) fn all(root: &Root) -> Vec<Mount> {
    root.text("proc/self/mountinfo").unwrap_or_default().lines().filter_map(mount).collect()
}

/// The mount of a directory; if the directory does not exist, that of its nearest existing parent.
pub(crate) fn containing<'a>(mounts: &'a [Mount], directory: &Path) -> Option<&'a Mount> {
    let directory = directory.ancestors().find_map(|parent| fs::canonicalize(parent).ok())?;
    deepest(mounts, &directory)
}

/// The last of the deepest mounts: later ones hide earlier ones at the same point.
fn deepest<'a>(mounts: &'a [Mount], directory: &Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| directory.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

/// Parses a line: id, parent, device, root, mount point, options, tags…, `-`, type, source, the filesystem's options.
fn mount(line: &str) -> Option<Mount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(2);
    let device = mount.next()?.to_owned();
    let root = PathBuf::from(unescape(mount.next()?));
    let point = PathBuf::from(unescape(mount.next()?));
    let mut options: Vec<&str> = mount.next()?.split(',').collect();
    let mut filesystem = filesystem.split(' ');
    let kind = filesystem.next()?.to_owned();
    let source = model::secret::mask(&unescape(filesystem.next()?));
    for option in filesystem.next()?.split(',') {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    let options = model::secret::mask(&options.join(","));
    Some(Mount { point, root, device, source, filesystem: kind, options })
}

/// Decodes space, tab, line break and backslash, written as `\` and three octal digits.
fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
28 27 254:1 / /srv/my\\040data rw,noatime shared:1 master:2 - xfs /dev/vdb rw,noquota
29 27 0:25 / /srv/data rw - tmpfs tmpfs rw,size=4k
30 27 254:2 / /srv/data rw,nodev - btrfs /dev/vdc rw,ssd,subvol=/a
31 27 0:3 / /proc rw - proc proc rw
32 27 0:9 / /mnt rw - cifs //nas/share rw,username=u,password=hunter2,vers=3
not a mount
";

    #[test]
    fn the_deepest_mount_contains_a_directory_and_later_mounts_hide_earlier_ones() {
        let mounts: Vec<Mount> = MOUNTINFO.lines().filter_map(mount).collect();
        let on = |directory: &str| {
            let mount = deepest(&mounts, Path::new(directory)).unwrap();
            (mount.filesystem.as_str(), mount.options.as_str())
        };
        assert_eq!(on("/srv/my data/18/main"), ("xfs", "rw,noatime,noquota"));
        assert_eq!(on("/srv/data"), ("btrfs", "rw,nodev,ssd,subvol=/a"));
        assert_eq!(on("/srv/database"), ("ext4", "rw,relatime,discard"));
        assert_eq!(on("/mnt"), ("cifs", "rw,username=u,password=(masked),vers=3"));
        assert_eq!(deepest(&[], Path::new("/")), None);
    }
}
