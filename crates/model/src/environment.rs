//! Environment of a trial: the machine, its kernel, and the build and tables of the server.
//!
//! Missing is none, never zero; a map omits facts that are not available.

use std::collections::BTreeMap;

use serde::Serialize;

/// State of the machine: what a reader needs to trust or reproduce a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel name and release, such as `Linux 6.1.0-37-amd64`.
    pub kernel: Option<String>,
    /// The kernel's full version line (`/proc/version`).
    pub kernel_version: Option<String>,
    /// The kernel's command line (`/proc/cmdline`), with secrets masked.
    pub kernel_command_line: Option<String>,
    /// Further facts about the kernel.
    pub kernel_facts: KernelFacts,
    /// Distribution, such as `Debian GNU/Linux 12 (bookworm)`.
    pub os: Option<String>,
    /// The C library that pgdyno uses, such as `glibc 2.36`.
    pub libc: Option<String>,
    /// Processor architecture, such as `x86_64`.
    pub architecture: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Logical CPUs that pgdyno may use.
    pub cpus: Option<u32>,
    /// Frequency governor; those of all CPUs, separated by commas, if they differ.
    pub cpu_governor: Option<String>,
    /// Further facts about the CPUs.
    pub cpu: Cpu,
    /// NUMA nodes; empty if the kernel does not report them.
    pub numa_nodes: Vec<NumaNode>,
    /// The kernel's clock source, such as `tsc`.
    pub clocksource: Option<String>,
    /// Main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Main memory available just before the trial, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Swap in bytes; 0 means that there is none.
    pub swap_bytes: Option<u64>,
    /// Swap in use just before the trial, in bytes.
    pub swap_used_bytes: Option<u64>,
    /// Transparent huge pages: the mode in force.
    pub transparent_hugepages: Option<String>,
    /// Transparent huge pages: how hard the kernel tries to allocate one.
    pub transparent_hugepages_defrag: Option<String>,
    /// Reserved huge pages: number by size, such as `2048kB`.
    pub huge_pages: BTreeMap<String, u64>,
    /// Hypervisor or container, if detected.
    pub virtualization: Option<String>,
    /// The virtual machine that pgdyno started for the trial; none for a trial on the machine itself.
    pub virtual_machine: Option<VirtualMachine>,
    /// Limits in force on pgdyno's control group, named as in cgroup v2 (`cpu.max`, `memory.max`, …), with the
    /// `version` and the `path` of the group.
    pub cgroup: BTreeMap<String, String>,
    /// Resource limits of pgdyno, which its servers inherit, by the kernel's names (`Max open files`).
    pub limits: BTreeMap<String, String>,
    /// Filesystem type of the data directory.
    pub data_filesystem: Option<String>,
    /// Mount options of the data directory's filesystem.
    pub data_mount_options: Option<String>,
    /// The block device of the data directory, followed by those below it.
    pub data_devices: Vec<BlockDevice>,
    /// Names of the machine's other block devices.
    pub other_devices: Vec<String>,
    /// Every mounted filesystem.
    pub mounts: Vec<Mount>,
    /// Load average over one minute just before the trial, in hundredths.
    pub load_average_1m_centi: Option<u32>,
    /// Kernel parameters by name: `fs.`, `kernel.`, `net.core.`, `net.ipv4.tcp`, `vm.`.
    pub sysctl: BTreeMap<String, String>,
    /// Facts that the server reports in addition to its settings.
    pub server: ServerFacts,
}

/// Facts about the running kernel in addition to its release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelFacts {
    /// Its configuration, whose text is the bundle's log `kernel-config`.
    pub config: Option<KernelConfig>,
    /// Loaded modules by name, with the letters of their taints (`OE`, usually none); none if the kernel can't load
    /// modules.
    pub modules: Option<BTreeMap<String, String>>,
    /// Taint bits (`/proc/sys/kernel/tainted`); 0 if not tainted.
    pub tainted: Option<u64>,
    /// CPU scheduler: `EEVDF` since Linux 6.6, `CFS` before, `sched_ext (NAME)` if a BPF scheduler is loaded.
    pub scheduler: Option<String>,
    /// Preemption model: `none`, `voluntary`, `lazy`, `full`, `rt`.
    pub preemption: Option<String>,
    /// Ticks per second (`CONFIG_HZ`).
    pub hz: Option<u32>,
}

/// The configuration that a kernel was built with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelConfig {
    /// Its source, such as `/boot/config-6.1.0-37-amd64`.
    pub source: String,
    /// SHA-256 of its text.
    pub sha256: String,
}

