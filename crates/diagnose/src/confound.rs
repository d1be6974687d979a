//! The confound guard: differences between compared cells other than the factors that they are compared by.

use std::collections::BTreeMap;

use model::cell::{Cell, RecordedCell};
use model::factor::Factor;
use model::plan::Plan;

use crate::settings::canonical_name;

/// Known facts about a cell's server and machine, by name: `setting work_mem`, `build CFLAGS`. Unknown ones are absent.
pub type Facts = BTreeMap<String, String>;

/// A difference that is not a declared factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confound {
    /// The compared factor.
    pub factor: Factor,
    /// The baseline's level.
    pub baseline: String,
    /// The variant's level.
    pub level: String,
    /// The fact that differs, such as `setting data_checksums`.
    pub what: String,
    /// Its value at the baseline.
    pub before: String,
    /// Its value at the variant.
    pub after: String,
}

/// The server's version: either compared, or a different one at the same level of the factor `server`.
const VERSION_SETTING: &str = "server_version";

/// Facts that are lists of options: only the options of one side are shown.
const OPTION_LISTS: [&str; 4] =
    ["build CFLAGS", "build configure", "machine kernel.modules", "machine kernel_command_line"];

/// The options of a list that another one lacks, without those for paths or warnings.
fn options_only_in(list: &str, other: &str) -> String {
    const IRRELEVANT_OPTIONS: [&str; 10] = [
        "--docdir",
        "--prefix",
        "--with-includes",
        "--with-libs",
        "--with-tclconfig",
        "LD_LIBRARY_PATH",
        "PYTHON",
        "CFLAGS",
        "BOOT_IMAGE",
        "initrd",
    ];
    let other = options(other);
    let matters = |option: &&str| {
        let name = option.split('=').next().unwrap_or_default();
        !IRRELEVANT_OPTIONS.contains(&name) && !name.starts_with("-W") && !other.contains(option)
    };
    options(list).into_iter().filter(matters).collect::<Vec<_>>().join(" ")
}

/// Splits a list into options, quoted by apostrophes as by `configure`, or unquoted.
fn options(list: &str) -> Vec<&str> {
    if list.contains('\'') {
        list.split('\'').map(str::trim).filter(|option| !option.is_empty()).collect()
    } else {
        list.split_whitespace().collect()
    }
}

/// The confounds of a plan's comparison: differences of each level of the compared factor from the first level, all
/// else being equal. `facts` returns the known facts of a cell. Facts of only one side are omitted: each version has
/// settings of its own.
pub fn confounds<'f>(plan: &Plan, facts: impl Fn(&Cell) -> Option<&'f Facts>) -> Vec<Confound> {
    let Some(factor) = plan.run.compare else { return Vec::new() };
    let Some(baseline) = plan.cells.first().map(|cell| factor.level(cell)) else { return Vec::new() };
    let mut found: Vec<Confound> = Vec::new();
    for before in plan.cells.iter().filter(|cell| factor.level(cell) == baseline) {
        for after in plan.cells.iter().filter(|after| Factor::varied([before, after]) == [factor]) {
            let (Some(known), Some(other)) = (facts(before), facts(after)) else { continue };
            let (one, another) = (RecordedCell::from(before.clone()), RecordedCell::from(after.clone()));
            for Undeclared { what, before: old, after: new } in undeclared((&one, known), (&another, other)) {
                let confound = Confound {
                    factor,
                    baseline: baseline.clone(),
                    level: factor.level(after),
                    what,
                    before: old,
                    after: new,
                };
                if !found.contains(&confound) {
                    found.push(confound);
                }
            }
        }
    }
    found
}

/// A difference between two cells that is not due to the factors in which they differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeclared {
    /// The fact that differs, such as `setting data_checksums`.
    pub what: String,
    /// Its value at the first cell.
    pub before: String,
    /// Its value at the second cell.
    pub after: String,
}

/// Differences between two cells other than their factors. Facts of only one side are omitted.
pub fn undeclared(
    (before, known): (&RecordedCell, &Facts),
    (after, other): (&RecordedCell, &Facts),
) -> Vec<Undeclared> {
    let factors = Factor::varied([before, after]);
    let mut found = differing(known, other);
    found.retain(|found| !factors.iter().any(|factor| is_declared(*factor, &found.what, before, after)));
    found
}

