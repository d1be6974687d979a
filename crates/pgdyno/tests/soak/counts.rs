//! The result of a soak: the injected faults, and what they broke.

use std::collections::BTreeMap;
use std::fmt;

/// Injected faults by kind, checked trials, and violations.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) rounds: u64,
    /// Number of faults by kind.
    faults: BTreeMap<String, u64>,
    /// Trials that were seen in a store before its campaign was complete.
    pub(crate) trials: u64,
    /// Damaged bundles that `store check` had to report.
    pub(crate) planted: u64,
    violations: Vec<String>,
    by_kind: BTreeMap<&'static str, u64>,
}

/// Kinds of violations, each reported with its count even if that is 0.
const KINDS: [&str; 12] = [
    LOST,
    DOUBLED,
    INCOMPLETE,
    CHECK,
    UNREPORTED,
    PANIC,
    HANG,
    PROCESSES,
    SOCKETS,
    MOUNTS,
    GROUPS,
    DIRECTORIES,
];
pub(crate) const LOST: &str = "finished trials lost or changed";
pub(crate) const DOUBLED: &str = "repeats with two usable trials";
pub(crate) const INCOMPLETE: &str = "campaigns that resume did not complete";
pub(crate) const CHECK: &str = "problems found by store check that were not planted";
pub(crate) const UNREPORTED: &str = "planted problems that store check did not find";
pub(crate) const PANIC: &str = "panics";
pub(crate) const HANG: &str = "commands that did not end";
pub(crate) const PROCESSES: &str = "processes left";
pub(crate) const SOCKETS: &str = "sockets left";
pub(crate) const MOUNTS: &str = "mounts left";
pub(crate) const GROUPS: &str = "control groups left";
pub(crate) const DIRECTORIES: &str = "directories left";

impl Counts {
    pub(crate) fn fault(&mut self, kind: impl ToString) {
        *self.faults.entry(kind.to_string()).or_default() += 1;
    }

    pub(crate) fn violation(&mut self, kind: &'static str, what: impl fmt::Display) {
        println!("         VIOLATION {kind}: {what}");
        *self.by_kind.entry(kind).or_default() += 1;
        self.violations.push(format!("{kind}: {what}"));
    }

    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} rounds, {} faults", self.rounds, self.faults.values().sum::<u64>())?;
        for (kind, count) in &self.faults {
            writeln!(f, "{count:>8}  {kind}")?;
        }
        writeln!(f, "{} finished trials checked, {} bundles damaged", self.trials, self.planted)?;
        for kind in KINDS {
            writeln!(f, "{:>8}  {kind}", self.by_kind.get(kind).copied().unwrap_or(0))?;
        }
        Ok(())
    }
}