/// The virtual machine that pgdyno booted a kernel in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VirtualMachine {
    /// Its acceleration: `kvm`, `tcg` or `icount`.
    pub acceleration: String,
    /// The emulator, such as `QEMU 7.2.22`.
    pub emulator: String,
    /// Number of its CPUs.
    pub cpus: u32,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Storage of the data, such as `memory`.
    pub storage: String,
    /// CPU model that its kernel sees.
    pub cpu_model: String,
    /// Source of its kernel: a package with its version, or a path.
    pub kernel_source: String,
    /// A hash of its kernel.
    pub kernel_identity: String,
    /// Release of the host's kernel.
    pub host_kernel: Option<String>,
    /// Model of the host's CPU.
    pub host_cpu: Option<String>,
    /// Real time from its start to its first process, in microseconds.
    pub up_after_us: Option<u64>,
    /// Real time from its start until PostgreSQL accepted connections, in microseconds.
    pub ready_after_us: Option<u64>,
    /// The emulator's command line.
    pub command_line: Vec<String>,
}

/// The CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// CPU packages.
    pub sockets: Option<u32>,
    /// Physical cores.
    pub cores: Option<u32>,
    /// Logical CPUs that are online.
    pub threads: Option<u32>,
    /// State of simultaneous multithreading: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub smt: Option<String>,
    /// Whether the clock may exceed its nominal rate.
    pub turbo: Option<bool>,
    /// Driver that sets the frequency.
    pub frequency_driver: Option<String>,
    /// Lowest frequency that the governor may choose, in kHz.
    pub frequency_min_khz: Option<u64>,
    /// Highest frequency that the governor may choose, in kHz.
    pub frequency_max_khz: Option<u64>,
    /// Microcode revision.
    pub microcode: Option<String>,
    /// Sizes of the first CPU's caches, by `L1d`, `L1i`, `L2`, `L3`.
    pub caches: BTreeMap<String, String>,
    /// Status of each CPU vulnerability, as the kernel reports it.
    pub vulnerabilities: BTreeMap<String, String>,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NumaNode {
    /// Its number.
    pub id: u32,
    /// Its CPUs, such as `0-15,32-47`.
    pub cpus: Option<String>,
    /// Its memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// A block device with the facts that affect its speed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockDevice {
    /// Its name, such as `nvme0n1`.
    pub name: String,
    /// `model`, `size_bytes`, and of its queue `scheduler`, `rotational`, `nr_requests`, `read_ahead_kb`,
    /// `write_cache`, `wbt_lat_usec`.
    pub facts: BTreeMap<String, String>,
}

/// A mounted filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mount {
    /// Mount point.
    pub point: String,
    /// Mounted device or source, such as `/dev/sda1`.
    pub source: String,
    /// Its type, such as `ext4`.
    pub filesystem: String,
    /// Options of the mount and of the filesystem, separated by commas.
    pub options: String,
}

/// Facts that a server reports in addition to its version and settings; none if not queried or not reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerFacts {
    /// Build configuration: the view `pg_config`.
    pub pg_config: Option<BTreeMap<String, String>>,
    /// Extensions in the tested database, with their versions.
    pub extensions: Option<BTreeMap<String, String>>,
    /// Available extensions, with their default versions.
    pub available_extensions: Option<BTreeMap<String, String>>,
    /// Names of the authentication methods in `pg_hba.conf`; since PostgreSQL 10.
    pub authentication: Option<Vec<String>>,
    /// The largest tables of the tested database after it was filled, at most [`RELATIONS`], largest first.
    pub relations: Option<Vec<Relation>>,
}

/// Maximum number of [`ServerFacts::relations`].
pub const RELATIONS: u32 = 50;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Relation {
    /// Its name, with its schema unless that is on the search path.
    pub name: String,
    /// Its size in bytes, including indexes and TOAST.
    pub bytes: u64,
    /// Planner's estimate of the number of rows; none if the table was never analyzed.
    pub rows_estimate: Option<u64>,
}

impl Environment {
    /// Facts that should not differ between compared trials, as `name` or `group.name`; without the host name, the
    /// load, and the resources free just before a trial.
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
        flat.put("kernel.modules", &self.modules_list());
        flat.put("kernel.tainted", &self.tainted);
        flat.put("kernel.scheduler", &self.scheduler);
        flat.put("kernel.preemption", &self.preemption);
        flat.put("kernel.hz", &self.hz);
    }

    /// The modules separated by spaces, with letters for taints, as in `ext4 zfs(POE)`.
    pub fn modules_list(&self) -> Option<String> {
        let word = |(name, taint): (&String, &String)| match taint.as_str() {
            "" => name.clone(),
            letters => format!("{name}({letters})"),
        };
        Some(self.modules.as_ref()?.iter().map(word).collect::<Vec<_>>().join(" "))
    }
}

impl VirtualMachine {
    /// Omits the command line, which follows from the rest.
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
    fn facts_are_flattened_and_missing_ones_omitted() {
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
