//! Main memory. Sources: proc(5), `/proc/meminfo`; the kernel's admin-guide/mm/transhuge.

use super::root::Root;

/// A field of `/proc/meminfo` such as `MemTotal`, in bytes.
pub(super) fn bytes(root: &Root, field: &str) -> Option<u64> {
    let text = root.text("proc/meminfo")?;
    let (_, value) = text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| *name == field)?;
    // "kB" is what the file says; 1024 bytes are what it means.
    value.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The mode in force of transparent huge pages: the one in brackets of `always [madvise] never`.
pub(super) fn transparent_hugepages(root: &Root) -> Option<String> {
    let line = root.line("sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, rest) = line.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}
