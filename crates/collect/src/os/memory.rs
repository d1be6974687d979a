//! Memory use and paging. Source: proc(5), `/proc/meminfo` and `/proc/vmstat`.

use procfs::prelude::FromBufRead;
use procfs::{Meminfo, VmStat};

use model::metric;
use model::metrics::Metric;

use super::kernel_file::KernelFile;
use crate::Reading;
use crate::root::Root;

/// Both files.
#[derive(Debug)]
pub(super) struct Memory {
    meminfo: Option<KernelFile>,
    vmstat: Option<KernelFile>,
}

/// Counters of `/proc/vmstat` that are reported unchanged, with their names there.
const COUNTERS: [(&Metric, &str); 6] = [
    (metric!("vm.pgfault"), "pgfault"),
    (metric!("vm.pgmajfault"), "pgmajfault"),
    (metric!("vm.pswpin"), "pswpin"),
    (metric!("vm.pswpout"), "pswpout"),
    (metric!("vm.oom_kill"), "oom_kill"),
    (metric!("vm.pgscan_direct"), "pgscan_direct"),
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
        // The parser returns bytes.
        let memory = Meminfo::from_buf_read(self.meminfo.as_mut()?.text()?.as_bytes()).ok()?;
        let uses = [
            (metric!("memory.total_bytes"), Some(memory.mem_total)),
            (metric!("memory.free_bytes"), Some(memory.mem_free)),
            (metric!("memory.available_bytes"), memory.mem_available),
            (metric!("memory.buffers_bytes"), Some(memory.buffers)),
            (metric!("memory.cached_bytes"), Some(memory.cached)),
            (metric!("memory.dirty_bytes"), Some(memory.dirty)),
            (metric!("memory.writeback_bytes"), Some(memory.writeback)),
            (metric!("memory.anon_bytes"), memory.anon_pages),
            (metric!("memory.mapped_bytes"), Some(memory.mapped)),
            (metric!("memory.shared_bytes"), memory.shmem),
            (metric!("memory.slab_bytes"), Some(memory.slab)),
            (metric!("memory.page_tables_bytes"), memory.page_tables),
            (metric!("memory.swap_total_bytes"), Some(memory.swap_total)),
            (metric!("memory.swap_used_bytes"), memory.swap_total.checked_sub(memory.swap_free)),
        ];
        for (metric, bytes) in uses {
            if let Some(bytes) = bytes {
                into.add(metric, None, bytes as f64);
            }
        }
        Some(())
    }

    fn read_vmstat(&mut self, into: &mut Reading) -> Option<()> {
        let VmStat(counts) = VmStat::from_buf_read(self.vmstat.as_mut()?.text()?.as_bytes()).ok()?;
        for (metric, name) in COUNTERS {
            if let Some(&count) = counts.get(name) {
                into.add(metric, None, count as f64);
            }
        }
        // In KiB, regardless of the page size.
        for (metric, name) in
            [(metric!("vm.pgpgin_bytes"), "pgpgin"), (metric!("vm.pgpgout_bytes"), "pgpgout")]
        {
            if let Some(&kib) = counts.get(name) {
                into.add(metric, None, kib as f64 * 1024.0);
            }
        }
        // One counter until Linux 4.9, then one per zone.
        let stalls = counts.iter().filter(|(name, _)| name.starts_with("allocstall"));
        if let Some(stalls) = stalls.map(|(_, &count)| count as f64).reduce(|sum, count| sum + count) {
            into.add(metric!("vm.allocstall"), None, stalls);
        }
        Some(())
    }
}
