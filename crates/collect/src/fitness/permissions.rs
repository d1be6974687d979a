//! Permissions of this process.

use std::fs;

use crate::environment::own_cgroup;
use crate::root::Root;

/// `CAP_PERFMON` and `CAP_SYS_ADMIN` of capabilities(7): with either, perf may observe everything.
const PERF_CAPABILITIES: u64 = 1 << 38 | 1 << 21;

/// Whether perf may observe everything, regardless of `kernel.perf_event_paranoid`.
pub(super) fn perf_privileged(root: &Root) -> Option<bool> {
    let status = root.text("proc/self/status")?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(effective.trim(), 16).ok()?;
    Some(effective & PERF_CAPABILITIES != 0)
}

/// Whether a control group can be created below our own: creates one and removes it.
pub(super) fn can_create_cgroup(root: &Root) -> Option<bool> {
    let group = own_cgroup(root)?.join(format!("pgdyno-doctor-{}", std::process::id()));
    match fs::create_dir(&group) {
        Ok(()) => {
            // An empty group is removed at once.
            let _ = fs::remove_dir(&group);
            Some(true)
        }
        Err(_) => Some(false),
    }
}
