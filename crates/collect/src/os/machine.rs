//! The machine as a whole.

use std::path::Path;

use super::cgroup::Groups;
use super::cpu::Cpu;
use super::disk::Disks;
use super::memory::Memory;
use super::network::Network;
use super::pressure::Pressure;
use super::sensors::Sensors;
use crate::environment::devices_under;
use crate::error::CollectError;
use crate::root::Root;
use crate::{Reading, Source};

/// CPUs, memory, disks, network, and sensors of the machine, and limits on this process. `docs/metrics.md` describes
/// its metrics. Source: proc(5), and the kernel's documents named in each file here.
#[derive(Debug)]
pub struct Machine {
    cpu: Cpu,
    memory: Memory,
    disks: Disks,
    pressure: Pressure,
    network: Network,
    sensors: Sensors,
    groups: Groups,
}

impl Machine {
    /// This machine. Reports whole disks, and any device of the data directory, such as a loop device; of control
    /// groups, our own and that of the server's first process.
    pub fn new(data_directory: Option<&Path>, server: Option<u32>) -> Self {
        Self::at(&Root::new(Path::new("/")), data_directory, server)
    }

    fn at(root: &Root, data_directory: Option<&Path>, server: Option<u32>) -> Self {
        let of_data = data_directory.map(|directory| devices_under(root, directory)).unwrap_or_default();
        Self {
            cpu: Cpu::new(root),
            memory: Memory::new(root),
            disks: Disks::new(root, of_data),
            pressure: Pressure::new(root),
            network: Network::new(root),
            sensors: Sensors::new(root),
            groups: Groups::new(root, server),
        }
    }
}

