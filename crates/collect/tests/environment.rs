//! Machines described by files, and the one the test runs on.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use collect::Host;
use model::environment::{BlockDevice, Cpu, Environment, KernelConfig, KernelFacts, Mount, NumaNode};
use model::record::Log;

/// A root directory with these files.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn map(facts: &[(&str, &str)]) -> BTreeMap<String, String> {
    facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn environment(files: &[(&str, &str)]) -> Environment {
    Host::read_from(machine(files).path()).environment(Some(Path::new("/")))
}

#[test]
fn all_facts_of_a_virtual_server_are_reported() {
    let found = environment(&[
        ("proc/sys/kernel/hostname", "bench-1\n"),
        ("proc/sys/kernel/ostype", "Linux\n"),
        ("proc/sys/kernel/osrelease", "6.1.0-37-amd64\n"),
        ("proc/sys/kernel/arch", "x86_64\n"),
        ("proc/version", "Linux version 6.1.0-37-amd64 (gcc 12)\n"),
        ("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 \\\"bookworm\\\"\"\n"),
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7B13\nflags\t\t: fpu hypervisor lm\n",
        ),
        ("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq", "800000\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "3400000\n"),
        ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave\n"),
        ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
        ("sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0,2\n"),
        ("sys/devices/system/cpu/cpu1/topology/physical_package_id", "0\n"),
        ("sys/devices/system/cpu/cpu1/topology/core_cpus_list", "1,3\n"),
        ("sys/devices/system/cpu/cpu2/topology/core_cpus_list", "0,2\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/level", "3\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/type", "Unified\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/size", "32768K\n"),
        ("sys/devices/system/cpu/cpu0/microcode/version", "0xa0011\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("sys/devices/system/cpu/smt/control", "on\n"),
        ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/devices/system/node/node0/cpulist", "0-3\n"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  2048 kB\nNode 0 MemFree: 1 kB\n"),
        ("sys/devices/system/node/node10/cpulist", "\n"),
        (
            "proc/meminfo",
            "MemTotal:       24682416 kB\nMemFree: 1 kB\nMemAvailable: 7 kB\nSwapTotal:   4 kB\nSwapFree: 1 kB\n",
        ),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "12\n"),
        (
            "proc/self/limits",
            "Limit   Soft Limit  Hard Limit  Units\nMax open files   1024   4096   files  \n",
        ),
        ("proc/self/cgroup", "0::/bench/job\n"),
        ("sys/fs/cgroup/bench/job/memory.max", "max\n"),
        ("sys/fs/cgroup/bench/memory.max", "1048576\n"),
        ("sys/fs/cgroup/bench/job/cpu.max", "400000 100000\n"),
        ("sys/fs/cgroup/bench/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/bench/job/cpuset.cpus.effective", "0-1\n"),
        ("sys/fs/cgroup/bench/job/pids.max", "max\n"),
        ("sys/dev/block/254:1/uevent", "MAJOR=254\nMINOR=1\nDEVNAME=vda1\nDEVTYPE=partition\n"),
        ("sys/block/vda/vda1/partition", "1\n"),
        ("sys/block/vda/size", "2048\n"),
        ("sys/block/vda/queue/scheduler", "none [mq-deadline] kyber\n"),
        ("sys/block/vda/queue/rotational", "0\n"),
        ("sys/block/vda/queue/write_cache", "write back\n"),
        ("sys/block/vda/device/model", "Fast SSD        \n"),
        ("sys/block/sdb/size", "1\n"),
        ("sys/block/loop0/size", "0\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never\n"),
        ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
        ("sys/class/dmi/id/product_name", "Standard PC\n"),
        (".dockerenv", ""),
        (
            "proc/self/mountinfo",
            "27 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw,discard\n30 27 0:25 / /sys/fs/cgroup rw - cgroup2 none rw\n",
        ),
        ("proc/loadavg", "1.07 0.50 0.25 1/234 5678\n"),
        ("proc/sys/vm/swappiness", "1\n"),
        ("proc/sys/vm/dirty_ratio", "20\n"),
        ("proc/sys/vm/stat_refresh", "0\n"),
        ("proc/sys/kernel/random/poolsize", "256\n"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("proc/sys/net/ipv4/tcp_fastopen_key", "c0ffee00-00000001\n"),
        ("proc/sys/net/ipv4/ip_forward", "1\n"),
        ("proc/sys/fs/binfmt_misc/status", "enabled\n"),
        ("proc/sys/kernel/tainted", "4096\n"),
        ("boot/config-6.1.0-37-amd64", "CONFIG_HZ=250\n# CONFIG_HZ_1000 is not set\n"),
        (
            "proc/modules",
            "zfs 16384 2 - Live 0x0000000000000000 (POE)\next4 1011712 1 mbcache,jbd2, Live 0x0000000000000000\n",
        ),
        ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
        ("proc/sys/net/core/somaxconn", "4096\n"),
    ]);
    let text = |value: &str| Some(value.to_owned());
    let sysctl = [
        ("kernel.arch", "x86_64"),
        ("kernel.osrelease", "6.1.0-37-amd64"),
        ("kernel.ostype", "Linux"),
        ("kernel.random.poolsize", "256"),
        ("kernel.sched_autogroup_enabled", "1"),
        ("kernel.tainted", "4096"),
        ("net.core.somaxconn", "4096"),
        ("net.ipv4.tcp_fastopen_key", "(masked)"),
        ("net.ipv4.tcp_rmem", "4096\t131072\t6291456"),
        ("vm.dirty_ratio", "20"),
        ("vm.swappiness", "1"),
    ];
    let mount = |point: &str, source: &str, filesystem: &str, options: &str| Mount {
        point: point.to_owned(),
        source: source.to_owned(),
        filesystem: filesystem.to_owned(),
        options: options.to_owned(),
    };
    assert_eq!(
        found,
        Environment {
            hostname: text("bench-1"),
            kernel: text("Linux 6.1.0-37-amd64"),
            kernel_version: text("Linux version 6.1.0-37-amd64 (gcc 12)"),
            kernel_command_line: text("BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet"),
            kernel_facts: KernelFacts {
                config: Some(KernelConfig {
                    source: "/boot/config-6.1.0-37-amd64".to_owned(),
                    sha256: "f0fd2c97fd5ed3f92bdf716b84b72b145db4de610c9c9ee4d0cb902e544e51f3".to_owned(),
                }),
                modules: Some(map(&[("ext4", ""), ("zfs", "POE")])),
                tainted: Some(4096),
                scheduler: text("CFS"),
                preemption: None,
                hz: Some(250),
            },
            os: text("Debian GNU/Linux 12 \"bookworm\""),
            libc: found.libc.clone(),
            architecture: text("x86_64"),
            cpu_model: text("AMD EPYC 7B13"),
            cpus: found.cpus,
            cpu_governor: text("performance,powersave"),
            cpu: Cpu {
                sockets: Some(1),
                cores: Some(2),
                threads: Some(4),
                smt: text("on"),
                turbo: Some(false),
                frequency_driver: text("intel_pstate"),
                frequency_min_khz: Some(800_000),
                frequency_max_khz: Some(3_400_000),
                microcode: text("0xa0011"),
                caches: map(&[("L1d", "32K"), ("L3", "32768K")]),
                vulnerabilities: map(&[("meltdown", "Mitigation: PTI")]),
            },
            numa_nodes: vec![
                NumaNode { id: 0, cpus: text("0-3"), memory_bytes: Some(2048 * 1024) },
                NumaNode { id: 10, cpus: None, memory_bytes: None },
            ],
            clocksource: text("tsc"),
            memory_bytes: Some(24_682_416 * 1024),
            memory_available_bytes: Some(7 * 1024),
            swap_bytes: Some(4 * 1024),
            swap_used_bytes: Some(3 * 1024),
            transparent_hugepages: text("madvise"),
            transparent_hugepages_defrag: text("madvise"),
            huge_pages: [("2048kB".to_owned(), 12)].into(),
            virtualization: text("virtual machine (QEMU Standard PC), docker container"),
            virtual_machine: None,
            cgroup: map(&[
                ("version", "v2"),
                ("path", "/bench/job"),
                ("cpu.max", "150000 100000"),
                ("cpuset.cpus", "0-1"),
                ("memory.max", "1048576"),
                ("pids.max", "max"),
            ]),
            limits: map(&[("Max open files", "1024 files (hard 4096)")]),
            data_filesystem: text("ext4"),
            data_mount_options: text("rw,relatime,discard"),
            data_devices: vec![BlockDevice {
                name: "vda".to_owned(),
                facts: map(&[
                    ("model", "Fast SSD"),
                    ("rotational", "0"),
                    ("scheduler", "mq-deadline"),
                    ("size_bytes", "1048576"),
                    ("write_cache", "write back"),
                ]),
            }],
            other_devices: vec!["sdb".to_owned()],
            mounts: vec![
                mount("/", "/dev/vda1", "ext4", "rw,relatime,discard"),
                mount("/sys/fs/cgroup", "none", "cgroup2", "rw"),
            ],
            load_average_1m_centi: Some(107),
            sysctl: map(&sysctl),
            server: Default::default(),
        }
    );
}

