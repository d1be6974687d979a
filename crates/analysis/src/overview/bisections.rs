//! Bisections of an overview, and the answers that they are.

use std::collections::BTreeMap;

use model::cell::{Cell, RecordedCell};
use model::paired::PairedFigure;
use model::record::Trial;
use plaintext::figures::counted;

use super::answers::suspicions;
use super::view::{Answer, AnswerCell, AnswerKind, Panel, Point};
use crate::bisection::{Bisection, BisectionChange, BisectionPlace, BisectionState, bisection};
use crate::compare::Advice;
use crate::context::TrialContext;
use crate::design::Campaigns;
use crate::layout::{ColumnKey, Layout, PanelKey, plan};

/// The bisections among some runs.
pub(super) fn bisections(
    runs: &[Vec<&Trial>],
    contexts: &BTreeMap<String, TrialContext>,
    layout: &Layout,
    panels: &[Panel],
) -> Vec<Bisection> {
    let place = |cell: &Cell| {
        let cell = RecordedCell::from(cell.clone());
        let (column, panel) = (ColumnKey::new(&cell), PanelKey::new(&cell));
        let column = layout.columns.iter().position(|other| *other == column)?;
        let panel = layout.panels.iter().position(|other| *other == panel)?;
        let clients = cell.clients.known().copied();
        let row = panels[panel].rows.iter().position(|row| row.clients == clients)?;
        let place = BisectionPlace { panel, row, column };
        point(place, panels).map(|_| place)
    };
    let of_run = |trials: &Vec<&Trial>| {
        // The newest trial has the campaign as it was resumed.
        let newest_first: Vec<&Trial> = trials.iter().rev().copied().collect();
        bisection(&plan(&newest_first)?, trials, contexts, &place)
    };
    runs.iter().filter_map(of_run).collect()
}

fn point(place: BisectionPlace, panels: &[Panel]) -> Option<&Point> {
    panels.get(place.panel)?.rows.get(place.row)?.points.get(place.column)?.as_ref()
}

/// What a bisection has found; its cause is what distinguishes the levels around the largest change. `trials` are all that are shown.
pub(super) fn answer_on_bisection(bisection: &Bisection, panels: &[Panel], trials: &[&Trial]) -> Answer {
    let largest = bisection.changes.iter().max_by(|a, b| size(a).total_cmp(&size(b)));
    let sides = largest.and_then(|change| sides(change, bisection));
    let is_of_cpu = bisection.figure == PairedFigure::ServerCpu.as_str();
    let is_open = matches!(bisection.state, BisectionState::EndsOpen | BisectionState::Searching);
    Answer {
        subject: bisection.searched.clone(),
        column: sides.map(|(_, [_, after])| after),
        against: sides.map_or(0, |(_, [before, _])| before),
        kind: kind(bisection),
        sentence: bisection.sentence.clone(),
        confidence: (!is_open).then(|| confidence(bisection)),
        cell: sides.map(|(cell, _)| cell),
        size: largest.map_or(0.0, size),
        cpu_ratio: largest.and_then(|change| change.change).filter(|_| is_of_cpu).map(|change| 1.0 + change),
        why: Vec::new(),
        risks: risks(bisection, panels),
        next: is_open.then(|| next(bisection, trials)).into_iter().collect(),
    }
}

fn size(change: &BisectionChange) -> f64 {
    change.change.map_or(0.0, |change| change.ln_1p().abs())
}

/// The cell and the columns of the levels before and after a change; none if they are not in one row of a panel.
fn sides(change: &BisectionChange, bisection: &Bisection) -> Option<(AnswerCell, [usize; 2])> {
    let place = |level: usize| bisection.levels.get(level)?.place;
    let (before, after) = (place(change.before)?, place(change.after)?);
    let is_comparable = (before.panel, before.row) == (after.panel, after.row);
    let cell = AnswerCell { panel: after.panel, row: after.row };
    is_comparable.then_some((cell, [before.column, after.column]))
}

fn kind(bisection: &Bisection) -> AnswerKind {
    let is_worse = |change: f64| (change < 0.0) == (bisection.better == "higher");
    let changes: Vec<bool> =
        bisection.changes.iter().filter_map(|change| change.change).map(is_worse).collect();
    match (bisection.state, changes.contains(&true), changes.contains(&false)) {
        (BisectionState::EndsOpen | BisectionState::Searching | BisectionState::NoVerdict, ..) => {
            AnswerKind::Open
        }
        (BisectionState::NothingToFind, ..) => AnswerKind::Same,
        (BisectionState::Found, true, true) => AnswerKind::Mixed,
        (BisectionState::Found, false, _) => AnswerKind::Better,
        (BisectionState::Found, true, false) => AnswerKind::Worse,
    }
}

fn confidence(bisection: &Bisection) -> String {
    let percent = |share: f64| (share * 1e4).round() / 1e2;
    let sessions = counted(bisection.sessions, "session");
    let measured = format!("{sessions} of {} of {} levels", bisection.measured, bisection.levels.len());
    match bisection.state {
        BisectionState::NothingToFind => format!(
            "99% at any number of sessions; {sessions}; equivalent is within ±{}%",
            percent(bisection.ends.margin - 1.0)
        ),
        _ => format!(
            "a {} is named at a probability of {}%; {measured}",
            bisection.what,
            percent(bisection.confidence)
        ),
    }
}

fn risks(bisection: &Bisection, panels: &[Panel]) -> Vec<String> {
    let measurable = bisection.levels.iter().filter(|level| level.unavailable.is_none());
    let points: Vec<&Point> = measurable.filter_map(|level| point(level.place?, panels)).collect();
    let missing = bisection.levels.iter().filter(|level| level.unavailable.is_some()).count();
    let missing = (missing > 0).then(|| {
        format!("{} could not be measured, and may have the change, too", counted(missing, bisection.what))
    });
    missing.into_iter().chain(suspicions(&points)).collect()
}

/// The command that goes on with it, for as long again.
fn next(bisection: &Bisection, trials: &[&Trial]) -> Advice {
    let mut command = format!("pgdyno resume --run {}", bisection.run);
    let newest = trials.iter().rev().find(|trial| trial.run.id == bisection.run);
    if let Some(max_time) = newest.and_then(|trial| Campaigns::default().max_time(&trial.run)) {
        command += &format!(" --set max_time={}s", 2 * max_time.us() / 1_000_000);
    }
    Advice { text: "More sessions would decide it".to_owned(), commands: vec![command] }
}
