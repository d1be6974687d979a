//! The machine's facts, each from the file that the kernel or the distribution keeps it in.

mod cpu;
mod kernel;
mod memory;
mod mount;
mod os_release;
mod root;
mod sysctl;
mod virtualization;

use std::path::Path;
use std::thread;

use model::record::Environment;

use root::Root;

/// The machine that this process runs on, and the filesystem that `data_directory` is or would be on.
pub fn environment(data_directory: Option<&Path>) -> Environment {
    environment_at(Path::new("/"), data_directory)
}

/// The machine whose `/proc`, `/sys` and `/etc` are under `root`: another root than `/` is a copy, as tests have it.
pub fn environment_at(root: &Path, data_directory: Option<&Path>) -> Environment {
    let root = Root::new(root);
    let mount = data_directory.and_then(|directory| mount::of(&root, directory));
    Environment {
        hostname: root.line("proc/sys/kernel/hostname"),
        kernel: kernel::name_and_release(&root),
        kernel_version: root.line("proc/version"),
        os: os_release::pretty_name(&root),
        architecture: kernel::architecture(&root),
        cpu_model: cpu::model(&root),
        cpus: usable_cpus(),
        cpu_governor: root.line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory_bytes: memory::bytes(&root, "MemTotal"),
        swap_bytes: memory::bytes(&root, "SwapTotal"),
        transparent_hugepages: memory::transparent_hugepages(&root),
        virtualization: virtualization::of(&root),
        data_filesystem: mount.as_ref().map(|mount| mount.filesystem.clone()),
        data_mount_options: mount.map(|mount| mount.options),
        load_average_1m_centi: kernel::load_average_1m_centi(&root),
        sysctl: sysctl::parameters(&root),
    }
}

/// Processors that this process may use: what its affinity and its control group allow.
fn usable_cpus() -> Option<u32> {
    thread::available_parallelism().ok()?.get().try_into().ok()
}