/// Differences caused by another kernel, if two cells differ in the kernel or the host.
pub fn kernel_differences(
    (before, known): (&RecordedCell, &Facts),
    (after, other): (&RecordedCell, &Facts),
) -> Vec<Undeclared> {
    if !Factor::varied([before, after]).into_iter().any(changes_kernel) {
        return Vec::new();
    }
    let mut found = differing(known, other);
    found.retain(|found| is_kernel_fact(&found.what));
    found
}

fn differing(known: &Facts, other: &Facts) -> Vec<Undeclared> {
    let mut found = Vec::new();
    for (what, value) in known {
        let Some(changed) = other.get(what).filter(|changed| *changed != value) else { continue };
        let (before, after) = if OPTION_LISTS.contains(&what.as_str()) {
            (options_only_in(value, changed), options_only_in(changed, value))
        } else {
            (value.clone(), changed.clone())
        };
        if before != after {
            found.push(Undeclared { what: what.clone(), before, after });
        }
    }
    found
}

/// The confounds as text: differences from the baseline, and the levels that have them.
pub fn in_words(confounds: &[Confound]) -> String {
    let mut same: Vec<(&Confound, Vec<&str>)> = Vec::new();
    for confound in confounds {
        let is_same = |(other, _): &&mut (&Confound, Vec<&str>)| {
            (&other.baseline, &other.what, &other.before, &other.after)
                == (&confound.baseline, &confound.what, &confound.before, &confound.after)
        };
        match same.iter_mut().find(is_same) {
            Some((_, levels)) => levels.push(&confound.level),
            None => same.push((confound, vec![&confound.level])),
        }
    }
    let several = same.iter().any(|(_, levels)| levels != &same[0].1);
    let mut text = String::new();
    let mut baseline = None;
    for (Confound { factor, baseline: from, what, before, after, .. }, levels) in same {
        let factor = factor.name();
        if baseline.replace(from) != Some(from) {
            let to = if several { "the others".to_owned() } else { levels.join(", ") };
            text += &format!("{factor} {from} and {to} differ in more than {factor}:\n");
        }
        let where_ = if several { format!(" ({})", levels.join(", ")) } else { String::new() };
        text += &format!("  {what}: {} → {}{where_}\n", shown(before), shown(after));
    }
    text.trim_end().to_owned()
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "(nothing)" } else { value }
}

/// Whether another level of the factor means another kernel.
fn changes_kernel(factor: Factor) -> bool {
    matches!(factor, Factor::Kernel | Factor::Host)
}

/// Whether a fact of the machine is a property or a decision of its kernel: not a confound between compared kernels,
/// but their explanation. The kernel's inputs (command line, parameters) are not.
pub fn is_kernel_fact(what: &str) -> bool {
    const FACTS: [&str; 4] = ["kernel", "kernel_version", "clocksource", "sysctl.kernel.tainted"];
    const GROUPS: [&str; 3] = ["kernel.", "cpu.vulnerabilities.", "virtual_machine.kernel_"];
    what.strip_prefix("machine ")
        .is_some_and(|fact| FACTS.contains(&fact) || GROUPS.iter().any(|group| fact.starts_with(group)))
}

/// Whether a fact is due to the kernels of two guests: a result of the same virtual machine, such as limits that the
/// kernel derives from the memory size.
fn is_guest_kernel_fact(what: &str, before: &RecordedCell, after: &RecordedCell) -> bool {
    [before, after].into_iter().all(|cell| cell.acceleration.known().is_some_and(|it| it.is_virtual()))
        && what
            .strip_prefix("machine ")
            .is_some_and(|fact| !fact.starts_with("virtual_machine.") && fact != "kernel_command_line")
}

/// Whether a fact of the machine is the kernel's command line, or may result from it.
fn is_kernel_argument_fact(what: &str) -> bool {
    const FACTS: [&str; 5] = [
        "kernel_command_line",
        "kernel.preemption",
        "clocksource",
        "transparent_hugepages",
        "transparent_hugepages_defrag",
    ];
    what.strip_prefix("machine ")
        .is_some_and(|fact| FACTS.contains(&fact) || fact.starts_with("cpu.vulnerabilities."))
}

