//! Fitness of a machine for measurements: checks, each a function from its facts to one judgement.

mod disk;
mod fixes;
mod kernel;
mod memory;
mod processor;

use model::fitness::Facts;

pub use fixes::{Fix, fixes};

/// Result of a check. The order is from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Nothing to fix.
    Ok,
    /// Could not be determined.
    Unknown,
    /// Figures will be noisier than on other machines, or different.
    Warn,
    /// Figures can't be trusted.
    Bad,
}

impl State {
    /// Name in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Subject of the check: `processor`, `memory`, `disk` or `kernel`.
    pub group: &'static str,
    /// Name of the check, such as `clocksource`.
    pub name: &'static str,
    /// Result of the check.
    pub state: State,
    /// The evidence, in figures.
    pub evidence: String,
    /// What to do; `None` if there is nothing to do.
    pub advice: Option<String>,
}

/// Every check, in groups.
pub fn fitness(facts: &Facts) -> Vec<Check> {
    let groups: [(&'static str, &[(&'static str, CheckFn)]); 4] = [
        ("processor", &processor::CHECKS),
        ("memory", &memory::CHECKS),
        ("disk", &disk::CHECKS),
        ("kernel", &kernel::CHECKS),
    ];
    let check = |group, name, judge: CheckFn| {
        let Judgement { state, evidence, advice } = judge(facts);
        Check { group, name, state, evidence, advice }
    };
    groups
        .into_iter()
        .flat_map(|(group, checks)| checks.iter().map(move |(name, judge)| check(group, *name, *judge)))
        .collect()
}

type CheckFn = fn(&Facts) -> Judgement;

/// A state with its reasons.
#[derive(Debug, PartialEq, Eq)]
struct Judgement {
    state: State,
    evidence: String,
    advice: Option<String>,
}

fn ok(evidence: impl Into<String>) -> Judgement {
    Judgement { state: State::Ok, evidence: evidence.into(), advice: None }
}

fn unknown(evidence: impl Into<String>) -> Judgement {
    Judgement { state: State::Unknown, evidence: evidence.into(), advice: None }
}

fn warn(evidence: impl Into<String>, advice: impl Into<String>) -> Judgement {
    Judgement { state: State::Warn, evidence: evidence.into(), advice: Some(advice.into()) }
}

fn bad(evidence: impl Into<String>, advice: impl Into<String>) -> Judgement {
    Judgement { state: State::Bad, evidence: evidence.into(), advice: Some(advice.into()) }
}

/// The state of a figure that is fine up to one limit and bad above another.
fn state_above(figure: f64, warn_above: f64, bad_above: f64) -> State {
    match figure {
        figure if figure > bad_above => State::Bad,
        figure if figure > warn_above => State::Warn,
        _ => State::Ok,
    }
}

/// A judgement with this state; the advice is used only if there is something to do.
fn judged(state: State, evidence: String, advice: &str) -> Judgement {
    let advice = matches!(state, State::Warn | State::Bad).then(|| advice.to_owned());
    Judgement { state, evidence, advice }
}

fn sysctl<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    facts.environment.sysctl.get(name).map(String::as_str)
}

fn sysctl_number(facts: &Facts, name: &str) -> Option<i64> {
    sysctl(facts, name)?.parse().ok()
}

/// `23.5 GiB`.
fn gib(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1 << 30);
    if gib >= 1.0 { format!("{gib:.1} GiB") } else { format!("{:.0} MiB", gib * 1024.0) }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_facts_have_no_warnings() {
        for check in fitness(&Facts::default()) {
            let expected = if check.name == "virtualization" { State::Ok } else { State::Unknown };
            assert_eq!(check.state, expected, "{check:?}");
            assert!(!check.evidence.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = fitness(&Facts::default()).iter().map(|check| check.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
