//! CPUs. Sources: proc(5), `/proc/cpuinfo`, whose fields differ between architectures; the kernel's
//! admin-guide/cputopology, admin-guide/pm/cpufreq, admin-guide/hw-vuln and `ABI/testing/sysfs-devices-system-cpu`.

use std::collections::{BTreeMap, BTreeSet};

use model::environment::Cpu;

use crate::root::Root;

const CPUS: &str = "sys/devices/system/cpu";

/// Model name, from the first of these fields that the architecture has: x86, POWER, RISC-V, older Arm.
pub(super) fn model(root: &Root) -> Option<String> {
    let text = root.text("proc/cpuinfo")?;
    ["model name", "cpu", "uarch", "Hardware"]
        .into_iter()
        .find_map(|name| field(&text, name))
        .or_else(|| root.line("proc/device-tree/model").map(|model| model.trim_end_matches('\0').to_owned()))
}

/// Whether the CPU identifies itself as virtual.
pub(super) fn is_virtual(root: &Root) -> bool {
    let flags = root.text("proc/cpuinfo").and_then(|text| field(&text, "flags"));
    flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}

/// Governor of all CPUs; if they differ, separated by commas.
pub(super) fn governor(root: &Root) -> Option<String> {
    let governors = distinct(root, "cpufreq/scaling_governor");
    (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join(","))
}

/// Whether the clock may exceed its nominal rate.
pub(super) fn turbo(root: &Root) -> Option<bool> {
    let flag = |file: &str| root.number::<u8>(&format!("{CPUS}/{file}")).map(|flag| flag == 1);
    flag("intel_pstate/no_turbo").map(|off| !off).or_else(|| flag("cpufreq/boost"))
}

/// Facts that do not change. The range of frequencies is the first CPU's.
pub(super) fn static_facts(root: &Root) -> Cpu {
    let first = |file: &str| root.line(&format!("{CPUS}/cpu0/{file}"));
    let khz = |file: &str| root.number(&format!("{CPUS}/cpu0/cpufreq/{file}"));
    let cpuinfo = |name: &str| root.text("proc/cpuinfo").and_then(|text| field(&text, name));
    Cpu {
        sockets: nonzero_count(distinct(root, "topology/physical_package_id").len()),
        // Before Linux 5.3, the second file listed a core's CPUs.
        cores: nonzero_count(distinct(root, "topology/core_cpus_list").len())
            .or_else(|| nonzero_count(distinct(root, "topology/thread_siblings_list").len())),
        threads: root.line(&format!("{CPUS}/online")).and_then(|list| list_length(&list)),
        smt: root.line(&format!("{CPUS}/smt/control")),
        turbo: None,
        frequency_driver: first("cpufreq/scaling_driver"),
        frequency_min_khz: khz("scaling_min_freq"),
        frequency_max_khz: khz("scaling_max_freq"),
        microcode: first("microcode/version").or_else(|| cpuinfo("microcode")),
        caches: caches(root),
        vulnerabilities: vulnerabilities(root),
    }
}

/// Distinct values of a file that each CPU has.
fn distinct(root: &Root, file: &str) -> BTreeSet<String> {
    root.numbered(CPUS, "cpu")
        .into_iter()
        .filter_map(|cpu| root.line(&format!("{CPUS}/cpu{cpu}/{file}")))
        .collect()
}

/// A count of zero, which no machine has, means unreported.
fn nonzero_count(count: usize) -> Option<u32> {
    count.try_into().ok().filter(|count| *count > 0)
}

/// Number of CPUs in a list such as `0-3,8`.
fn list_length(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

fn caches(root: &Root) -> BTreeMap<String, String> {
    const CACHES: &str = "sys/devices/system/cpu/cpu0/cache";
    root.numbered(CACHES, "index")
        .into_iter()
        .filter_map(|index| {
            let attribute = |file: &str| root.line(&format!("{CACHES}/index{index}/{file}"));
            let kind = match attribute("type")?.as_str() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            Some((format!("L{}{kind}", attribute("level")?), attribute("size")?))
        })
        .collect()
}

fn vulnerabilities(root: &Root) -> BTreeMap<String, String> {
    const VULNERABILITIES: &str = "sys/devices/system/cpu/vulnerabilities";
    root.names(VULNERABILITIES)
        .into_iter()
        .filter_map(|name| {
            let state = root.line(&format!("{VULNERABILITIES}/{name}"))?;
            Some((name, state))
        })
        .collect()
}

/// The first non-empty field with a name.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(field, value)| field.trim() == name && !value.trim().is_empty())
        .map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::list_length;

    #[test]
    fn cpus_of_a_list_are_counted() {
        assert_eq!(["0", "0-3,8", "0-1,4-5,7"].map(list_length), [Some(1), Some(5), Some(5)]);
        assert_eq!(["", "3-1", "0-", "a", "0-4294967295"].map(list_length), [None; 5]);
    }
}
