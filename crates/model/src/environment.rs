//! Where a trial ran: the machine, its kernel, and what the server says of its build and its tables.
//!
//! Missing is none, never zero; a fact of a map that could not be had is not in it.

use std::collections::BTreeMap;

use serde::Serialize;

/// The machine as it was: what a reader must know to trust or repeat a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel name and release, such as `Linux 6.1.0-37-amd64`.
    pub kernel: Option<String>,
    /// The kernel's full version line (`/proc/version`).
    pub kernel_version: Option<String>,
    /// What the kernel was booted with (`/proc/cmdline`), what looks like a secret masked.
    pub kernel_command_line: Option<String>,
    /// What else is known of the kernel.
    pub kernel_facts: KernelFacts,
    /// Distribution, such as `Debian GNU/Linux 12 (bookworm)`.
    pub os: Option<String>,
    /// The C library that pgdyno uses, such as `glibc 2.36`.
    pub libc: Option<String>,
    /// Processor architecture, such as `x86_64`.
    pub architecture: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Logical processors that pgdyno may use.
    pub cpus: Option<u32>,
    /// Frequency governor; those of all processors by commas, where they differ.
    pub cpu_governor: Option<String>,
    /// What else is known of the processors.
    pub cpu: Cpu,
    /// The nodes of memory and processors; empty where the kernel does not tell.
    pub numa_nodes: Vec<NumaNode>,
    /// What the kernel takes the time from, such as `tsc`.
    pub clocksource: Option<String>,
    /// Main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Main memory that was to be had just before the trial, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Swap in bytes; 0 means that there is none.
    pub swap_bytes: Option<u64>,
    /// Swap in use just before the trial, in bytes.
    pub swap_used_bytes: Option<u64>,
    /// Transparent huge pages: the mode in force.
    pub transparent_hugepages: Option<String>,
    /// Transparent huge pages: how hard the kernel tries to make room for one.
    pub transparent_hugepages_defrag: Option<String>,
    /// Reserved huge pages: their number by their size, such as `2048kB`.
    pub huge_pages: BTreeMap<String, u64>,
    /// Hypervisor or container, where one shows itself.
    pub virtualization: Option<String>,
    /// The virtual machine that pgdyno started for the trial; none of a trial on the machine itself.
    pub virtual_machine: Option<VirtualMachine>,
    /// Limits in force on pgdyno's control group, in the words of cgroup v2 (`cpu.max`, `memory.max`, …), with the
    /// `version` and the `path` of the group.
    pub cgroup: BTreeMap<String, String>,
    /// Resource limits of pgdyno, which its servers inherit, by the kernel's names (`Max open files`).
    pub limits: BTreeMap<String, String>,
    /// Filesystem type of the data directory.
    pub data_filesystem: Option<String>,
    /// Mount options of the data directory's filesystem.
    pub data_mount_options: Option<String>,
    /// The block device under the data directory, and those under it in turn.
    pub data_devices: Vec<BlockDevice>,
    /// Names of the machine's other block devices.
    pub other_devices: Vec<String>,
    /// Every mounted filesystem.
    pub mounts: Vec<Mount>,
    /// Load average over one minute just before the trial, in hundredths.
    pub load_average_1m_centi: Option<u32>,
    /// Kernel parameters by name: `fs.`, `kernel.`, `net.core.`, `net.ipv4.tcp`, `vm.`.
    pub sysctl: BTreeMap<String, String>,
    /// What the server says of itself besides its settings.
    pub server: ServerFacts,
}

