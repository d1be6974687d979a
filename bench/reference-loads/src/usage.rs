//! CPU time of processes.

use std::fs;

/// CPU time of the first thread of a process until now, in microseconds; none if it has ended, or the kernel does not
/// report it.
pub(crate) fn of_process_us(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let ns: f64 = text.split(' ').next()?.parse().ok()?;
    Some(ns / 1e3)
}

/// Children of the first thread of a process that have not ended; empty if the process itself has.
pub(crate) fn running_children(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .filter(|&child| is_running(child))
        .collect()
}

/// Whether a process has not ended: one that has is a zombie until its parent waits for it.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
