//! Facts about the running kernel in addition to its release. Sources: proc(5), `/proc/modules` and `/proc/version`;
//! the kernel's admin-guide/tainted-kernels, scheduler/sched-ext and, for `preempt=`, admin-guide/kernel-parameters.

use std::collections::BTreeMap;

use model::environment::KernelFacts;

use super::kernel_config::ConfigFile;
use crate::root::Root;

pub(super) fn read(root: &Root, config: Option<&ConfigFile>) -> KernelFacts {
    KernelFacts {
        config: config.map(|found| found.config.clone()),
        modules: modules(root),
        tainted: root.number("proc/sys/kernel/tainted"),
        scheduler: scheduler(root),
        preemption: preemption(root, config),
        hz: config.and_then(|found| found.option("HZ")?.parse().ok()),
    }
}

/// Parses lines of `name size users dependencies state address`, followed by `(OE)` if the module taints.
fn modules(root: &Root) -> Option<BTreeMap<String, String>> {
    let text = root.text("proc/modules")?;
    let module = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?.to_owned();
        let taint = words.next_back().and_then(|word| word.strip_prefix('(')?.strip_suffix(')'));
        Some((name, taint.unwrap_or_default().to_owned()))
    };
    Some(text.lines().filter_map(module).collect())
}

/// A loaded BPF scheduler, or that of the kernel's release: distributions do not backport another one.
fn scheduler(root: &Root) -> Option<String> {
    const SCHED_EXT: &str = "sys/kernel/sched_ext";
    if root.line(&format!("{SCHED_EXT}/state")).is_some_and(|state| state == "enabled") {
        return Some(match root.line(&format!("{SCHED_EXT}/root/ops")) {
            Some(name) => format!("sched_ext ({name})"),
            None => "sched_ext".to_owned(),
        });
    }
    let release = root.line("proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    match version {
        (6, 6..) | (7.., _) => Some("EEVDF".to_owned()),
        (3..=6, _) => Some("CFS".to_owned()),
        _ => None,
    }
}

/// The mode in force, if readable; else that on the command line of a kernel with a choice; else the one it was built
/// for.
fn preemption(root: &Root, config: Option<&ConfigFile>) -> Option<String> {
    // Such as `none voluntary (full)`.
    let in_force = root
        .line("sys/kernel/debug/sched/preempt")
        .and_then(|choices| Some(choices.split_once('(')?.1.split_once(')')?.0.to_owned()));
    if in_force.is_some() {
        return in_force;
    }
    let version = root.line("proc/version")?;
    let has = |word: &str| version.split_ascii_whitespace().any(|other| other == word);
    let mode = || {
        let line = root.line("proc/cmdline")?;
        line.split_ascii_whitespace().find_map(|word| word.strip_prefix("preempt=")).map(str::to_owned)
    };
    let built = || {
        let options = [
            ("PREEMPT_NONE", "none"),
            ("PREEMPT_VOLUNTARY", "voluntary"),
            ("PREEMPT_LAZY", "lazy"),
            ("PREEMPT", "full"),
        ];
        let is_on = |option: &str| config.is_some_and(|found| found.option(option) == Some("y"));
        options.into_iter().find(|(option, _)| is_on(option)).map(|(_, name)| name.to_owned())
    };
    if has("PREEMPT_RT") || has("RT") {
        return Some("rt".to_owned());
    }
    let mode = if has("PREEMPT_DYNAMIC") { mode() } else { None };
    mode.or_else(built).or_else(|| has("PREEMPT").then(|| "full".to_owned()))
}