/// What the running kernel is besides its release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KernelFacts {
    /// Its configuration, whose text is the bundle's log `kernel-config`.
    pub config: Option<KernelConfig>,
    /// Loaded modules by name, with the letters by which each taints the kernel (`OE`, mostly none); none where it
    /// can't load any.
    pub modules: Option<BTreeMap<String, String>>,
    /// Why it is tainted, as bits (`/proc/sys/kernel/tainted`); 0 means that it is not.
    pub tainted: Option<u64>,
    /// What shares out the processors: `EEVDF` from Linux 6.6 on, `CFS` before, `sched_ext (NAME)` where a program
    /// does.
    pub scheduler: Option<String>,
    /// When a task in the kernel gives way: `none`, `voluntary`, `lazy`, `full`, `rt`.
    pub preemption: Option<String>,
    /// Ticks a second (`CONFIG_HZ`).
    pub hz: Option<u32>,
}

/// The configuration that a kernel was built with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KernelConfig {
    /// Where it was read, such as `/boot/config-6.1.0-37-amd64`.
    pub source: String,
    /// SHA-256 of its text.
    pub sha256: String,
}

/// The virtual machine that pgdyno booted a kernel in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VirtualMachine {
    /// How its processors run: `kvm`, `tcg` or `icount`.
    pub acceleration: String,
    /// What it runs in, such as `QEMU 7.2.22`.
    pub emulator: String,
    /// Its processors.
    pub cpus: u32,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// What the data are on, such as `memory`.
    pub storage: String,
    /// The processor that it shows to its kernel.
    pub cpu_model: String,
    /// Where its kernel is from: a package with its version, or a path.
    pub kernel_source: String,
    /// A hash of its kernel.
    pub kernel_identity: String,
    /// Release of the host's kernel.
    pub host_kernel: Option<String>,
    /// Model of the host's processor.
    pub host_cpu: Option<String>,
    /// How long after its start its first process ran, in microseconds of real time.
    pub up_after_us: Option<u64>,
    /// How long after its start PostgreSQL took connections in it, in microseconds of real time.
    pub ready_after_us: Option<u64>,
    /// The emulator's command line.
    pub command_line: Vec<String>,
}

/// The processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Packages.
    pub sockets: Option<u32>,
    /// Physical cores.
    pub cores: Option<u32>,
    /// Logical processors that are online.
    pub threads: Option<u32>,
    /// State of simultaneous multithreading: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub smt: Option<String>,
    /// Whether the clock may go above its nominal rate.
    pub turbo: Option<bool>,
    /// Driver that sets the frequency.
    pub frequency_driver: Option<String>,
    /// Lowest frequency that the governor may choose, in kHz.
    pub frequency_min_khz: Option<u64>,
    /// Highest frequency that the governor may choose, in kHz.
    pub frequency_max_khz: Option<u64>,
    /// Revision of the microcode.
    pub microcode: Option<String>,
    /// Sizes of the first processor's caches, by `L1d`, `L1i`, `L2`, `L3`.
    pub caches: BTreeMap<String, String>,
    /// What the kernel does about each vulnerability of the processor.
    pub vulnerabilities: BTreeMap<String, String>,
}

/// A node of memory and processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NumaNode {
    /// Its number.
    pub id: u32,
    /// Its processors, such as `0-15,32-47`.
    pub cpus: Option<String>,
    /// Its memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// A block device with what changes its speed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockDevice {
    /// Its name, such as `nvme0n1`.
    pub name: String,
    /// `model`, `size_bytes`, and of its queue `scheduler`, `rotational`, `nr_requests`, `read_ahead_kb`,
    /// `write_cache`, `wbt_lat_usec`.
    pub facts: BTreeMap<String, String>,
}

/// A mounted filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Where it is mounted.
    pub point: String,
    /// What is mounted, such as `/dev/sda1`.
    pub source: String,
    /// Its type, such as `ext4`.
    pub filesystem: String,
    /// Options of the mount and of the filesystem, by commas.
    pub options: String,
}