#[test]
fn a_volume_is_reported_with_its_disks() {
    let found = environment(&[
        ("proc/self/mountinfo", "27 1 0:30 / / rw - btrfs /dev/dm-0 rw\n"),
        ("sys/block/dm-0/queue/rotational", "0\n"),
        ("sys/block/dm-0/slaves/sda2/partition", ""),
        ("sys/block/dm-0/slaves/nvme0n1/size", ""),
        ("sys/block/sda/sda2/partition", ""),
        ("sys/block/sda/queue/rotational", "1\n"),
        ("sys/block/nvme0n1/queue/rotational", "0\n"),
    ]);
    let names: Vec<&str> = found.data_devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["dm-0", "nvme0n1", "sda"]);
    assert_eq!(found.data_devices[2].facts, map(&[("rotational", "1")]));
}

#[test]
fn cgroup_v1_limits_are_reported_as_those_of_v2() {
    let found = environment(&[
        ("proc/self/cgroup", "3:cpu,cpuacct:/job\n2:memory:/box/job\n1:cpuset:/\n0::/\n"),
        (
            "proc/self/mountinfo",
            "31 1 0:28 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n32 1 0:29 /box /cg/memory rw - cgroup cgroup rw,memory\n\
             33 1 0:30 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n34 1 0:31 / /cg/unified rw - cgroup2 none rw\n",
        ),
        ("cg/cpu/job/cpu.cfs_quota_us", "50000\n"),
        ("cg/cpu/job/cpu.cfs_period_us", "100000\n"),
        ("cg/cpu/cpu.cfs_quota_us", "-1\n"),
        ("cg/memory/job/memory.limit_in_bytes", "9223372036854771712\n"),
        ("cg/cpuset/cpuset.cpus", "0-1\n"),
    ]);
    assert_eq!(
        found.cgroup,
        map(&[
            ("version", "hybrid"),
            ("path", "/box/job"),
            ("cpu.max", "50000 100000"),
            ("memory.max", "max"),
            ("cpuset.cpus", "0-1"),
        ])
    );
}

