//! Kernel parameters. Source: the kernel's admin-guide/sysctl.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use model::secret::mask_kernel_parameter;

use crate::root::Root;

const PARAMETERS: &str = "proc/sys";

/// Directories to read; a name ending in `*` matches all files with that prefix.
const AREAS: [&str; 5] = ["fs", "kernel", "net/core", "net/ipv4/tcp*", "vm"];

/// Writable files that do not affect the kernel's behaviour, or that reading has an effect on: `binfmt_misc` is
/// mounted, `stat_refresh` gathers statistics from all CPUs.
const EXCLUDED: [&str; 5] =
    ["fs/binfmt_misc", "kernel/domainname", "kernel/hostname", "kernel/ns_last_pid", "vm/stat_refresh"];

/// All readable parameters, by dotted name. Files that are not writable are counters and the like, and omitted. Keys
/// are masked.
pub(super) fn parameters(root: &Root) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::new();
    for area in AREAS {
        match area.strip_suffix('*').and_then(|area| area.rsplit_once('/')) {
            Some((directory, start)) => {
                let names = root.names(&format!("{PARAMETERS}/{directory}"));
                for name in names.iter().filter(|name| name.starts_with(start)) {
                    gather(root, &format!("{directory}/{name}"), &mut parameters);
                }
            }
            None => gather(root, area, &mut parameters),
        }
    }
    parameters
}

/// Adds a parameter, or all below a directory.
fn gather(root: &Root, at: &str, parameters: &mut BTreeMap<String, String>) {
    let file = format!("{PARAMETERS}/{at}");
    let Ok(found) = fs::symlink_metadata(root.path(&file)) else { return };
    if EXCLUDED.contains(&at) {
        return;
    }
    if found.is_dir() {
        for name in root.names(&file) {
            gather(root, &format!("{at}/{name}"), parameters);
        }
    } else if found.permissions().mode() & 0o222 != 0
        && let Some(value) = root.text(&file)
    {
        let name = at.replace('/', ".");
        let value = mask_kernel_parameter(&name, value.trim());
        parameters.insert(name, value);
    }
}
