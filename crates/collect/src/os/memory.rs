//! What memory is used for, and paging. Source: proc(5), `/proc/meminfo` and `/proc/vmstat`.

use procfs::prelude::FromBufRead;
use procfs::{Meminfo, VmStat};

use super::kernel_file::KernelFile;
use crate::Reading;
use crate::root::Root;

/// Both files.
#[derive(Debug)]
pub(super) struct Memory {
    meminfo: Option<KernelFile>,
    vmstat: Option<KernelFile>,
}

/// Counters of `/proc/vmstat` that are told as they are, and what they are called there.
const COUNTERS: [(&str, &str); 6] = [
    ("vm.pgfault", "pgfault"),
    ("vm.pgmajfault", "pgmajfault"),
    ("vm.pswpin", "pswpin"),
    ("vm.pswpout", "pswpout"),
    ("vm.oom_kill", "oom_kill"),
    ("vm.pgscan_direct", "pgscan_direct"),
];

impl Memory {
    pub(super) fn new(root: &Root) -> Self {
        Self {
            meminfo: KernelFile::open(root, "proc/meminfo"),
            vmstat: KernelFile::open(root, "proc/vmstat"),
        }
    }

    pub(super) fn read(&mut self, into: &mut Reading) {
        self.read_meminfo(into);
        self.read_vmstat(into);
    }

    fn read_meminfo(&mut self, into: &mut Reading) -> Option<()> {
        // The parser gives bytes.
        let memory = Meminfo::from_buf_read(self.meminfo.as_mut()?.text()?.as_bytes()).ok()?;
        let uses = [
            ("memory.total_bytes", Some(memory.mem_total)),
            ("memory.free_bytes", Some(memory.mem_free)),
            ("memory.available_bytes", memory.mem_available),
            ("memory.buffers_bytes", Some(memory.buffers)),
            ("memory.cached_bytes", Some(memory.cached)),
            ("memory.dirty_bytes", Some(memory.dirty)),
            ("memory.writeback_bytes", Some(memory.writeback)),
            ("memory.anon_bytes", memory.anon_pages),
            ("memory.mapped_bytes", Some(memory.mapped)),
            ("memory.shared_bytes", memory.shmem),
            ("memory.slab_bytes", Some(memory.slab)),
            ("memory.page_tables_bytes", memory.page_tables),
            ("memory.swap_total_bytes", Some(memory.swap_total)),
            ("memory.swap_used_bytes", memory.swap_total.checked_sub(memory.swap_free)),
        ];
        for (metric, bytes) in uses {
            if let Some(bytes) = bytes {
                into.gauge(metric, None, bytes as f64);
            }
        }
        Some(())
    }

    fn read_vmstat(&mut self, into: &mut Reading) -> Option<()> {
        let VmStat(counts) = VmStat::from_buf_read(self.vmstat.as_mut()?.text()?.as_bytes()).ok()?;
        for (metric, name) in COUNTERS {
            if let Some(&count) = counts.get(name) {
                into.counter(metric, None, count as f64);
            }
        }
        // In KiB, whatever the size of a page is.
        for (metric, name) in [("vm.pgpgin_bytes", "pgpgin"), ("vm.pgpgout_bytes", "pgpgout")] {
            if let Some(&kib) = counts.get(name) {
                into.counter(metric, None, kib as f64 * 1024.0);
            }
        }
        // One figure until Linux 4.9, since then one for each zone.
        let stalls = counts.iter().filter(|(name, _)| name.starts_with("allocstall"));
        if let Some(stalls) = stalls.map(|(_, &count)| count as f64).reduce(|sum, count| sum + count) {
            into.counter("vm.allocstall", None, stalls);
        }
        Some(())
    }
}