/// Whether a fact of the machine is a parameter that the cell sets, by name or by path.
fn is_set_by_sysctl(what: &str, cell: &RecordedCell) -> bool {
    const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/";
    let fact_of = |name: &str| match name.strip_prefix("/proc/sys/") {
        Some(file) => format!("sysctl.{}", file.replace('/', ".")),
        None if name.starts_with('/') => {
            let device = name.strip_prefix("/sys/block/").and_then(|rest| rest.split_once("/queue/"));
            match (name.strip_prefix(HUGE_PAGES), device) {
                (Some("enabled"), _) => "transparent_hugepages".to_owned(),
                (Some("defrag"), _) => "transparent_hugepages_defrag".to_owned(),
                (_, Some((device, fact))) => format!("data_device.{device}.{fact}"),
                _ => String::new(),
            }
        }
        None => format!("sysctl.{name}"),
    };
    what.strip_prefix("machine ")
        .zip(cell.sysctl.known())
        .is_some_and(|(fact, sysctl)| sysctl.values.keys().any(|name| fact_of(name) == fact))
}

/// Whether a fact of a virtual machine is the level of the factor of that name.
fn is_level_of(factor: Factor, what: &str) -> bool {
    let fact = what.strip_prefix("machine virtual_machine.");
    fact.is_some_and(|fact| fact.strip_suffix("_bytes").unwrap_or(fact) == factor.name())
}

/// Whether a difference is one that the campaign requests.
fn is_declared(factor: Factor, what: &str, before: &RecordedCell, after: &RecordedCell) -> bool {
    if is_level_of(factor, what)
        || (changes_kernel(factor) && (is_kernel_fact(what) || is_guest_kernel_fact(what, before, after)))
        || (factor == Factor::KernelArgs && is_kernel_argument_fact(what))
        || (factor == Factor::Sysctl && (is_set_by_sysctl(what, before) || is_set_by_sysctl(what, after)))
    {
        return true;
    }
    let Some(setting) = what.strip_prefix("setting ") else { return false };
    let set = |cell: &RecordedCell| {
        cell.settings
            .known()
            .is_some_and(|settings| settings.values.keys().any(|name| canonical_name(name) == setting))
    };
    let is_needed = |cell: &RecordedCell| {
        let needed = cell.topology.known().map(|topology| topology.server_settings()).unwrap_or_default();
        needed.iter().any(|(name, _)| *name == setting)
    };
    (factor == Factor::Settings && (set(before) || set(after)))
        || (factor == Factor::Topology && (is_needed(before) || is_needed(after)))
        || (factor == Factor::Server && setting == VERSION_SETTING)
}

#[cfg(test)]
mod tests {
    use model::spec::Campaign;

    use super::*;

    fn plan(more: &str) -> Plan {
        let text = format!(
            "name = 'n'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nclients = [1, 2]\n{more}"
        );
        Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap()
    }

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_changed_default_is_found_once_and_the_version_is_not() {
        let old = facts(&[
            ("setting data_checksums", "off"),
            ("setting server_version", "17.6"),
            ("setting gone", "1"),
            ("build CFLAGS", "-O2"),
        ]);
        let new = facts(&[
            ("setting data_checksums", "on"),
            ("setting server_version", "18.1"),
            ("setting io_method", "worker"),
            ("build CFLAGS", "-O2"),
        ]);
        let found = confounds(&plan(""), |cell| Some(if cell.server == "17" { &old } else { &new }));
        assert_eq!(found.len(), 1, "{found:?}");
        let Confound { what, before, after, level, .. } = &found[0];
        assert_eq!((what.as_str(), before.as_str(), after.as_str()), ("setting data_checksums", "off", "on"));
        assert_eq!(level, "18");
    }