#[test]
fn secrets_in_the_kernel_configuration_and_log_are_masked() {
    let long: String = (0..300).map(|n| format!("6,{n},{n}000000,-;message {n}\n SUBSYSTEM=x\n")).collect();
    let root = machine(&[
        ("proc/sys/kernel/osrelease", "6.1.0\n"),
        ("boot/config-6.1.0", "CONFIG_HZ=250\nCONFIG_CMDLINE=\"quiet luks.password=hunter2 ro\"\n"),
        ("dev/kmsg", &(long + "5,300,5140900,-;Kernel command line: quiet auth.token=hunter2\n")),
        ("proc/cmdline", "quiet auth.token=hunter2 -- --password hunter2"),
    ]);
    let host = Host::read_from(root.path());
    let logs = host.logs();
    let names: Vec<&str> = logs.iter().map(|log| log.name.as_str()).collect();
    assert_eq!(names, ["kernel-config", "dmesg"]);
    assert_eq!(logs[0].text, "CONFIG_HZ=250\nCONFIG_CMDLINE=\"quiet luks.password=(masked) ro\"\n");
    let lines: Vec<&str> = logs[1].text.lines().collect();
    assert_eq!(lines.len(), 200);
    assert_eq!(lines[198], "[  299.000000] message 299");
    assert_eq!(lines[199], "[    5.140900] Kernel command line: quiet auth.token=(masked)");
    let command_line = host.environment(None).kernel_command_line;
    assert_eq!(command_line.as_deref(), Some("quiet auth.token=(masked) -- --password (masked)"));
}

