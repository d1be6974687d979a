//! Levels of cells, for matching and for display.

use model::cell::{Levels as _, RecordedCell, UNKNOWN};
use model::factor::{Factor, Place};

/// The levels of a cell in some factors.
pub type Levels = Vec<(Factor, String)>;

/// Key for matching cells. Two campaigns may use one name for different things: the key includes their content.
pub fn key(cell: &RecordedCell, free: &[Factor]) -> Levels {
    // The identity of its workload has the content of a database of the user's own.
    let identity = |factor: Factor| match factor {
        Factor::Scale => factor.shown_level(cell),
        factor => cell.identity(factor).unwrap_or_else(|| UNKNOWN.to_owned()),
    };
    free.iter().map(|factor| (*factor, identity(*factor))).collect()
}

/// Levels of a cell for display: names without their content.
pub fn shown(cell: &RecordedCell, free: &[Factor]) -> Levels {
    free.iter().map(|factor| (*factor, factor.shown_level(cell))).collect()
}

/// Whether texts leave out a level: it is unknown, or the default.
pub(crate) fn is_left_out(factor: Factor, level: &str) -> bool {
    let has_default = factor.place() != Place::Title;
    let is_default = has_default && factor.default_level().is_some_and(|default| default == level);
    factor == Factor::Warmup || level == UNKNOWN || is_default
}

/// Whether the level of [`Factor::Scale`] is a scale, and not the name of a database of the user's own.
fn is_scale(level: &str) -> bool {
    level.bytes().all(|byte| byte.is_ascii_digit())
}

/// Levels of a cell as text, without defaults and unknown levels.
pub fn in_words(levels: &[(Factor, String)]) -> String {
    let shown: Vec<String> = levels
        .iter()
        .filter(|(factor, level)| !is_left_out(*factor, level))
        .map(|(factor, level)| match factor {
            Factor::Workload | Factor::Protocol | Factor::Transport => level.clone(),
            Factor::Scale if !is_scale(level) => level.clone(),
            factor => format!("{} {level}", factor.name()),
        })
        .collect();
    if shown.is_empty() { "the only cell".to_owned() } else { shown.join(" · ") }
}

/// The factors in which these levels differ.
pub fn varied<'a>(all: impl Iterator<Item = &'a Levels> + Clone) -> Vec<Factor> {
    let Some(first) = all.clone().next() else { return Vec::new() };
    let differs = |(at, (factor, level)): (usize, &(Factor, String))| {
        all.clone().any(|other| other[at].1 != *level).then_some(*factor)
    };
    first.iter().enumerate().filter_map(differs).collect()
}

/// The part of some levels that belongs to these factors, or that does not.
pub fn part(levels: &Levels, factors: &[Factor], is_of: bool) -> Levels {
    levels.iter().filter(|(factor, _)| factors.contains(factor) == is_of).cloned().collect()
}
