//! Main memory. Sources: proc(5), `/proc/meminfo`; the kernel's admin-guide/mm/transhuge and
//! admin-guide/mm/hugetlbpage.

use std::collections::BTreeMap;

use crate::root::Root;

/// A field of `/proc/meminfo` such as `MemTotal`, in bytes.
pub(super) fn bytes(root: &Root, name: &str) -> Option<u64> {
    root.text("proc/meminfo")?.lines().find_map(|line| field(line, name))
}

/// A line `name: value kB`, in bytes.
pub(super) fn field(line: &str, name: &str) -> Option<u64> {
    let (_, value) = line.split_once(':').filter(|(field, _)| *field == name)?;
    // "kB" in this file means 1024 bytes.
    value.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Swap in use, in bytes.
pub(super) fn swap_used(root: &Root) -> Option<u64> {
    bytes(root, "SwapTotal")?.checked_sub(bytes(root, "SwapFree")?)
}

/// Transparent huge pages: the mode in force (`enabled`), or the allocation effort (`defrag`).
pub(super) fn transparent_hugepages(root: &Root, what: &str) -> Option<String> {
    chosen(&root.line(&format!("sys/kernel/mm/transparent_hugepage/{what}"))?)
}

/// Reserved huge pages: number by size.
pub(super) fn huge_pages(root: &Root) -> BTreeMap<String, u64> {
    const SIZES: &str = "sys/kernel/mm/hugepages";
    root.names(SIZES)
        .into_iter()
        .filter_map(|name| {
            let size = name.strip_prefix("hugepages-")?.to_owned();
            Some((size, root.number(&format!("{SIZES}/{name}/nr_hugepages"))?))
        })
        .collect()
}

/// The choice in force: the one in brackets of `always [madvise] never`.
pub(super) fn chosen(choices: &str) -> Option<String> {
    let (_, rest) = choices.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}
