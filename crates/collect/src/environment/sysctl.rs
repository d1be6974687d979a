//! Kernel parameters that change what PostgreSQL does. Source: the kernel's admin-guide/sysctl.

use std::collections::BTreeMap;

use super::root::Root;

/// Parameters by name; one that ends in `*` stands for all that begin so.
const KEPT: [&str; 10] = [
    "kernel.numa_balancing",
    "kernel.perf_event_paranoid",
    "kernel.randomize_va_space",
    "kernel.sched_*",
    "net.core.somaxconn",
    "vm.dirty_*",
    "vm.nr_hugepages",
    "vm.overcommit_*",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];

/// Every kept parameter that this kernel has and lets us read.
pub(super) fn parameters(root: &Root) -> BTreeMap<String, String> {
    KEPT.into_iter()
        .flat_map(|kept| names(root, kept))
        .filter_map(|name| {
            let value = root.line(&format!("proc/sys/{}", name.replace('.', "/")))?;
            Some((name, value))
        })
        .collect()
}

fn names(root: &Root, kept: &str) -> Vec<String> {
    let Some(start) = kept.strip_suffix('*') else { return vec![kept.to_owned()] };
    let Some((area, start)) = start.rsplit_once('.') else { return Vec::new() };
    root.names(&format!("proc/sys/{}", area.replace('.', "/")))
        .into_iter()
        .filter(|name| name.starts_with(start))
        .map(|name| format!("{area}.{name}"))
        .collect()
}