#[test]
fn a_compressed_configuration_is_read() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"CONFIG_HZ=1000\n").unwrap();
    let root = machine(&[("proc/version", "")]);
    fs::write(root.path().join("proc/config.gz"), packed.finish().unwrap()).unwrap();
    let text = "CONFIG_HZ=1000\n".to_owned();
    assert_eq!(Host::read_from(root.path()).logs(), [Log { name: "kernel-config".to_owned(), text }]);
    fs::write(root.path().join("proc/config.gz"), "no gzip").unwrap();
    assert_eq!(Host::read_from(root.path()).logs(), []);
}

#[test]
fn a_configuration_is_read_from_the_first_place_that_has_one() {
    let release = ("proc/sys/kernel/osrelease", "6.12.9\n");
    let source = |files: &[(&str, &str)]| environment(files).kernel_facts.config.map(|config| config.source);
    let built = ("lib/modules/6.12.9/build/.config", "CONFIG_HZ=100\n");
    let background = ("lib/modules/6.12.9/config", "CONFIG_HZ=300\n");
    let boot = ("boot/config-6.12.9", "CONFIG_HZ=250\n");
    let another = ("boot/config-6.12.8", "CONFIG_HZ=1000\n");
    assert_eq!(source(&[release, built, background, boot]).as_deref(), Some("/boot/config-6.12.9"));
    assert_eq!(source(&[release, built, background]).as_deref(), Some("/lib/modules/6.12.9/config"));
    assert_eq!(source(&[release, built]).as_deref(), Some("/lib/modules/6.12.9/build/.config"));
    assert_eq!(source(&[release, another]), None);
}

#[test]
fn the_scheduler_and_preemption_model_are_detected() {
    let scheduler = |files: &[(&str, &str)]| environment(files).kernel_facts.scheduler;
    for (release, expected) in [
        ("6.6.0", Some("EEVDF")),
        ("6.12.48+deb13-cloud-amd64", Some("EEVDF")),
        ("7.0.0-rc1", Some("EEVDF")),
        ("6.5.13", Some("CFS")),
        ("5.14.0-503.el9", Some("CFS")),
        ("2.6.18", None),
        ("custom", None),
    ] {
        assert_eq!(scheduler(&[("proc/sys/kernel/osrelease", release)]).as_deref(), expected, "{release}");
    }
    let taken_over = [
        ("proc/sys/kernel/osrelease", "6.12.1"),
        ("sys/kernel/sched_ext/state", "enabled\n"),
        ("sys/kernel/sched_ext/root/ops", "lavd\n"),
    ];
    assert_eq!(scheduler(&taken_over).as_deref(), Some("sched_ext (lavd)"));
    let idle = [("proc/sys/kernel/osrelease", "6.12.1"), ("sys/kernel/sched_ext/state", "disabled\n")];
    assert_eq!(scheduler(&idle).as_deref(), Some("EEVDF"));

    let preemption = |files: &[(&str, &str)]| environment(files).kernel_facts.preemption;
    let dynamic = ("proc/version", "Linux version 6.12.1 (gcc) #1 SMP PREEMPT_DYNAMIC Debian\n");
    let config = ("boot/config-1", "# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_VOLUNTARY=y\n");
    let release = ("proc/sys/kernel/osrelease", "1\n");
    let command_line = ("proc/cmdline", "quiet preempt=none\n");
    let in_force = ("sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n");
    let real_time = ("proc/version", "Linux version 6.12.1 (gcc) #1 SMP PREEMPT_RT Debian\n");
    let fixed = ("proc/version", "Linux version 6.1.1 (gcc) #1 SMP PREEMPT Debian\n");
    let plain = ("proc/version", "Linux version 6.1.1 (gcc) #1 SMP Debian\n");
    assert_eq!(preemption(&[dynamic, config, release, command_line, in_force]).as_deref(), Some("full"));
    assert_eq!(preemption(&[dynamic, config, release, command_line]).as_deref(), Some("none"));
    assert_eq!(preemption(&[dynamic, config, release]).as_deref(), Some("voluntary"));
    assert_eq!(preemption(&[dynamic]), None);
    assert_eq!(preemption(&[real_time, config, release]).as_deref(), Some("rt"));
    assert_eq!(preemption(&[fixed]).as_deref(), Some("full"));
    assert_eq!(preemption(&[plain, config, release, command_line]).as_deref(), Some("voluntary"));
    assert_eq!(preemption(&[plain]), None);
}

