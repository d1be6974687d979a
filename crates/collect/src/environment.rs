//! Facts about the machine, each from the kernel's or distribution's own file.

mod block;
mod cgroup;
mod clock;
mod cpu;
mod kernel;
mod kernel_config;
mod kernel_facts;
mod kernel_log;
mod libc_version;
mod limits;
mod memory;
mod mount;
mod numa;
mod os_release;
mod sysctl;
mod virtualization;

use std::path::Path;

use host::usable_cpus;
use model::environment::Environment;
use model::record::Log;

pub(crate) use block::names_under as devices_under;
pub(crate) use cgroup::{disk_limited_groups, limited_groups, own_directory as own_cgroup};

use crate::root::Root;

/// The machine that this process runs on.
#[derive(Debug)]
pub struct Host {
    root: Root,
    /// Facts that do not change.
    static_facts: Environment,
    kernel_config: Option<kernel_config::ConfigFile>,
}

impl Host {
    /// Reads all facts that do not change while trials run.
    pub fn read() -> Self {
        Self::read_from(Path::new("/"))
    }

    /// Reads the machine whose `/proc`, `/sys`, `/dev`, `/boot` and `/etc` are under `root`: other roots than `/` are
    /// copies, as in tests.
    pub fn read_from(root: &Path) -> Self {
        let root = Root::new(root);
        let static_facts = Environment {
            hostname: root.line("proc/sys/kernel/hostname"),
            kernel: kernel::name_and_release(&root),
            kernel_version: root.line("proc/version"),
            kernel_command_line: kernel::command_line(&root),
            os: os_release::pretty_name(&root),
            libc: libc_version::read(),
            architecture: kernel::architecture(&root),
            cpu_model: cpu::model(&root),
            cpus: usable_cpus(),
            cpu: cpu::static_facts(&root),
            numa_nodes: numa::nodes(&root),
            memory_bytes: memory::bytes(&root, "MemTotal"),
            virtualization: virtualization::detect(&root),
            cgroup: cgroup::limits(&root),
            limits: limits::read(&root),
            ..Environment::default()
        };
        let kernel_config = kernel_config::find(&root);
        Self { root, static_facts, kernel_config }
    }

    /// All facts, those that may have changed read again, with the filesystem that `data_directory` is or would be on.
    pub fn environment(&self, data_directory: Option<&Path>) -> Environment {
        let root = &self.root;
        let mounts = mount::all(root);
        let mount = data_directory.and_then(|directory| mount::containing(&mounts, directory));
        let devices = mount.map(|mount| block::under(root, mount)).unwrap_or_default();
        Environment {
            kernel_facts: kernel_facts::read(root, self.kernel_config.as_ref()),
            cpu_governor: cpu::governor(root),
            cpu: model::environment::Cpu { turbo: cpu::turbo(root), ..self.static_facts.cpu.clone() },
            clocksource: clock::source(root),
            memory_available_bytes: memory::bytes(root, "MemAvailable"),
            swap_bytes: memory::bytes(root, "SwapTotal"),
            swap_used_bytes: memory::swap_used(root),
            transparent_hugepages: memory::transparent_hugepages(root, "enabled"),
            transparent_hugepages_defrag: memory::transparent_hugepages(root, "defrag"),
            huge_pages: memory::huge_pages(root),
            data_filesystem: mount.map(|mount| mount.filesystem.clone()),
            data_mount_options: mount.map(|mount| mount.options.clone()),
            other_devices: block::others(root, &devices),
            data_devices: devices,
            mounts: mounts.into_iter().map(Into::into).collect(),
            load_average_1m_centi: kernel::load_average_1m_centi(root),
            sysctl: sysctl::parameters(root),
            ..self.static_facts.clone()
        }
    }

    /// The kernel's configuration (`kernel-config`) and the end of its log (`dmesg`), if readable.
    pub fn logs(&self) -> Vec<Log> {
        let log = |name: &str, text: Option<String>| Some(Log { name: name.to_owned(), text: text? });
        let logs = [
            log("kernel-config", self.kernel_config.as_ref().map(|config| config.text.clone())),
            log("dmesg", kernel_log::last_lines(&self.root)),
        ];
        logs.into_iter().flatten().collect()
    }
}
