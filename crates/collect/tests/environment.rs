//! Machines as their files show them, and the one the test runs on.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs;
use std::path::Path;

use collect::{environment, environment_at};
use model::record::Environment;

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

fn look(files: &[(&str, &str)]) -> Environment {
    environment_at(machine(files).path(), Some(Path::new("/")))
}

#[test]
fn a_virtual_server_shows_all_its_facts() {
    let seen = look(&[
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
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ("proc/meminfo", "MemTotal:       24682416 kB\nMemFree: 1 kB\nSwapTotal:             0 kB\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
        ("sys/class/dmi/id/product_name", "Standard PC\n"),
        (".dockerenv", ""),
        ("proc/self/mountinfo", "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"),
        ("proc/loadavg", "1.07 0.50 0.25 1/234 5678\n"),
        ("proc/sys/vm/swappiness", "1\n"),
        ("proc/sys/vm/dirty_ratio", "20\n"),
        ("proc/sys/vm/laptop_mode", "0\n"),
        ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
        ("proc/sys/net/core/somaxconn", "4096\n"),
    ]);
    let text = |value: &str| Some(value.to_owned());
    let sysctl = [
        ("kernel.sched_autogroup_enabled", "1"),
        ("net.core.somaxconn", "4096"),
        ("vm.dirty_ratio", "20"),
        ("vm.swappiness", "1"),
    ];
    assert_eq!(
        seen,
        Environment {
            hostname: text("bench-1"),
            kernel: text("Linux 6.1.0-37-amd64"),
            kernel_version: text("Linux version 6.1.0-37-amd64 (gcc 12)"),
            os: text("Debian GNU/Linux 12 \"bookworm\""),
            architecture: text("x86_64"),
            cpu_model: text("AMD EPYC 7B13"),
            cpus: seen.cpus,
            cpu_governor: text("performance"),
            memory_bytes: Some(24_682_416 * 1024),
            swap_bytes: Some(0),
            transparent_hugepages: text("madvise"),
            virtualization: text("virtual machine (QEMU Standard PC), docker container"),
            data_filesystem: text("ext4"),
            data_mount_options: text("rw,relatime,discard"),
            load_average_1m_centi: Some(107),
            sysctl: sysctl.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        }
    );
}

#[test]
fn what_is_not_there_is_none_and_never_zero() {
    let seen = look(&[]);
    let expected =
        Environment { cpus: seen.cpus, architecture: seen.architecture.clone(), ..Environment::default() };
    assert_eq!(seen, expected);
}

#[test]
fn nonsense_is_none() {
    let nonsense = "\u{fffd}[: kB - . \\ \" =\n";
    let seen = look(&[
        ("proc/meminfo", "MemTotal: lots kB\nSwapTotal: 99999999999999999999 kB\n"),
        ("proc/cpuinfo", nonsense),
        ("proc/loadavg", "high 1\n"),
        ("proc/self/mountinfo", nonsense),
        ("etc/os-release", "PRETTY_NAME=\"\"\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", nonsense),
        ("proc/sys/kernel/hostname", "\n"),
    ]);
    let expected =
        Environment { cpus: seen.cpus, architecture: seen.architecture.clone(), ..Environment::default() };
    assert_eq!(seen, expected);
}

#[test]
fn other_processors_and_containers_are_known() {
    let arm = look(&[("proc/cpuinfo", "processor\t: 0\n"), ("proc/device-tree/model", "Raspberry Pi 5\0")]);
    assert_eq!(arm.cpu_model.as_deref(), Some("Raspberry Pi 5"));
    let pod = look(&[("proc/1/cgroup", "0::/kubepods.slice/kubepods-besteffort.slice/x\n")]);
    assert_eq!(pod.virtualization.as_deref(), Some("kubernetes container"));
    let xen = look(&[("sys/hypervisor/type", "xen\n")]);
    assert_eq!(xen.virtualization.as_deref(), Some("virtual machine (xen)"));
}

#[test]
fn this_machine_has_a_kernel_memory_and_a_filesystem_for_data_to_come() {
    let directory = tempfile::tempdir().unwrap();
    let seen = environment(Some(&directory.path().join("not/yet/there")));
    assert!(seen.kernel.unwrap().starts_with("Linux "));
    assert!(seen.memory_bytes.unwrap() > 0);
    assert!(seen.cpus.unwrap() > 0);
    assert!(seen.data_filesystem.is_some() && seen.data_mount_options.is_some());
    assert!(seen.sysctl.contains_key("vm.swappiness"), "{:?}", seen.sysctl);
}
