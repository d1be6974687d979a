//! Metrics of the machine: CPUs, memory, disks, network, and the limits on pgdyno and its server.
//!
//! Sources: proc(5), and the kernel's admin-guide.

use crate::metrics::metric::Condition::{If, Linux};
use crate::metrics::metric::{Condition, Group, counter, gauge};

const STAT: &str = "`/proc/stat`";
const LOADAVG: &str = "`/proc/loadavg`";
const VMSTAT: &str = "`/proc/vmstat`";
const DISKSTATS: &str = "`/proc/diskstats`";
const PRESSURE_FILES: &str = "`/proc/pressure`";
const NET_DEV: &str = "`/proc/net/dev`";
const CPU_STAT: &str = "`cpu.stat`";

const PSI: Condition = If("Linux 4.20+ with pressure stall information on");
const CPU_LIMIT: Condition = If("processor time is limited");
const MEMORY_LIMIT: Condition = If("memory is limited");

pub(super) const PROCESSORS: Group = Group {
    name: "processors",
    label: Some("processor"),
    metrics: &[
        counter("cpu.user_us", STAT, "time in programs, including that of guests"),
        counter("cpu.nice_us", STAT, "time in programs with a lower priority"),
        counter("cpu.system_us", STAT, "time in the kernel, for programs and for its own threads"),
        counter("cpu.idle_us", STAT, "time with nothing to do"),
        counter(
            "cpu.iowait_us",
            STAT,
            "idle time while a task that last ran there waits for a disk; not reliable, as proc(5) says",
        ),
        counter("cpu.irq_us", STAT, "time in interrupts"),
        counter("cpu.softirq_us", STAT, "time in deferred work of interrupts, such as the network's"),
        counter("cpu.steal_us", STAT, "CPU steal: time that the hypervisor gave to other guests")
            .lower_is_better(),
        counter("cpu.guest_us", STAT, "time in virtual machines on this one, also part of `user` and `nice`"),
    ],
};

pub(super) const SCHEDULER: Group = Group {
    name: "scheduler",
    label: None,
    metrics: &[
        counter("sched.context_switches", STAT, "context switches of all processors"),
        counter("sched.interrupts", STAT, "interrupts of all kinds"),
        counter("sched.soft_interrupts", STAT, "soft interrupts of all kinds"),
        counter("sched.forks", STAT, "processes and threads started"),
        gauge("sched.running", STAT, "threads that run or wait for a processor"),
        gauge("sched.blocked", STAT, "threads that wait for a disk"),
        gauge("sched.load_1m", LOADAVG, "load average of one minute"),
        gauge("sched.tasks", LOADAVG, "threads that exist"),
    ],
};

pub(super) const SENSORS: Group = Group {
    name: "sensors",
    label: Some("processor or sensor"),
    metrics: &[
        gauge("cpu.frequency_hz", "`cpufreq/scaling_cur_freq`", "clock rate of a processor")
            .when(If("the machine has it; virtual machines do not")),
        gauge(
            "temperature.celsius",
            "`/sys/class/hwmon`, else `/sys/class/thermal`",
            "temperature of a sensor, named by chip and label, such as `coretemp Core 0`",
        )
        .when(If("the machine has sensors")),
    ],
};

pub(super) const MEMORY: Group = Group {
    name: "memory",
    label: None,
    metrics: &[
        gauge("memory.total_bytes", "`MemTotal`", "memory of the machine"),
        gauge("memory.free_bytes", "`MemFree`", "unused memory"),
        gauge(
            "memory.available_bytes",
            "`MemAvailable`",
            "memory that programs can still get without swapping",
        ),
        gauge("memory.buffers_bytes", "`Buffers`", "page cache of block devices"),
        gauge("memory.cached_bytes", "`Cached`", "page cache of files, including shared memory"),
        gauge("memory.dirty_bytes", "`Dirty`", "page cache that waits to be written to disks"),
        gauge("memory.writeback_bytes", "`Writeback`", "page cache that is being written to disks"),
        gauge("memory.anon_bytes", "`AnonPages`", "private memory of programs"),
        gauge("memory.mapped_bytes", "`Mapped`", "files mapped by programs"),
        gauge("memory.shared_bytes", "`Shmem`", "shared memory, including a server's shared buffers"),
        gauge("memory.slab_bytes", "`Slab`", "memory of the kernel's own structures"),
        gauge(
            "memory.page_tables_bytes",
            "`PageTables`",
            "page tables; each backend needs its own for the shared buffers",
        ),
        gauge("memory.swap_total_bytes", "`SwapTotal`", "swap space"),
        gauge("memory.swap_used_bytes", "`SwapTotal` − `SwapFree`", "swap space in use"),
    ],
};

pub(super) const PAGING: Group = Group {
    name: "paging",
    label: None,
    metrics: &[
        counter("vm.pgpgin_bytes", VMSTAT, "bytes read from block devices"),
        counter("vm.pgpgout_bytes", VMSTAT, "bytes written to block devices"),
        counter("vm.pswpin", VMSTAT, "pages read from swap").lower_is_better(),
        counter("vm.pswpout", VMSTAT, "pages written to swap").lower_is_better(),
        counter("vm.pgfault", VMSTAT, "page faults"),
        counter("vm.pgmajfault", VMSTAT, "page faults that had to read from a disk"),
        counter("vm.allocstall", VMSTAT, "allocations that had to free memory first, in all zones")
            .lower_is_better(),
        counter("vm.pgscan_direct", VMSTAT, "pages examined by allocations that had to free memory first")
            .lower_is_better(),
        counter("vm.oom_kill", VMSTAT, "processes killed for lack of memory")
            .lower_is_better()
            .when(Linux(4, 13)),
    ],
};

