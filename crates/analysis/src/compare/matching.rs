//! Matching of the cells of two selections: those with equal levels in all factors that the selectors do not fix.

use std::collections::BTreeSet;

use model::cell::RecordedCell;
use model::factor::Factor;
use model::record::Trial;

use super::CompareError;
use crate::judgement::CommonSessions;
use crate::layout::ordered_cells;
use crate::levels::{Levels, in_words, key, shown};
use crate::select::Selector;

/// A selector with its trials.
pub(super) struct Selected<'a> {
    /// `A` is the baseline, the others are variants.
    pub(super) name: char,
    pub(super) selector: &'a Selector,
    pub(super) trials: Vec<&'a Trial>,
}

/// A cell of both sides.
pub(super) struct Shared<'a> {
    pub(super) levels: Levels,
    pub(super) a: Vec<&'a Trial>,
    pub(super) b: Vec<&'a Trial>,
}

impl<'a> Shared<'a> {
    /// The variant's cell: both sides have its levels, but for what is compared. A side has at least one trial.
    pub(super) fn level(&self) -> &RecordedCell {
        &self.b[0].cell
    }

    /// The sessions that both sides have in common.
    pub(super) fn sessions(&self) -> Option<CommonSessions<'a>> {
        CommonSessions::new(&self.a, &self.b)
    }
}

/// The matched cells of two sides.
pub(super) struct Matched<'a> {
    pub(super) fixed: Vec<Factor>,
    pub(super) shared: Vec<Shared<'a>>,
    pub(super) only_a: Vec<Levels>,
    pub(super) only_b: Vec<Levels>,
}

impl Selected<'_> {
    /// The fixed factors: those whose levels it names; if it names trials, those in which they agree.
    fn fixed(&self) -> BTreeSet<Factor> {
        if !self.selector.is_by_id() {
            return self.selector.levels().keys().copied().collect();
        }
        let varied = Factor::varied(self.trials.iter().map(|trial| &trial.cell));
        Factor::ALL.into_iter().filter(|factor| !varied.contains(factor)).collect()
    }
}

/// Matches the cells of a variant with those of the baseline.
pub(super) fn match_cells<'a>(a: &Selected<'a>, b: &Selected<'a>) -> Result<Matched<'a>, CompareError> {
    let overlap: Vec<&str> = a
        .trials
        .iter()
        .filter(|trial| b.trials.iter().any(|other| other.id == trial.id))
        .map(|trial| trial.id.as_str())
        .collect();
    if let Some(first) = overlap.first() {
        return Err(CompareError::Overlap {
            a: describe(a),
            b: describe(b),
            count: overlap.len(),
            first: (*first).to_owned(),
        });
    }
    let mut fixed: BTreeSet<Factor> = a.fixed().union(&b.fixed()).copied().collect();
    // A nanosecond is a unit of time with one acceleration, and an instruction with another.
    fixed.remove(&Factor::Acceleration);
    let free: Vec<Factor> = Factor::ALL.into_iter().filter(|factor| !fixed.contains(factor)).collect();
    let (cells_a, cells_b) = (by_key(a, &free)?, by_key(b, &free)?);
    let mut matched =
        Matched { fixed: fixed.into_iter().collect(), shared: vec![], only_a: vec![], only_b: vec![] };
    let all: Vec<&Trial> = a.trials.iter().chain(&b.trials).copied().collect();
    let mut keys: Vec<Levels> = Vec::new();
    for cell in ordered_cells(&all) {
        let key = key(&cell, &free);
        if keys.contains(&key) {
            continue;
        }
        let trials = |cells: &[(Levels, Vec<&'a Trial>)]| {
            cells.iter().find(|(known, _)| *known == key).map(|(_, trials)| trials.clone())
        };
        match (trials(&cells_a), trials(&cells_b)) {
            (Some(a), Some(b)) => matched.shared.push(Shared { levels: shown(&cell, &free), a, b }),
            (Some(_), None) => matched.only_a.push(key.clone()),
            (None, Some(_)) => matched.only_b.push(key.clone()),
            (None, None) => {}
        }
        keys.push(key);
    }
    match matched.shared.is_empty() {
        true => Err(no_shared_cell(a, b, &free)),
        false => Ok(matched),
    }
}

fn by_key<'a>(side: &Selected<'a>, free: &[Factor]) -> Result<Vec<(Levels, Vec<&'a Trial>)>, CompareError> {
    let mut cells: Vec<(Levels, Vec<&'a Trial>)> = Vec::new();
    for trial in &side.trials {
        let key = key(&trial.cell, free);
        match cells.iter_mut().find(|(known, _)| *known == key) {
            Some((_, trials)) => trials.push(trial),
            None => cells.push((key, vec![trial])),
        }
    }
    for (key, trials) in &cells {
        let varied = Factor::varied(trials.iter().map(|trial| &trial.cell));
        // Machines are replicates: each is a session.
        if let Some(factor) = varied.iter().find(|factor| **factor != Factor::Host) {
            let levels = factor.levels(trials.iter().map(|trial| &trial.cell));
            return Err(CompareError::SeveralCells {
                side: describe(side),
                factor: factor.name(),
                levels: levels.join(", "),
                cell: in_words(key),
            });
        }
    }
    Ok(cells)
}

fn no_shared_cell(a: &Selected<'_>, b: &Selected<'_>, free: &[Factor]) -> CompareError {
    let levels = |side: &Selected<'_>, factor: Factor| {
        let mut levels: Vec<String> = Vec::new();
        for trial in &side.trials {
            let level = key(&trial.cell, &[factor]).remove(0).1;
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        levels
    };
    let mut lines = String::new();
    let mut disjoint: Vec<Factor> = Vec::new();
    for factor in free {
        let (of_a, of_b) = (levels(a, *factor), levels(b, *factor));
        if of_a.iter().any(|level| !of_b.contains(level)) || of_b.iter().any(|level| !of_a.contains(level)) {
            lines += &format!(
                "\n  {}: {} has {}; {} has {}",
                factor.name(),
                a.name,
                of_a.join(", "),
                b.name,
                of_b.join(", ")
            );
        }
        if !of_a.iter().any(|level| of_b.contains(level)) {
            disjoint.push(*factor);
        }
    }
    if lines.is_empty() {
        lines = "\n  both sides have all levels, but no combination in common".to_owned();
    }
    let next = match disjoint.as_slice() {
        [] => "run the cells that one side lacks".to_owned(),
        factors if factors.contains(&Factor::Acceleration) => {
            "results of different accelerations are not comparable: select cells of one acceleration"
                .to_owned()
        }
        factors => {
            let example = |side: &Selected<'_>| {
                let levels = factors
                    .iter()
                    .map(|factor| format!(",{}={}", factor.name(), factor.level(&side.trials[0].cell)));
                format!("{}{}", side.selector, levels.collect::<String>())
            };
            format!("to compare these levels, fix them: `{}` `{}`", example(a), example(b))
        }
    };
    CompareError::NothingShared { a: describe(a), b: describe(b), levels: lines, next }
}

fn describe(side: &Selected<'_>) -> String {
    format!("{} ({})", side.name, side.selector)
}