    #[test]
    fn only_compared_settings_may_differ() {
        let text =
            "settings = ['default', 'big']\n[run]\ncompare = 'settings'\n[settings.big]\nwork_mem = '1GB'\n";
        let small = facts(&[("setting work_mem", "4096kB"), ("setting jit", "on")]);
        let big = facts(&[("setting work_mem", "1048576kB"), ("setting jit", "off")]);
        let found =
            confounds(&plan(text), |cell| Some(if cell.settings.name == "big" { &big } else { &small }));
        assert_eq!(found.iter().map(|confound| confound.what.as_str()).collect::<Vec<_>>(), ["setting jit"]);
    }

    #[test]
    fn build_options_of_only_one_side_are_reported() {
        let old =
            facts(&[("build CFLAGS", "-Wall -O2 -fwrapv"), ("build configure", "'--prefix=/a' '--with-x'")]);
        let new = facts(&[
            ("build CFLAGS", "-Wextra -Os -fwrapv"),
            ("build configure", "'--prefix=/b' '--with-x'"),
        ]);
        let found = confounds(&plan(""), |cell| Some(if cell.server == "17" { &old } else { &new }));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].before.as_str(), found[0].after.as_str()), ("-O2", "-Os"));
        assert_eq!(
            in_words(&found),
            "server 17 and 18 differ in more than server:\n  build CFLAGS: -O2 → -Os"
        );
    }

    #[test]
    fn kernel_facts_explain_compared_kernels_and_confound_other_factors() {
        let old = facts(&[
            ("machine cpu.vulnerabilities.its", "Vulnerable"),
            ("machine kernel", "Linux 6.1.0"),
            ("machine kernel.modules", "ext4 vda"),
            ("machine kernel.scheduler", "CFS"),
            ("machine kernel_command_line", "BOOT_IMAGE=/boot/vmlinuz-6.1 ro quiet"),
            ("machine sysctl.vm.swappiness", "60"),
            ("machine virtual_machine.memory_bytes", "1"),
        ]);
        let new = facts(&[
            ("machine cpu.vulnerabilities.its", "Mitigation: Aligned branch/return thunks"),
            ("machine kernel", "Linux 6.12.9"),
            ("machine kernel.modules", "ext4 xor vda"),
            ("machine kernel.scheduler", "EEVDF"),
            ("machine kernel_command_line", "BOOT_IMAGE=/boot/vmlinuz-6.12 ro quiet mitigations=off"),
            ("machine sysctl.vm.swappiness", "1"),
            ("machine virtual_machine.memory_bytes", "2"),
        ]);
        let whats = |found: &[Undeclared]| {
            found.iter().map(|found| found.what.trim_start_matches("machine ").to_owned()).collect::<Vec<_>>()
        };
        let text = "name = 'n'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nclients = [1]\n\
                    kernel = ['6.1', '6.12']\nacceleration = ['none']\nmemory = ['1GB', '2GB']\n";
        let cells = recorded(text);
        let cell = |server: &str, kernel: &str, memory: &str| {
            let levels = [(Factor::Server, server), (Factor::Kernel, kernel), (Factor::Memory, memory)];
            cells
                .iter()
                .find(|cell| levels.iter().all(|(factor, level)| factor.level(cell) == *level))
                .unwrap()
        };
        let from = (cell("17", "6.1", "1GB"), &old);

        let kernels = (cell("17", "6.12", "1GB"), &new);
        let changed = ["kernel_command_line", "sysctl.vm.swappiness"];
        let explained = ["cpu.vulnerabilities.its", "kernel", "kernel.modules", "kernel.scheduler"];
        let found = undeclared(from, kernels);
        assert_eq!(whats(&found), [&changed[..], &["virtual_machine.memory_bytes"]].concat());
        assert_eq!((found[0].before.as_str(), found[0].after.as_str()), ("", "mitigations=off"));
        assert_eq!(whats(&kernel_differences(from, kernels)), explained);
        assert_eq!(kernel_differences(from, kernels)[2].after, "xor");
        assert_eq!(whats(&undeclared(from, (cell("17", "6.12", "2GB"), &new))), changed);

        let servers = (cell("18", "6.1", "1GB"), &new);
        let mut all = [&explained[..], &changed, &["virtual_machine.memory_bytes"]].concat();
        all.sort_unstable();
        assert_eq!(whats(&undeclared(from, servers)), all);
        assert_eq!(kernel_differences(from, servers), []);
    }

    fn recorded(campaign: &str) -> Vec<RecordedCell> {
        let plan = Plan::new(&Campaign::parse(campaign).unwrap(), 1).unwrap();
        plan.cells.into_iter().map(RecordedCell::from).collect()
    }

    #[test]
    fn kernel_facts_of_a_guest_are_no_confounds_of_its_kernel() {
        let text = "name = 'n'\n[factors]\nserver = ['17']\nworkload = ['select-only']\nclients = [1]\n\
                    kernel = ['6.1', '6.12']\nacceleration = ['icount', 'none']\n";
        let cells = recorded(text);
        let whats = |found: &[Undeclared]| {
            found.iter().map(|found| found.what.trim_start_matches("machine ").to_owned()).collect::<Vec<_>>()
        };
        let cell = |kernel: &str, acceleration: &str| {
            let levels = [(Factor::Kernel, kernel), (Factor::Acceleration, acceleration)];
            cells
                .iter()
                .find(|cell| levels.iter().all(|(factor, level)| factor.level(cell) == *level))
                .unwrap()
        };
        let facts = |files: &str, memory: &str| -> Facts {
            [("machine sysctl.fs.file-max", files), ("machine virtual_machine.memory_bytes", memory)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        };
        let (old, new) = (facts("1", "5"), facts("2", "6"));
        let found = undeclared((cell("6.1", "icount"), &old), (cell("6.12", "icount"), &new));
        assert_eq!(whats(&found), ["virtual_machine.memory_bytes"]);
        let found = undeclared((cell("6.1", "none"), &old), (cell("6.12", "none"), &new));
        assert_eq!(whats(&found), ["sysctl.fs.file-max", "virtual_machine.memory_bytes"]);
    }

    #[test]
    fn effects_of_kernel_arguments_and_parameters_are_declared() {
        let text = "name = 'n'\n[factors]\nserver = ['17']\nworkload = ['select-only']\nclients = [1]\n\
                    kernel = ['6.1']\nacceleration = ['icount']\nkernel_args = ['', 'mitigations=off']\n\
                    sysctl = ['default', 'set']\n[sysctls.set]\n'vm.swappiness' = '1'\n\
                    '/sys/kernel/mm/transparent_hugepage/enabled' = 'never'\n\
                    '/sys/block/vda/queue/scheduler' = 'none'\n";
        let cells = recorded(text);
        let cell = |args: bool, sysctl: &str| {
            let is_it = |cell: &&RecordedCell| {
                (Factor::KernelArgs.level(cell) != "none") == args && Factor::Sysctl.level(cell) == sysctl
            };
            cells.iter().find(is_it).unwrap()
        };
        let of_args = ["machine cpu.vulnerabilities.its", "machine kernel_command_line"];
        // Huge pages can be set in both ways.
        let of_both = ["machine transparent_hugepages"];
        let of_sysctl = ["machine data_device.vda.scheduler", "machine sysctl.vm.swappiness"];
        let other = ["machine kernel", "machine sysctl.vm.dirty_ratio"];
        let all: Vec<&str> = [&of_args[..], &of_sysctl, &of_both, &other].concat();
        let [old, new] =
            ["a", "b"].map(|value| all.iter().map(|what| ((*what).to_owned(), value.to_owned())).collect());
        let found = |after: &RecordedCell| {
            let found = undeclared((cell(false, "default"), &old), (after, &new));
            found.into_iter().map(|found| found.what).collect::<std::collections::BTreeSet<_>>()
        };
        let expected = |parts: &[&[&str]]| parts.concat().into_iter().map(str::to_owned).collect();
        assert_eq!(found(cell(true, "default")), expected(&[&of_sysctl, &other]));
        assert_eq!(found(cell(false, "set")), expected(&[&of_args, &other]));
    }

    #[test]
    fn unknown_facts_are_no_difference() {
        assert_eq!(confounds(&plan(""), |_| None), []);
        let some = facts(&[("setting jit", "on")]);
        assert_eq!(confounds(&plan(""), |cell| (cell.server == "17").then_some(&some)), []);
    }
}
