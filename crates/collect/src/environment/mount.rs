//! The filesystem that a directory is on. Source: proc(5), `/proc/self/mountinfo`.

use std::fs;
use std::path::{Path, PathBuf};

use super::root::Root;

/// A mounted filesystem.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    point: PathBuf,
    /// Its type, such as `ext4`.
    pub(super) filesystem: String,
    /// Options of the mount and of the filesystem, by commas.
    pub(super) options: String,
}

/// The mount that holds a directory; where the directory is not there yet, its nearest parent that is.
pub(super) fn of(root: &Root, directory: &Path) -> Option<Mount> {
    let directory = directory.ancestors().find_map(|parent| fs::canonicalize(parent).ok())?;
    holding(&root.text("proc/self/mountinfo")?, &directory)
}

/// The last of the deepest mounts: later ones hide earlier ones at the same place.
fn holding(mountinfo: &str, directory: &Path) -> Option<Mount> {
    mountinfo
        .lines()
        .filter_map(mount)
        .filter(|mount| directory.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

/// A line: id, parent, device, root, mount point, options, tags…, `-`, type, source, the filesystem's options.
fn mount(line: &str) -> Option<Mount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4);
    let point = unescape(mount.next()?);
    let mut options: Vec<&str> = mount.next()?.split(',').collect();
    let mut filesystem = filesystem.split(' ');
    let kind = filesystem.next()?.to_owned();
    for option in filesystem.nth(1)?.split(',') {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount { point: PathBuf::from(point), filesystem: kind, options: options.join(",") })
}

/// Space, tab, line break and backslash stand as `\` and three octal digits.
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
not a mount
";

    #[test]
    fn the_deepest_mount_holds_a_directory_and_the_last_at_a_place_hides_the_others() {
        let on = |directory: &str| {
            let mount = holding(MOUNTINFO, Path::new(directory)).unwrap();
            (mount.filesystem, mount.options)
        };
        assert_eq!(on("/srv/my data/18/main"), ("xfs".to_owned(), "rw,noatime,noquota".to_owned()));
        assert_eq!(on("/srv/data"), ("btrfs".to_owned(), "rw,nodev,ssd,subvol=/a".to_owned()));
        assert_eq!(on("/srv/database"), ("ext4".to_owned(), "rw,relatime,discard".to_owned()));
        assert_eq!(holding("", Path::new("/")), None);
    }
}