/// Facts that are not read from files under the root.
fn only_facts_of_this_process(found: &Environment) -> Environment {
    let Environment { cpus, architecture, libc, .. } = found.clone();
    Environment { cpus, architecture, libc, ..Environment::default() }
}

#[test]
fn missing_facts_are_none_and_never_zero() {
    let found = environment(&[]);
    assert_eq!(found, only_facts_of_this_process(&found));
}

#[test]
fn malformed_facts_are_none() {
    let nonsense = "\u{fffd}[: kB - . \\ \" =\n";
    let found = environment(&[
        ("proc/meminfo", "MemTotal: lots kB\nSwapTotal: 99999999999999999999 kB\n"),
        ("proc/cpuinfo", nonsense),
        ("proc/loadavg", "high 1\n"),
        ("proc/self/mountinfo", nonsense),
        ("proc/self/limits", nonsense),
        ("proc/self/cgroup", nonsense),
        ("sys/devices/system/cpu/online", nonsense),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "maybe\n"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", nonsense),
        ("sys/block/vda/size", nonsense),
        ("etc/os-release", "PRETTY_NAME=\"\"\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", nonsense),
        ("sys/kernel/debug/sched/preempt", nonsense),
        ("proc/sys/kernel/hostname", "\n"),
    ]);
    assert_eq!(found, only_facts_of_this_process(&found));
}

#[test]
fn other_architectures_and_containers_are_detected() {
    let arm =
        environment(&[("proc/cpuinfo", "processor\t: 0\n"), ("proc/device-tree/model", "Raspberry Pi 5\0")]);
    assert_eq!(arm.cpu_model.as_deref(), Some("Raspberry Pi 5"));
    let pod = environment(&[("proc/1/cgroup", "0::/kubepods.slice/kubepods-besteffort.slice/x\n")]);
    assert_eq!(pod.virtualization.as_deref(), Some("kubernetes container"));
    let xen = environment(&[("sys/hypervisor/type", "xen\n")]);
    assert_eq!(xen.virtualization.as_deref(), Some("virtual machine (xen)"));
}

#[test]
fn this_machine_has_a_kernel_memory_and_a_filesystem() {
    let directory = tempfile::tempdir().unwrap();
    let host = Host::read();
    let found = host.environment(Some(&directory.path().join("not/yet/there")));
    assert!(found.kernel.unwrap().starts_with("Linux "));
    assert!(found.memory_bytes.unwrap() > 0);
    assert!(found.cpus.unwrap() > 0);
    assert!(found.data_filesystem.is_some() && found.data_mount_options.is_some());
    assert!(found.sysctl.contains_key("vm.swappiness"), "{:?}", found.sysctl);
    assert!(found.mounts.iter().any(|mount| mount.point == "/"), "{:?}", found.mounts);
    assert!(found.limits.contains_key("Max open files"), "{:?}", found.limits);
    assert!(found.memory_available_bytes.unwrap() > 0);
}