/// What a server says of itself besides its version and its settings; none where it was not asked, or can't say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerFacts {
    /// How it was built: the view `pg_config`.
    pub pg_config: Option<BTreeMap<String, String>>,
    /// Extensions in the tested database, with their versions.
    pub extensions: Option<BTreeMap<String, String>>,
    /// Extensions that could be created, with their default versions.
    pub available_extensions: Option<BTreeMap<String, String>>,
    /// Methods of authentication that its `pg_hba.conf` uses, by name; from PostgreSQL 10 on.
    pub authentication: Option<Vec<String>>,
    /// The largest tables of the tested database as it was filled, at most [`RELATIONS`], largest first.
    pub relations: Option<Vec<Relation>>,
}

/// How many tables [`ServerFacts::relations`] has at most.
pub const RELATIONS: u32 = 50;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Relation {
    /// Its name, with its schema where that is not on the search path.
    pub name: String,
    /// Its size in bytes, with its indexes and TOAST.
    pub bytes: u64,
    /// Number of rows as the planner takes it; none where it was never analysed.
    pub rows_estimate: Option<u64>,
}

impl Environment {
    /// Every fact that should not differ between trials that are compared, as `name` or `group.name`; not the host
    /// name, the load, and what was free just before a trial.
    pub fn flatten(&self) -> BTreeMap<String, String> {
        let mut flat = Flat::default();
        flat.put("kernel", &self.kernel);
        flat.put("kernel_version", &self.kernel_version);
        flat.put("kernel_command_line", &self.kernel_command_line);
        self.kernel_facts.flatten(&mut flat);
        flat.put("os", &self.os);
        flat.put("libc", &self.libc);
        flat.put("architecture", &self.architecture);
        flat.put("cpu_model", &self.cpu_model);
        flat.put("cpus", &self.cpus);
        flat.put("cpu_governor", &self.cpu_governor);
        self.cpu.flatten(&mut flat);
        for node in &self.numa_nodes {
            flat.put(&format!("numa_node.{}.cpus", node.id), &node.cpus);
            flat.put(&format!("numa_node.{}.memory_bytes", node.id), &node.memory_bytes);
        }
        flat.put("clocksource", &self.clocksource);
        flat.put("memory_bytes", &self.memory_bytes);
        flat.put("swap_bytes", &self.swap_bytes);
        flat.put("transparent_hugepages", &self.transparent_hugepages);
        flat.put("transparent_hugepages_defrag", &self.transparent_hugepages_defrag);
        flat.group("huge_pages", &self.huge_pages);
        flat.put("virtualization", &self.virtualization);
        if let Some(machine) = &self.virtual_machine {
            machine.flatten(&mut flat);
        }
        flat.group("cgroup", &self.cgroup);
        flat.group("limits", &self.limits);
        flat.put("data_filesystem", &self.data_filesystem);
        flat.put("data_mount_options", &self.data_mount_options);
        for device in &self.data_devices {
            flat.group(&format!("data_device.{}", device.name), &device.facts);
        }
        if !self.other_devices.is_empty() {
            flat.put("other_devices", &Some(self.other_devices.join(" ")));
        }
        for Mount { point, source, filesystem, options } in &self.mounts {
            flat.put(&format!("mount.{point}"), &Some(format!("{source} {filesystem} {options}")));
        }
        flat.group("sysctl", &self.sysctl);
        self.server.flatten(&mut flat);
        flat.0
    }
}

impl KernelFacts {
    fn flatten(&self, flat: &mut Flat) {
        flat.put("kernel.config", &self.config.as_ref().map(|config| &config.sha256));
        flat.put("kernel.modules", &self.modules_in_words());
        flat.put("kernel.tainted", &self.tainted);
        flat.put("kernel.scheduler", &self.scheduler);
        flat.put("kernel.preemption", &self.preemption);
        flat.put("kernel.hz", &self.hz);
    }

    /// The modules by spaces, those that taint with their letters, as in `ext4 zfs(POE)`.
    pub fn modules_in_words(&self) -> Option<String> {
        let word = |(name, taint): (&String, &String)| match taint.as_str() {
            "" => name.clone(),
            letters => format!("{name}({letters})"),
        };
        Some(self.modules.as_ref()?.iter().map(word).collect::<Vec<_>>().join(" "))
    }
}

