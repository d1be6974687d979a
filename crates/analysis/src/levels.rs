//! Levels of cells: by which cells are matched, and how people read them.

use std::collections::BTreeMap;

use model::cell::Cell;
use model::factor::{Factor, UNKNOWN};
use model::machine::HOST;

/// The levels of a cell in some factors.
pub type Levels = Vec<(Factor, String)>;

/// A cell as it is matched. Of two campaigns, one name may mean two things: their content belongs to it.
pub fn key(cell: &Cell, free: &[Factor]) -> Levels {
    let level = |factor: Factor| match factor {
        Factor::Settings => with_values(&cell.settings.name, &cell.settings.values),
        Factor::Sysctl => with_values(&cell.sysctl.name, &cell.sysctl.values),
        Factor::Workload => match cell.workload.mark() {
            Some(mark) => format!("{} ({mark})", factor.level(cell)),
            None => factor.level(cell),
        },
        Factor::Pin if cell.pin.driver.is_some() || cell.pin.server.is_some() => {
            let cpus = |cpus: &Option<String>| cpus.clone().unwrap_or_else(|| "any".to_owned());
            format!(
                "{} (driver {}, server {})",
                cell.pin.name,
                cpus(&cell.pin.driver),
                cpus(&cell.pin.server)
            )
        }
        factor => factor.level(cell),
    };
    free.iter().map(|factor| (*factor, level(*factor))).collect()
}

fn with_values(name: &str, values: &BTreeMap<String, String>) -> String {
    let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    match values.is_empty() {
        true => name.to_owned(),
        false => format!("{name} ({})", values.join(", ")),
    }
}

/// Levels of a cell for people: names without what stands behind them.
pub fn shown(cell: &Cell, free: &[Factor]) -> Levels {
    free.iter().map(|factor| (*factor, factor.level(cell))).collect()
}

/// Levels that text leaves out.
const DEFAULTS: [(Factor, &str); 14] = [
    (Factor::Settings, "default"),
    (Factor::Kernel, HOST),
    (Factor::Acceleration, "none"),
    (Factor::KernelArgs, "none"),
    (Factor::Sysctl, "default"),
    (Factor::Cpus, HOST),
    (Factor::Storage, HOST),
    (Factor::Host, "any"),
    (Factor::Threads, "1"),
    (Factor::Rate, "max"),
    (Factor::Pin, "none"),
    (Factor::Cache, "warm"),
    (Factor::Memory, "none"),
    (Factor::Disk, "none"),
];

/// A cell's levels for people, without those that go without saying and those that an import does not know.
pub fn in_words(levels: &[(Factor, String)]) -> String {
    let is_usual = |factor: Factor, level: &str| {
        factor == Factor::Warmup || level == UNKNOWN || DEFAULTS.contains(&(factor, level))
    };
    let said: Vec<String> = levels
        .iter()
        .filter(|(factor, level)| !is_usual(*factor, level))
        .map(|(factor, level)| match factor {
            Factor::Workload | Factor::Protocol | Factor::Transport => level.clone(),
            factor => format!("{} {level}", factor.name()),
        })
        .collect();
    if said.is_empty() { "the only cell".to_owned() } else { said.join(" · ") }
}

/// The factors that are not the same in all of these levels.
pub fn varied<'a>(all: impl Iterator<Item = &'a Levels> + Clone) -> Vec<Factor> {
    let Some(first) = all.clone().next() else { return Vec::new() };
    let differs = |(at, (factor, level)): (usize, &(Factor, String))| {
        all.clone().any(|other| other[at].1 != *level).then_some(*factor)
    };
    first.iter().enumerate().filter_map(differs).collect()
}

/// The part of some levels that is, or is not, of these factors.
pub fn part(levels: &Levels, factors: &[Factor], is_of: bool) -> Levels {
    levels.iter().filter(|(factor, _)| factors.contains(factor) == is_of).cloned().collect()
}
