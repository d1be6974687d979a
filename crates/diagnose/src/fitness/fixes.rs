//! What can be set for checks that are not ok.

use super::{Check, State};

/// A setting of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fix {
    /// Name of the check.
    pub check: &'static str,
    /// Its files; `*` stands for any part of a name. Files that do not exist have nothing to set.
    pub files: &'static str,
    /// The value that makes the check ok.
    pub value: &'static str,
}

/// All of them.
const FIXES: [Fix; 5] = [
    Fix {
        check: "governor",
        files: "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        value: "performance",
    },
    Fix { check: "turbo", files: "/sys/devices/system/cpu/intel_pstate/no_turbo", value: "1" },
    Fix { check: "turbo", files: "/sys/devices/system/cpu/cpufreq/boost", value: "0" },
    Fix { check: "swap", files: "/proc/sys/vm/swappiness", value: "1" },
    Fix { check: "huge-pages", files: "/sys/kernel/mm/transparent_hugepage/enabled", value: "madvise" },
];

/// The settings that make checks better.
pub fn fixes(checks: &[Check]) -> Vec<Fix> {
    let is_wanted =
        |fix: &Fix| checks.iter().any(|check| check.name == fix.check && check.state >= State::Warn);
    FIXES.into_iter().filter(is_wanted).collect()
}

#[cfg(test)]
mod tests {
    use model::fitness::Facts;

    use super::super::fitness;
    use super::*;

    #[test]
    fn checks_that_are_not_ok_have_their_fixes_and_others_none() {
        assert_eq!(fixes(&fitness(&Facts::default())), []);
        let mut facts = Facts::default();
        facts.environment.transparent_hugepages = Some("always".to_owned());
        facts.environment.cpu.turbo = Some(true);
        let names: Vec<&str> = fixes(&fitness(&facts)).iter().map(|fix| fix.check).collect();
        assert_eq!(names, ["turbo", "turbo", "huge-pages"]);
        facts.environment.transparent_hugepages = Some("madvise".to_owned());
        facts.environment.cpu.turbo = Some(false);
        assert_eq!(fixes(&fitness(&facts)), []);
    }

    #[test]
    fn every_fix_has_a_check() {
        let checks = fitness(&Facts::default());
        assert!(FIXES.iter().all(|fix| checks.iter().any(|check| check.name == fix.check)));
    }
}
