//! `environment.json`: the machine at the time of the trial, and facts that the server reports.

use std::collections::BTreeMap;

use model::environment as model;
use serde::{Deserialize, Serialize};

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "environment.json";

/// The document in `environment.json`. A field is null if the fact was not available, or if the release did not store
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel name and release, such as `Linux 6.1.0-37-amd64`.
    pub kernel: Option<String>,
    /// The kernel's full version line (`/proc/version`).
    pub kernel_version: Option<String>,
    /// The kernel's command line (`/proc/cmdline`), with apparent secrets masked.
    pub kernel_command_line: Option<String>,
    /// Further facts about the kernel.
    pub kernel_facts: KernelFacts,
    /// Distribution, such as `Debian GNU/Linux 12 (bookworm)`.
    pub os: Option<String>,
    /// The C library that pgdyno uses, such as `glibc 2.36`.
    pub libc: Option<String>,
    /// CPU architecture, such as `x86_64`.
    pub architecture: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Logical CPUs available to pgdyno.
    pub cpus: Option<u32>,
    /// Frequency governor; if the CPUs differ, all of them, separated by commas.
    pub cpu_governor: Option<String>,
    /// Further facts about the CPUs.
    pub cpu: Cpu,
    /// NUMA nodes; empty if the kernel does not report them.
    pub numa_nodes: Vec<NumaNode>,
    /// The kernel's clock source, such as `tsc`.
    pub clocksource: Option<String>,
    /// Main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Available main memory just before the trial, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Swap in bytes; 0 if there is none.
    pub swap_bytes: Option<u64>,
    /// Swap in use just before the trial, in bytes.
    pub swap_used_bytes: Option<u64>,
    /// Transparent huge pages: the mode in force.
    pub transparent_hugepages: Option<String>,
    /// Transparent huge pages: when the kernel defragments memory for them.
    pub transparent_hugepages_defrag: Option<String>,
    /// Number of reserved huge pages by size, such as `2048kB`.
    pub huge_pages: BTreeMap<String, u64>,
    /// Hypervisor and container, if detectable.
    pub virtualization: Option<String>,
    /// The virtual machine that pgdyno started for the trial; null on the machine itself.
    pub virtual_machine: Option<VirtualMachine>,
    /// Limits in force on pgdyno's control group, in cgroup v2's terms (`cpu.max`, `memory.max`, …), with the group's
    /// `version` and `path`.
    pub cgroup: BTreeMap<String, String>,
    /// Resource limits of pgdyno, which its servers inherit, by the kernel's names (`Max open files`).
    pub limits: BTreeMap<String, String>,
    /// Filesystem type of the data directory.
    pub data_filesystem: Option<String>,
    /// Mount options of the data directory's filesystem.
    pub data_mount_options: Option<String>,
    /// The block device under the data directory, and its underlying devices.
    pub data_devices: Vec<BlockDevice>,
    /// Names of the machine's other block devices.
    pub other_devices: Vec<String>,
    /// Every mounted filesystem.
    pub mounts: Vec<Mount>,
    /// Load average over one minute just before the trial, in hundredths.
    pub load_average_1m_centi: Option<u32>,
    /// Kernel parameters by name: `fs.`, `kernel.`, `net.core.`, `net.ipv4.tcp`, `vm.`.
    pub sysctl: BTreeMap<String, String>,
    /// Facts that the server reports, other than its settings.
    pub server: ServerFacts,
}

/// Facts about the running kernel, other than its release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelFacts {
    /// The kernel's configuration; its text is the bundle's log `kernel-config`.
    pub config: Option<KernelConfig>,
    /// Loaded modules by name, each with the letters of its taint flags (`OE`, usually none); null if the kernel can't
    /// load modules.
    pub modules: Option<BTreeMap<String, String>>,
    /// Taint flags as bits (`/proc/sys/kernel/tainted`); 0 if not tainted.
    pub tainted: Option<u64>,
    /// CPU scheduler: `EEVDF` from Linux 6.6 on, `CFS` before, `sched_ext (NAME)` if a BPF scheduler is loaded.
    pub scheduler: Option<String>,
    /// Preemption model: `none`, `voluntary`, `lazy`, `full`, `rt`.
    pub preemption: Option<String>,
    /// Timer frequency in ticks per second (`CONFIG_HZ`).
    pub hz: Option<u32>,
}

/// The configuration of a kernel's build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelConfig {
    /// Source of the configuration, such as `/boot/config-6.1.0-37-amd64`.
    pub source: String,
    /// SHA-256 of its text.
    pub sha256: String,
}

/// A virtual machine in which pgdyno booted a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VirtualMachine {
    /// Acceleration of its CPUs: `kvm`, `tcg` or `icount`.
    pub acceleration: String,
    /// Emulator, such as `QEMU 7.2.22`.
    pub emulator: String,
    /// Number of CPUs.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Place of the data, such as `memory`.
    pub storage: String,
    /// CPU model that the guest sees.
    pub cpu_model: String,
    /// Source of the kernel: a package with its version, or a path.
    pub kernel_source: String,
    /// Hash of the kernel.
    pub kernel_identity: String,
    /// Release of the host's kernel.
    pub host_kernel: Option<String>,
    /// Model of the host's CPU.
    pub host_cpu: Option<String>,
    /// Real time from its start until its first process ran, in microseconds.
    pub up_after_us: Option<u64>,
    /// Real time from its start until PostgreSQL accepted connections, in microseconds.
    pub ready_after_us: Option<u64>,
    /// The emulator's command line.
    pub command_line: Vec<String>,
}

