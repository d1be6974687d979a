//! Detection of hypervisors and containers. A machine that hides them looks like bare metal.

use super::cpu;
use crate::root::Root;

/// Such as `virtual machine (QEMU Standard PC), docker container`; none if neither is detected.
pub(super) fn detect(root: &Root) -> Option<String> {
    let signs: Vec<String> = [virtual_machine(root), container(root)].into_iter().flatten().collect();
    (!signs.is_empty()).then(|| signs.join(", "))
}

fn virtual_machine(root: &Root) -> Option<String> {
    let xen = root.line("sys/hypervisor/type");
    let windows = root.line("proc/sys/kernel/osrelease").filter(|release| release.contains("microsoft"));
    if let Some(name) = xen.or(windows.map(|_| "WSL".to_owned())) {
        return Some(format!("virtual machine ({name})"));
    }
    if !cpu::is_virtual(root) {
        return None;
    }
    // On a virtual machine, the firmware has the hypervisor's names.
    let names: Vec<String> = ["sys_vendor", "product_name"]
        .into_iter()
        .filter_map(|name| root.line(&format!("sys/class/dmi/id/{name}")))
        .collect();
    Some(if names.is_empty() {
        "virtual machine".to_owned()
    } else {
        format!("virtual machine ({})", names.join(" "))
    })
}

/// Detects a container by traces of its manager: its file, or its name in the first process's control group.
fn container(root: &Root) -> Option<String> {
    const FILES: [(&str, &str); 2] = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];
    const GROUPS: [(&str, &str); 4] =
        [("/kubepods", "kubernetes"), ("/docker", "docker"), ("/lxc", "lxc"), ("/libpod", "podman")];
    let by_file = || FILES.into_iter().find(|(file, _)| root.has(file)).map(|(_, name)| name.to_owned());
    let by_group = || {
        let groups = root.text("proc/1/cgroup")?;
        GROUPS.into_iter().find(|(part, _)| groups.contains(part)).map(|(_, name)| name.to_owned())
    };
    let name = root.line("run/systemd/container").or_else(by_file).or_else(by_group)?;
    Some(format!("{name} container"))
}