pub(super) const DISKS: Group = Group {
    name: "disks",
    label: Some("device"),
    metrics: &[
        counter("disk.reads", DISKSTATS, "finished reads"),
        counter("disk.writes", DISKSTATS, "finished writes"),
        counter("disk.flushes", DISKSTATS, "finished flushes").when(Linux(5, 5)),
        counter("disk.read_bytes", DISKSTATS, "bytes read"),
        counter("disk.write_bytes", DISKSTATS, "bytes written"),
        counter("disk.discard_bytes", DISKSTATS, "bytes discarded").when(Linux(4, 18)),
        counter(
            "disk.read_us",
            DISKSTATS,
            "time from start to end, summed over reads; divided by the number of reads, it is iostat's await",
        ),
        counter("disk.write_us", DISKSTATS, "time from start to end, summed over writes"),
        counter("disk.flush_us", DISKSTATS, "time from start to end, summed over flushes").when(Linux(5, 5)),
        counter(
            "disk.busy_us",
            DISKSTATS,
            "time with at least one request in flight; divided by the time, the utilisation. A disk that serves many requests at once is not saturated at 100 %",
        ),
        counter(
            "disk.queue_us",
            DISKSTATS,
            "requests in flight, summed over time; divided by the time, the mean queue length",
        ),
        gauge("disk.in_flight", DISKSTATS, "requests in flight"),
    ],
};

pub(super) const PRESSURE: Group = Group {
    name: "pressure",
    label: None,
    metrics: &[
        counter(
            "psi.cpu_some_us",
            PRESSURE_FILES,
            "time in which at least one thread waited for a processor",
        )
        .lower_is_better()
        .when(PSI),
        counter("psi.io_some_us", PRESSURE_FILES, "time in which at least one thread waited for a disk")
            .lower_is_better()
            .when(PSI),
        counter(
            "psi.io_full_us",
            PRESSURE_FILES,
            "time in which threads waited for a disk and no other could run",
        )
        .lower_is_better()
        .when(PSI),
        counter("psi.memory_some_us", PRESSURE_FILES, "time in which at least one thread waited for memory")
            .lower_is_better()
            .when(PSI),
        counter(
            "psi.memory_full_us",
            PRESSURE_FILES,
            "time in which threads waited for memory and no other could run",
        )
        .lower_is_better()
        .when(PSI),
    ],
};

pub(super) const NETWORK: Group = Group {
    name: "network",
    label: Some("interface"),
    metrics: &[
        counter("net.rx_bytes", NET_DEV, "bytes received"),
        counter("net.rx_packets", NET_DEV, "packets received"),
        counter("net.rx_errors", NET_DEV, "errors while receiving").lower_is_better(),
        counter("net.rx_dropped", NET_DEV, "received packets dropped").lower_is_better(),
        counter("net.tx_bytes", NET_DEV, "bytes sent"),
        counter("net.tx_packets", NET_DEV, "packets sent"),
        counter("net.tx_errors", NET_DEV, "errors while sending").lower_is_better(),
        counter("net.tx_dropped", NET_DEV, "packets dropped before sending").lower_is_better(),
    ],
};

pub(super) const LIMITS: Group = Group {
    name: "limits",
    label: Some("control group"),
    metrics: &[
        counter("cgroup.periods", CPU_STAT, "periods in which the group wanted to run").when(CPU_LIMIT),
        counter("cgroup.throttled_periods", CPU_STAT, "periods in which the group was stopped")
            .lower_is_better()
            .when(CPU_LIMIT),
        counter(
            "cgroup.throttled_us",
            CPU_STAT,
            "time for which the group was stopped, summed over processors",
        )
        .lower_is_better()
        .when(CPU_LIMIT),
        gauge(
            "cgroup.memory_bytes",
            "`memory.current` · `memory.usage_in_bytes`",
            "memory in use, including the page cache",
        )
        .when(MEMORY_LIMIT),
        gauge("cgroup.memory_limit_bytes", "`memory.max` · `memory.limit_in_bytes`", "memory limit")
            .when(MEMORY_LIMIT),
        counter(
            "cgroup.memory_limit_hits",
            "`memory.events` `max` · `memory.failcnt`",
            "allocations that had to free memory because of the limit",
        )
        .lower_is_better()
        .when(MEMORY_LIMIT),
        counter(
            "cgroup.oom_kills",
            "`memory.events` · `memory.oom_control`",
            "processes of the group killed for lack of memory",
        )
        .lower_is_better()
        .when(MEMORY_LIMIT),
        counter(
            "cgroup.read_bytes",
            "`io.stat` `rbytes` · `blkio.throttle.io_service_bytes`",
            "bytes that the server's group read from a disk limited for it",
        )
        .when(If("a disk is limited")),
    ],
};