/// Facts about the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// Packages.
    pub sockets: Option<u32>,
    /// Physical cores.
    pub cores: Option<u32>,
    /// Online logical CPUs.
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
    /// Revision of the microcode.
    pub microcode: Option<String>,
    /// Cache sizes of the first CPU, by `L1d`, `L1i`, `L2`, `L3`.
    pub caches: BTreeMap<String, String>,
    /// The kernel's mitigation of each CPU vulnerability.
    pub vulnerabilities: BTreeMap<String, String>,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Number of the node.
    pub id: u32,
    /// CPUs of the node, such as `0-15,32-47`.
    pub cpus: Option<String>,
    /// Memory of the node in bytes.
    pub memory_bytes: Option<u64>,
}

/// A block device with the facts that affect its speed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// Name, such as `nvme0n1`.
    pub name: String,
    /// `model`, `size_bytes`, and of its queue `scheduler`, `rotational`, `nr_requests`, `read_ahead_kb`,
    /// `write_cache`, `wbt_lat_usec`.
    pub facts: BTreeMap<String, String>,
}

/// A mounted filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Mount point.
    pub point: String,
    /// Mounted device, such as `/dev/sda1`.
    pub source: String,
    /// Type of the filesystem, such as `ext4`.
    pub filesystem: String,
    /// Options of the mount and of the filesystem, separated by commas.
    pub options: String,
}

/// Facts that a server reports, other than its version and settings; null if it was not asked, or can't report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerFacts {
    /// Build of the server: the view `pg_config`.
    pub pg_config: Option<BTreeMap<String, String>>,
    /// Extensions in the tested database, with their versions.
    pub extensions: Option<BTreeMap<String, String>>,
    /// Available extensions, with their default versions.
    pub available_extensions: Option<BTreeMap<String, String>>,
    /// Authentication methods in `pg_hba.conf`, by name; null before PostgreSQL 10.
    pub authentication: Option<Vec<String>>,
    /// The fifty largest tables of the tested database after filling, largest first.
    pub relations: Option<Vec<Relation>>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    /// Name, with its schema if that is not on the search path.
    pub name: String,
    /// Size in bytes, with indexes and TOAST.
    pub bytes: u64,
    /// The planner's estimate of the number of rows; null if the table was never analyzed.
    pub rows_estimate: Option<u64>,
}

mirrors!(
    Environment,
    model::Environment { hostname, kernel, kernel_version, kernel_command_line, os, libc, architecture, cpu_model, cpus, cpu_governor, clocksource, memory_bytes, memory_available_bytes, swap_bytes, swap_used_bytes, transparent_hugepages, transparent_hugepages_defrag, huge_pages, virtualization, cgroup, limits, data_filesystem, data_mount_options, other_devices, load_average_1m_centi, sysctl }
    into { cpu, server, kernel_facts }
    each { numa_nodes, data_devices, mounts }
    maybe { virtual_machine }
);
mirrors!(KernelFacts, model::KernelFacts { modules, tainted, scheduler, preemption, hz } maybe { config });
mirrors!(KernelConfig, model::KernelConfig { source, sha256 });
mirrors!(
    VirtualMachine,
    model::VirtualMachine {
        acceleration,
        emulator,
        cpus,
        memory_bytes,
        storage,
        cpu_model,
        kernel_source,
        kernel_identity,
        host_kernel,
        host_cpu,
        up_after_us,
        ready_after_us,
        command_line
    }
);
mirrors!(
    Cpu,
    model::Cpu {
        sockets,
        cores,
        threads,
        smt,
        turbo,
        frequency_driver,
        frequency_min_khz,
        frequency_max_khz,
        microcode,
        caches,
        vulnerabilities
    }
);
mirrors!(NumaNode, model::NumaNode { id, cpus, memory_bytes });
mirrors!(BlockDevice, model::BlockDevice { name, facts });
mirrors!(Mount, model::Mount { point, source, filesystem, options });
mirrors!(Relation, model::Relation { name, bytes, rows_estimate });

impl From<model::ServerFacts> for ServerFacts {
    fn from(value: model::ServerFacts) -> Self {
        let model::ServerFacts { pg_config, extensions, available_extensions, authentication, relations } =
            value;
        let relations = relations.map(|relations| relations.into_iter().map(Into::into).collect());
        Self { pg_config, extensions, available_extensions, authentication, relations }
    }
}

impl From<ServerFacts> for model::ServerFacts {
    fn from(value: ServerFacts) -> Self {
        let ServerFacts { pg_config, extensions, available_extensions, authentication, relations } = value;
        let relations = relations.map(|relations| relations.into_iter().map(Into::into).collect());
        Self { pg_config, extensions, available_extensions, authentication, relations }
    }
}
