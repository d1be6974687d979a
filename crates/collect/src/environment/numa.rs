//! NUMA nodes. Source: the kernel's `ABI/stable/sysfs-devices-node`.

use model::environment::NumaNode;

use super::memory;
use crate::root::Root;

const NODES: &str = "sys/devices/system/node";

/// All nodes, by number.
pub(super) fn nodes(root: &Root) -> Vec<NumaNode> {
    root.numbered(NODES, "node")
        .into_iter()
        .map(|id| NumaNode {
            id,
            cpus: root.line(&format!("{NODES}/node{id}/cpulist")),
            memory_bytes: memory_of(root, id),
        })
        .collect()
}

/// Memory of a node; lines are those of `/proc/meminfo` after `Node 0 `.
fn memory_of(root: &Root, id: u32) -> Option<u64> {
    let text = root.text(&format!("{NODES}/node{id}/meminfo"))?;
    let prefix = format!("Node {id} ");
    text.lines()
        .filter_map(|line| line.strip_prefix(&prefix))
        .find_map(|line| memory::field(line, "MemTotal"))
}
