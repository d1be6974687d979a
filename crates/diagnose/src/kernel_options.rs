//! Differences between the configurations of kernels.

use std::collections::{BTreeMap, BTreeSet};

/// The options of a kernel's configuration, without `CONFIG_`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelOptions(BTreeMap<String, String>);

/// Value of an unset option. Options unknown to a kernel count as unset.
const OFF: &str = "n";

/// Options that affect a server's performance, the most important first. A `*` at the end matches any suffix.
const PERFORMANCE_OPTIONS: [&str; 14] = [
    "PREEMPT*",
    "HZ",
    "NO_HZ*",
    "MITIGATION_*",
    "SCHED_*",
    "TRANSPARENT_HUGEPAGE*",
    "SLUB*",
    "SLAB*",
    "RANDOMIZE_KSTACK*",
    "INIT_ON_*",
    "CGROUP*",
    "PSI*",
    "FTRACE",
    "DEBUG_*",
];

impl KernelOptions {
    /// Parses a configuration in the format of `.config` and `/proc/config.gz`.
    pub fn parse(text: &str) -> Self {
        let option = |line: &str| {
            let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        Self(text.lines().filter_map(option).collect())
    }

    /// Value of an option: `y`, `m`, `n`, or a number or text as written.
    pub fn value(&self, option: &str) -> &str {
        self.0.get(option).map_or(OFF, String::as_str)
    }

    /// The options that differ between these configurations: first those that matter to a server, then by name.
    pub fn differing(configurations: &[&Self]) -> Vec<String> {
        let Some((first, others)) = configurations.split_first() else { return Vec::new() };
        let names: BTreeSet<&String> = configurations.iter().flat_map(|one| one.0.keys()).collect();
        let mut differing: Vec<&String> = names
            .into_iter()
            .filter(|name| others.iter().any(|other| other.value(name) != first.value(name)))
            .collect();
        differing.sort_by_key(|name| rank(name));
        differing.into_iter().cloned().collect()
    }
}

/// Whether an option affects a server's performance.
pub fn option_matters(option: &str) -> bool {
    rank(option) < PERFORMANCE_OPTIONS.len()
}

fn rank(option: &str) -> usize {
    let is_match = |known: &str| match known.strip_suffix('*') {
        Some(beginning) => option.starts_with(beginning),
        None => option == known,
    };
    PERFORMANCE_OPTIONS.iter().position(|known| is_match(known)).unwrap_or(PERFORMANCE_OPTIONS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_options_are_found_and_performance_options_come_first() {
        let old = KernelOptions::parse(
            "# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_ACPI=y\nCONFIG_BTRFS_FS=m\nCONFIG_HZ=250\n\
             # CONFIG_PREEMPT is not set\nCONFIG_LOCALVERSION=\"-a\"\n# CONFIG_GONE is not set\nCONFIG_DEBUG_VM=y\n",
        );
        let new = KernelOptions::parse(
            "# Linux/x86 6.12.0 Kernel Configuration\nCONFIG_ACPI=y\nCONFIG_BTRFS_FS=y\nCONFIG_HZ=1000\n\
             CONFIG_PREEMPT=y\nCONFIG_LOCALVERSION=\"\"\n# CONFIG_NEW_AND_OFF is not set\nCONFIG_NEW=m\n",
        );
        let differing = KernelOptions::differing(&[&old, &new, &old]);
        assert_eq!(differing, ["PREEMPT", "HZ", "DEBUG_VM", "BTRFS_FS", "LOCALVERSION", "NEW"]);
        let values: Vec<[&str; 2]> =
            differing.iter().map(|option| [old.value(option), new.value(option)]).collect();
        assert_eq!(
            values,
            [["n", "y"], ["250", "1000"], ["y", "n"], ["m", "y"], ["\"-a\"", "\"\""], ["n", "m"]]
        );
        let matter: Vec<&String> = differing.iter().filter(|option| option_matters(option)).collect();
        assert_eq!(matter, ["PREEMPT", "HZ", "DEBUG_VM"]);
        assert!(
            KernelOptions::differing(&[&old, &old]).is_empty() && KernelOptions::differing(&[]).is_empty()
        );
    }
}
