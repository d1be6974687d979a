//! Counters of CPUs and the scheduler. Source: proc(5), `/proc/stat` and `/proc/loadavg`.

use std::collections::HashMap;
use std::iter;

use procfs::prelude::{FromBufReadSI, FromRead};
use procfs::{CpuTime, ExplicitSystemInfo, KernelStats, LoadAverage};
use rustix::param::clock_ticks_per_second;

use model::metric;

use super::kernel_file::KernelFile;
use crate::Reading;
use crate::root::Root;

/// Both files, and the state needed to parse them.
#[derive(Debug)]
pub(super) struct Cpu {
    stat: Option<KernelFile>,
    load: Option<KernelFile>,
    system: ExplicitSystemInfo,
    /// Highest idle and iowait read so far, by CPU.
    highest: HashMap<String, [u64; 2]>,
}

impl Cpu {
    pub(super) fn new(root: &Root) -> Self {
        // The parser requires all four, and uses only the ticks.
        let system = ExplicitSystemInfo {
            boot_time_secs: 0,
            ticks_per_second: clock_ticks_per_second(),
            page_size: 4096,
            is_little_endian: true,
        };
        Self {
            stat: KernelFile::open(root, "proc/stat"),
            load: KernelFile::open(root, "proc/loadavg"),
            system,
            highest: HashMap::new(),
        }
    }

    pub(super) fn read(&mut self, into: &mut Reading) {
        self.read_stat(into);
        self.read_load(into);
    }

    fn read_stat(&mut self, into: &mut Reading) -> Option<()> {
        let text = self.stat.as_mut()?.text()?;
        let stats = KernelStats::from_buf_read(text.as_bytes(), &self.system).ok()?;
        // A CPU that is offline has no line: the parser's index is not its number.
        let names =
            text.lines().map_while(|line| line.split(' ').next().filter(|name| name.starts_with("cpu")));
        let us_per_tick = 1e6 / self.system.ticks_per_second as f64;
        for (name, time) in names.zip(iter::once(&stats.total).chain(&stats.cpu_time)) {
            let label = if name == "cpu" { "all" } else { name };
            let highest = match self.highest.get_mut(label) {
                Some(highest) => highest,
                None => self.highest.entry(label.to_owned()).or_default(),
            };
            record_time(time, label, us_per_tick, highest, into);
        }
        into.add(metric!("sched.context_switches"), None, stats.ctxt as f64);
        into.add(metric!("sched.forks"), None, stats.processes as f64);
        for (metric, line) in
            [(metric!("sched.interrupts"), "intr "), (metric!("sched.soft_interrupts"), "softirq ")]
        {
            // The first number is the sum of all kinds.
            let sum = text.lines().find_map(|text| text.strip_prefix(line)?.split(' ').next()?.parse().ok());
            if let Some(sum) = sum {
                into.add(metric, None, sum);
            }
        }
        for (metric, count) in
            [(metric!("sched.running"), stats.procs_running), (metric!("sched.blocked"), stats.procs_blocked)]
        {
            if let Some(count) = count {
                into.add(metric, None, f64::from(count));
            }
        }
        Some(())
    }

    fn read_load(&mut self, into: &mut Reading) -> Option<()> {
        let load = LoadAverage::from_read(self.load.as_mut()?.text()?.as_bytes()).ok()?;
        into.add(metric!("sched.load_1m"), None, f64::from(load.one));
        into.add(metric!("sched.tasks"), None, f64::from(load.max));
        Some(())
    }
}

fn record_time(time: &CpuTime, label: &str, us_per_tick: f64, highest: &mut [u64; 2], into: &mut Reading) {
    // These two can decrease (proc(5)), which would look like a reset of the counter.
    highest[0] = highest[0].max(time.idle);
    highest[1] = highest[1].max(time.iowait.unwrap_or_default());
    let states = [
        (metric!("cpu.user_us"), Some(time.user)),
        (metric!("cpu.nice_us"), Some(time.nice)),
        (metric!("cpu.system_us"), Some(time.system)),
        (metric!("cpu.idle_us"), Some(highest[0])),
        (metric!("cpu.iowait_us"), time.iowait.map(|_| highest[1])),
        (metric!("cpu.irq_us"), time.irq),
        (metric!("cpu.softirq_us"), time.softirq),
        (metric!("cpu.steal_us"), time.steal),
        (metric!("cpu.guest_us"), time.guest.map(|guest| guest + time.guest_nice.unwrap_or_default())),
    ];
    for (metric, ticks) in states {
        if let Some(ticks) = ticks {
            into.add(metric, Some(label), ticks as f64 * us_per_tick);
        }
    }
}
