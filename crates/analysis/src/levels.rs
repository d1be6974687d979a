//! Levels of cells: by which cells are matched, and how people read them.

use model::cell::{Levels as _, RecordedCell, UNKNOWN};
use model::factor::{Factor, Place};

/// The levels of a cell in some factors.
pub type Levels = Vec<(Factor, String)>;

/// A cell as it is matched. Of two campaigns, one name may mean two things: their content belongs to it.
pub fn key(cell: &RecordedCell, free: &[Factor]) -> Levels {
    let identity = |factor: Factor| cell.identity(factor).unwrap_or_else(|| UNKNOWN.to_owned());
    free.iter().map(|factor| (*factor, identity(*factor))).collect()
}

/// Levels of a cell for people: names without what stands behind them.
pub fn shown(cell: &RecordedCell, free: &[Factor]) -> Levels {
    free.iter().map(|factor| (*factor, factor.level(cell))).collect()
}

/// A cell's levels for people, without defaults and those that an import does not know.
pub fn in_words(levels: &[(Factor, String)]) -> String {
    let is_default = |factor: Factor, level: &str| {
        let has_default = factor.place() != Place::Title;
        has_default && factor.default_level().is_some_and(|default| default == level)
    };
    let is_left_out = |factor: Factor, level: &str| {
        factor == Factor::Warmup || level == UNKNOWN || is_default(factor, level)
    };
    let shown: Vec<String> = levels
        .iter()
        .filter(|(factor, level)| !is_left_out(*factor, level))
        .map(|(factor, level)| match factor {
            Factor::Workload | Factor::Protocol | Factor::Transport => level.clone(),
            factor => format!("{} {level}", factor.name()),
        })
        .collect();
    if shown.is_empty() { "the only cell".to_owned() } else { shown.join(" · ") }
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
