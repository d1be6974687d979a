//! `environment.json`: the machine as it was, and what the server says of itself.

use std::collections::BTreeMap;

use model::environment as model;
use serde::{Deserialize, Serialize};

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "environment.json";

/// The document in `environment.json`; null where a fact could not be had. What is not in a document was not kept when
/// it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
    /// The virtual machine that pgdyno started for the trial; null of a trial on the machine itself.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelFacts {
    /// Its configuration, whose text is the bundle's log `kernel-config`.
    pub config: Option<KernelConfig>,
    /// Loaded modules by name, with the letters by which each taints the kernel (`OE`, mostly none); null where it
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelConfig {
    /// Where it was read, such as `/boot/config-6.1.0-37-amd64`.
    pub source: String,
    /// SHA-256 of its text.
    pub sha256: String,
}

/// The virtual machine that pgdyno booted a kernel in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Its number.
    pub id: u32,
    /// Its processors, such as `0-15,32-47`.
    pub cpus: Option<String>,
    /// Its memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// A block device with what changes its speed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// Its name, such as `nvme0n1`.
    pub name: String,
    /// `model`, `size_bytes`, and of its queue `scheduler`, `rotational`, `nr_requests`, `read_ahead_kb`,
    /// `write_cache`, `wbt_lat_usec`.
    pub facts: BTreeMap<String, String>,
}

/// A mounted filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// What a server says of itself besides its version and its settings; null where it was not asked, or can't say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerFacts {
    /// How it was built: the view `pg_config`.
    pub pg_config: Option<BTreeMap<String, String>>,
    /// Extensions in the tested database, with their versions.
    pub extensions: Option<BTreeMap<String, String>>,
    /// Extensions that could be created, with their default versions.
    pub available_extensions: Option<BTreeMap<String, String>>,
    /// Methods of authentication that its `pg_hba.conf` uses, by name; from PostgreSQL 10 on.
    pub authentication: Option<Vec<String>>,
    /// The largest tables of the tested database as it was filled, at most fifty, largest first.
    pub relations: Option<Vec<Relation>>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    /// Its name, with its schema where that is not on the search path.
    pub name: String,
    /// Its size in bytes, with its indexes and TOAST.
    pub bytes: u64,
    /// Number of rows as the planner takes it; null where it was never analysed.
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