impl Source for Machine {
    fn name(&self) -> &'static str {
        "os"
    }

    fn read(&mut self, into: &mut Reading) -> Result<(), CollectError> {
        let before = into.values().len();
        self.cpu.read(into);
        self.memory.read(into);
        self.disks.read(into);
        self.pressure.read(into);
        self.network.read(into);
        self.sensors.read(into);
        self.groups.read(into);
        if into.values().len() > before {
            Ok(())
        } else {
            Err(CollectError::Kernel("/proc/stat or any other figure of the machine"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use model::metrics::Kind;
    use tempfile::TempDir;

    use super::*;
    use crate::reading::Value;

    fn put(root: &TempDir, file: &str, text: &str) {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn machine(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            put(&root, file, text);
        }
        root
    }

    /// Values by metric and label, such as `cpu.user_us cpu0`.
    type Values = BTreeMap<String, f64>;

    fn read(machine: &mut Machine) -> Values {
        let mut reading = Reading::default();
        machine.read(&mut reading).unwrap();
        let named = |Value { metric, label, value }: &Value| {
            let name = metric.name;
            (label.as_ref().map_or(name.to_owned(), |label| format!("{name} {label}")), *value)
        };
        reading.values().iter().map(named).collect()
    }

    fn read_once(files: &[(&str, &str)]) -> Values {
        read(&mut Machine::at(&Root::new(machine(files).path()), None, Some(77)))
    }

    fn get(values: &Values, name: &str) -> f64 {
        *values.get(name).unwrap_or_else(|| panic!("no {name} in {values:#?}"))
    }

    fn has(values: &Values, beginning: &str) -> bool {
        values.keys().any(|name| name.starts_with(beginning))
    }

    const STAT: &str = "cpu  30 1 20 900 7 2 3 4 5 6\ncpu0 10 1 5 400 3 1 1 2 0 0\ncpu3 20 0 15 500 4 1 2 2 5 6\n\
        intr 77 1 2 3\nctxt 1234\nbtime 1600000000\nprocesses 99\nprocs_running 3\nprocs_blocked 1\nsoftirq 55 1 2\n";

    #[test]
    fn offline_processors_are_omitted() {
        let values = read_once(&[("proc/stat", STAT), ("proc/loadavg", "2.63 1.00 1.42 3/428 2496732\n")]);
        let us_per_tick = 1e6 / rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(get(&values, "cpu.user_us all"), 30.0 * us_per_tick);
        assert_eq!(get(&values, "cpu.steal_us cpu0"), 2.0 * us_per_tick);
        assert_eq!(get(&values, "cpu.user_us cpu3"), 20.0 * us_per_tick);
        assert_eq!(get(&values, "cpu.guest_us cpu3"), 11.0 * us_per_tick);
        assert!(!has(&values, "cpu.user_us cpu1"));
        assert_eq!((get(&values, "sched.context_switches"), get(&values, "sched.forks")), (1234.0, 99.0));
        assert_eq!((get(&values, "sched.interrupts"), get(&values, "sched.soft_interrupts")), (77.0, 55.0));
        assert_eq!((get(&values, "sched.running"), get(&values, "sched.blocked")), (3.0, 1.0));
        assert!((get(&values, "sched.load_1m") - 2.63).abs() < 1e-6);
    }

    #[test]
    fn idle_time_never_decreases() {
        let root = machine(&[("proc/stat", STAT)]);
        let mut machine = Machine::at(&Root::new(root.path()), None, None);
        let before = read(&mut machine);
        put(&root, "proc/stat", &STAT.replace("900 7", "899 9").replace("400 3", "401 2"));
        let after = read(&mut machine);
        assert_eq!(get(&after, "cpu.idle_us all"), get(&before, "cpu.idle_us all"));
        assert!(get(&after, "cpu.iowait_us all") > get(&before, "cpu.iowait_us all"));
        assert!(get(&after, "cpu.idle_us cpu0") > get(&before, "cpu.idle_us cpu0"));
        assert_eq!(get(&after, "cpu.iowait_us cpu0"), get(&before, "cpu.iowait_us cpu0"));
    }

    #[test]
    fn disks_are_reported_with_the_counters_of_the_kernel() {
        let values = read_once(&[
            (
                "proc/diskstats",
                "   8       0 sda 10 1 80 5 20 2 160 6 1 30 40\n\
                 \u{20}  8       1 sda1 10 1 80 5 20 2 160 6 0 30 40\n\
                 \u{20}259       0 nvme0n1 1 0 8 1 2 0 16 2 0 3 4 5 0 48 6\n\
                 \u{20}254       0 vda 1 0 8 1 2 0 16 2 0 3 4 5 0 48 6 7 8\n\
                 \u{20}104       0 cciss/c0d0 1 0 8 1 2 0 16 2 0 3 4\n\
                 \u{20} 11       0 sr0 0 0 0 0 0 0 0 0 0 0 0\n\
                 \u{20}  7       0 loop0 1 1 1 1 1 1 1 1 1 1 1\n\
                 \u{20}253       0 zram0 1 1 1 1 1 1 1 1 1 1 1\n",
            ),
            ("sys/block/sda/size", "1000\n"),
            ("sys/block/nvme0n1/size", "1000\n"),
            ("sys/block/vda/size", "1000\n"),
            ("sys/block/cciss!c0d0/size", "1000\n"),
            ("sys/block/sr0/size", "0\n"),
            ("sys/block/loop0/size", "1000\n"),
            ("sys/block/zram0/size", "1000\n"),
        ]);
        let disks: Vec<&str> = values.keys().filter_map(|name| name.strip_prefix("disk.busy_us ")).collect();
        assert_eq!(disks, ["cciss/c0d0", "nvme0n1", "sda", "vda"]);
        assert_eq!((get(&values, "disk.reads sda"), get(&values, "disk.writes sda")), (10.0, 20.0));
        assert_eq!(get(&values, "disk.write_bytes sda"), 160.0 * 512.0);
        assert_eq!((get(&values, "disk.write_us sda"), get(&values, "disk.busy_us sda")), (6000.0, 30_000.0));
        assert_eq!((get(&values, "disk.queue_us sda"), get(&values, "disk.in_flight sda")), (40_000.0, 1.0));
        assert!(!values.contains_key("disk.flushes sda") && !values.contains_key("disk.flushes nvme0n1"));
        assert_eq!((get(&values, "disk.flushes vda"), get(&values, "disk.flush_us vda")), (7.0, 8000.0));
    }

    #[test]
    fn a_loop_device_with_the_data_is_reported() {
        let files = machine(&[
            (
                "proc/diskstats",
                "   7       0 loop0 1 1 1 1 1 1 1 1 1 1 1\n   7       1 loop1 1 1 1 1 1 1 1 1 1 1 1\n",
            ),
            ("proc/self/mountinfo", "1 0 7:0 / / rw - ext4 /dev/loop0 rw\n"),
            ("sys/dev/block/7:0/uevent", "DEVNAME=loop0\n"),
            ("sys/block/loop0/size", "1000\n"),
            ("sys/block/loop1/size", "1000\n"),
        ]);
        let values = read(&mut Machine::at(&Root::new(files.path()), Some(Path::new("/")), None));
        assert!(has(&values, "disk.reads loop0") && !has(&values, "disk.reads loop1"), "{values:?}");
    }

    #[test]
    fn memory_and_paging_are_reported_in_bytes() {
        let meminfo = "MemTotal: 100 kB\nMemFree: 50 kB\nMemAvailable: 70 kB\nBuffers: 1 kB\nCached: 20 kB\nSwapCached: 0 kB\n\
            Active: 1 kB\nInactive: 1 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\nDirty: 3 kB\nWriteback: 2 kB\nAnonPages: 8 kB\n\
            Mapped: 1 kB\nShmem: 1 kB\nSlab: 5 kB\nCommitted_AS: 1 kB\nVmallocTotal: 1 kB\nVmallocUsed: 0 kB\nVmallocChunk: 0 kB\n\
            PageTables: 1 kB\n";
        let old = "pgpgin 3\npgpgout 4\npswpin 1\npswpout 2\npgfault 9\npgmajfault 5\nallocstall 6\n";
        let new = old.replace(
            "allocstall 6\n",
            "allocstall_dma 1\nallocstall_normal 4\nallocstall_movable 2\noom_kill 1\n",
        );
        let values = read_once(&[("proc/meminfo", meminfo), ("proc/vmstat", old)]);
        assert_eq!(get(&values, "memory.available_bytes"), 70.0 * 1024.0);
        assert_eq!(get(&values, "memory.swap_used_bytes"), 6.0 * 1024.0);
        assert_eq!(get(&values, "memory.dirty_bytes"), 3.0 * 1024.0);
        assert_eq!(get(&values, "vm.pgpgout_bytes"), 4096.0);
        assert_eq!((get(&values, "vm.pswpout"), get(&values, "vm.pgmajfault")), (2.0, 5.0));
        assert_eq!(get(&values, "vm.allocstall"), 6.0);
        assert!(!values.contains_key("vm.oom_kill"));
        let values = read_once(&[("proc/vmstat", &new)]);
        assert_eq!((get(&values, "vm.allocstall"), get(&values, "vm.oom_kill")), (7.0, 1.0));
    }

    #[test]
    fn cpu_pressure_is_reported_without_the_line_full() {
        let some = "some avg10=1.50 avg60=0.00 avg300=0.00 total=681245\n";
        let full = "full avg10=1.50 avg60=0.00 avg300=0.00 total=391926\n";
        let values =
            read_once(&[("proc/pressure/cpu", some), ("proc/pressure/io", &format!("{some}{full}"))]);
        assert_eq!(values.len(), 3, "{values:?}");
        assert_eq!(get(&values, "psi.cpu_some_us"), 681_245.0);
        assert_eq!(get(&values, "psi.io_full_us"), 391_926.0);
    }

    #[test]
    fn used_interfaces_are_reported() {
        let values = read_once(&[(
            "proc/self/net/dev",
            "Inter-|   Receive |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n\
             \u{20}   lo:    0       0    0    0    0     0          0         0     0      0    0    0    0     0       0          0\n\
             \u{20} eth0: 1000      10    1    2    0     0          0         0  2000     20    3    4    0     0       0          0\n",
        )]);
        assert!(!has(&values, "net.rx_bytes lo"));
        assert_eq!((get(&values, "net.rx_bytes eth0"), get(&values, "net.tx_bytes eth0")), (1000.0, 2000.0));
        assert_eq!((get(&values, "net.rx_dropped eth0"), get(&values, "net.tx_errors eth0")), (2.0, 3.0));
    }

    #[test]
    fn sensors_are_distinguished() {
        let values = read_once(&[
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3400000\n"),
            ("sys/devices/system/cpu/cpu10/cpufreq/scaling_cur_freq", "<unknown>\n"),
            ("sys/class/hwmon/hwmon0/name", "coretemp\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "41500\n"),
            ("sys/class/hwmon/hwmon0/temp1_label", "Core 0\n"),
            ("sys/class/hwmon/hwmon1/name", "coretemp\n"),
            ("sys/class/hwmon/hwmon1/temp1_input", "50000\n"),
            ("sys/class/hwmon/hwmon1/temp1_label", "Core 0\n"),
            ("sys/class/hwmon/hwmon2/name", "nvme\n"),
            ("sys/class/hwmon/hwmon2/temp1_input", "30000\n"),
            ("sys/class/hwmon/hwmon2/fan1_input", "1200\n"),
            ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
            ("sys/class/thermal/thermal_zone0/temp", "41000\n"),
        ]);
        let expected = [
            ("cpu.frequency_hz cpu0", 3.4e9),
            ("temperature.celsius coretemp Core 0", 41.5),
            ("temperature.celsius coretemp Core 0 (hwmon1)", 50.0),
            ("temperature.celsius nvme temp1", 30.0),
        ];
        assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value)).into());
        let zones = read_once(&[
            ("sys/class/thermal/thermal_zone0/type", "acpitz\n"),
            ("sys/class/thermal/thermal_zone0/temp", "41000\n"),
        ]);
        assert_eq!(get(&zones, "temperature.celsius acpitz 0"), 41.0);
    }

    #[test]
    fn groups_with_a_limit_are_reported() {
        let v2 = read_once(&[
            ("proc/self/cgroup", "0::/system.slice/bench\n"),
            ("proc/self/mountinfo", "1 0 0:1 / /cg rw - cgroup2 cgroup rw\n"),
            ("cg/system.slice/bench/cpu.max", "200000 100000\n"),
            (
                "cg/system.slice/bench/cpu.stat",
                "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 1234\n",
            ),
            ("cg/system.slice/bench/memory.max", "max\n"),
            ("cg/system.slice/bench/memory.current", "1\n"),
            ("cg/system.slice/cpu.max", "max 100000\n"),
            ("cg/system.slice/cpu.stat", "usage_usec 9\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"),
            ("cg/system.slice/memory.max", "1048576\n"),
            ("cg/system.slice/memory.current", "4096\n"),
            ("cg/system.slice/memory.events", "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\n"),
            ("proc/77/cgroup", "0::/server\n"),
            ("cg/server/io.max", "254:0 rbps=104857600 wbps=max riops=max wiops=max\n"),
            (
                "cg/server/io.stat",
                "8:0 rbytes=1 wbytes=2\n254:0 rbytes=300 wbytes=4 rios=5 wios=6 dbytes=0 dios=0\n",
            ),
        ]);
        let expected = [
            ("cgroup.memory_bytes /cg/system.slice", 4096.0),
            ("cgroup.memory_limit_bytes /cg/system.slice", 1_048_576.0),
            ("cgroup.memory_limit_hits /cg/system.slice", 7.0),
            ("cgroup.oom_kills /cg/system.slice", 1.0),
            ("cgroup.periods /cg/system.slice/bench", 10.0),
            ("cgroup.read_bytes /cg/server", 300.0),
            ("cgroup.throttled_periods /cg/system.slice/bench", 4.0),
            ("cgroup.throttled_us /cg/system.slice/bench", 1234.0),
        ];
        assert_eq!(v2, expected.map(|(name, value)| (name.to_owned(), value)).into());

        let v1 = read_once(&[
            ("proc/self/cgroup", "3:memory:/a\n2:cpu,cpuacct:/a\n"),
            ("proc/77/cgroup", "4:blkio:/a/server\n3:memory:/a/server\n2:cpu,cpuacct:/a\n"),
            ("cg/blkio/a/server/blkio.throttle.read_bps_device", "254:0 104857600\n"),
            (
                "cg/blkio/a/server/blkio.throttle.io_service_bytes",
                "8:0 Read 1\n254:0 Read 700\n254:0 Write 2\nTotal 702\n",
            ),
            ("cg/blkio/a/blkio.throttle.read_bps_device", ""),
            ("cg/blkio/a/blkio.throttle.io_service_bytes", "254:0 Read 900\n"),
            ("cg/memory/a/server/memory.limit_in_bytes", "4096\n"),
            ("cg/memory/a/server/memory.failcnt", "3\n"),
            (
                "proc/self/mountinfo",
                "1 0 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n2 0 0:2 / /cg/memory rw - cgroup cgroup rw,memory\n3 0 0:3 / /cg/blkio rw - cgroup cgroup rw,blkio\n",
            ),
            ("cg/cpu/a/cpu.cfs_quota_us", "50000\n"),
            ("cg/cpu/a/cpu.cfs_period_us", "100000\n"),
            ("cg/cpu/a/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 1234000\n"),
            ("cg/cpu/cpu.cfs_quota_us", "-1\n"),
            ("cg/cpu/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"),
            ("cg/memory/a/memory.limit_in_bytes", "1048576\n"),
            ("cg/memory/a/memory.usage_in_bytes", "4096\n"),
            ("cg/memory/a/memory.failcnt", "7\n"),
            ("cg/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
            ("cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let expected = [
            ("cgroup.memory_bytes /cg/memory/a", 4096.0),
            ("cgroup.memory_limit_bytes /cg/memory/a", 1_048_576.0),
            ("cgroup.memory_limit_bytes /cg/memory/a/server", 4096.0),
            ("cgroup.memory_limit_hits /cg/memory/a", 7.0),
            ("cgroup.memory_limit_hits /cg/memory/a/server", 3.0),
            ("cgroup.oom_kills /cg/memory/a", 1.0),
            ("cgroup.periods /cg/cpu/a", 10.0),
            ("cgroup.read_bytes /cg/blkio/a/server", 700.0),
            ("cgroup.throttled_periods /cg/cpu/a", 4.0),
            ("cgroup.throttled_us /cg/cpu/a", 1234.0),
        ];
        assert_eq!(v1, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn unreadable_files_are_omitted_and_no_file_is_an_error() {
        let values = read_once(&[("proc/stat", "cpu  1 2 x\n"), ("proc/loadavg", "0.50 1 1 1/2 3\n")]);
        assert!(!has(&values, "cpu.") && has(&values, "sched.load_1m"), "{values:?}");
        let empty = Machine::at(&Root::new(machine(&[]).path()), None, None).read(&mut Reading::default());
        assert!(empty.unwrap_err().to_string().contains("/proc/stat"));
    }

    #[test]
    fn counters_of_this_machine_increase_and_add_up() {
        let mut machine = Machine::new(Some(Path::new(".")), None);
        let [mut first, mut second] = [Reading::default(), Reading::default()];
        machine.read(&mut first).unwrap();
        machine.read(&mut second).unwrap();
        for before in first.values() {
            let same = |now: &&Value| now.metric == before.metric && now.label == before.label;
            let Some(now) = second.values().iter().find(same) else { continue };
            assert!(
                before.metric.kind == Kind::Gauge || now.value >= before.value,
                "{before:?}, then {now:?}"
            );
        }
        let user = |is_one: fn(&str) -> bool| -> (f64, usize) {
            let is_user = |value: &&Value| {
                value.metric.name == "cpu.user_us" && value.label.as_deref().is_some_and(is_one)
            };
            let values = first.values().iter().filter(is_user);
            values.fold((0.0, 0), |(sum, count), value| (sum + value.value, count + 1))
        };
        let (all, _) = user(|name| name == "all");
        let (sum, cpus) = user(|name| name != "all");
        let tick_us = 1e6 / rustix::param::clock_ticks_per_second() as f64;
        assert!(cpus > 0 && (all - sum).abs() <= (cpus + 1) as f64 * tick_us, "{all}, {sum} of {cpus}");
        let is_total = |value: &&Value| value.metric.name == "memory.total_bytes";
        assert!(first.values().iter().find(is_total).unwrap().value > 16e6);
    }
}