impl VirtualMachine {
    /// The emulator's command line follows from the rest.
    fn flatten(&self, flat: &mut Flat) {
        for (name, value) in [
            ("acceleration", &self.acceleration),
            ("emulator", &self.emulator),
            ("storage", &self.storage),
            ("cpu_model", &self.cpu_model),
            ("kernel_source", &self.kernel_source),
            ("kernel_identity", &self.kernel_identity),
        ] {
            flat.put(&format!("virtual_machine.{name}"), &Some(value));
        }
        flat.put("virtual_machine.cpus", &Some(self.cpus));
        flat.put("virtual_machine.memory_bytes", &Some(self.memory_bytes));
        flat.put("virtual_machine.host_kernel", &self.host_kernel);
        flat.put("virtual_machine.host_cpu", &self.host_cpu);
    }
}

impl Cpu {
    fn flatten(&self, flat: &mut Flat) {
        flat.put("cpu.sockets", &self.sockets);
        flat.put("cpu.cores", &self.cores);
        flat.put("cpu.threads", &self.threads);
        flat.put("cpu.smt", &self.smt);
        flat.put("cpu.turbo", &self.turbo);
        flat.put("cpu.frequency_driver", &self.frequency_driver);
        flat.put("cpu.frequency_min_khz", &self.frequency_min_khz);
        flat.put("cpu.frequency_max_khz", &self.frequency_max_khz);
        flat.put("cpu.microcode", &self.microcode);
        flat.group("cpu.caches", &self.caches);
        flat.group("cpu.vulnerabilities", &self.vulnerabilities);
    }
}

impl ServerFacts {
    fn flatten(&self, flat: &mut Flat) {
        let Self { pg_config, extensions, available_extensions, authentication, relations } = self;
        for (group, facts) in [
            ("pg_config", pg_config),
            ("extensions", extensions),
            ("available_extensions", available_extensions),
        ] {
            flat.group(group, facts.iter().flatten());
        }
        flat.put("authentication", &authentication.as_ref().map(|methods| methods.join(" ")));
        for relation in relations.iter().flatten() {
            flat.put(&format!("relation.{}.bytes", relation.name), &Some(relation.bytes));
        }
    }
}

/// Facts by name.
#[derive(Default)]
struct Flat(BTreeMap<String, String>);

impl Flat {
    fn put(&mut self, name: &str, value: &Option<impl ToString>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.to_string());
        }
    }

    fn group<'a>(
        &mut self,
        group: &str,
        facts: impl IntoIterator<Item = (&'a String, &'a (impl ToString + 'a))>,
    ) {
        for (name, value) in facts {
            self.put(&format!("{group}.{name}"), &Some(value.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_flat_by_group_and_name_and_what_is_missing_is_not_there() {
        let map = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let environment = Environment {
            hostname: Some("a".to_owned()),
            load_average_1m_centi: Some(7),
            cpu: Cpu { turbo: Some(false), caches: map("L2", "512K"), ..Cpu::default() },
            numa_nodes: vec![NumaNode { id: 1, cpus: Some("0-3".to_owned()), memory_bytes: None }],
            sysctl: map("vm.swappiness", "1"),
            server: ServerFacts {
                pg_config: Some(map("CFLAGS", "-O2")),
                relations: Some(vec![Relation { name: "t".to_owned(), bytes: 8192, rows_estimate: None }]),
                ..ServerFacts::default()
            },
            ..Environment::default()
        };
        let expected = [
            ("cpu.caches.L2", "512K"),
            ("cpu.turbo", "false"),
            ("numa_node.1.cpus", "0-3"),
            ("pg_config.CFLAGS", "-O2"),
            ("relation.t.bytes", "8192"),
            ("sysctl.vm.swappiness", "1"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(environment.flatten(), BTreeMap::from(expected));
    }
}
