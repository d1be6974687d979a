//! The series of each cell: its runs at each step, relative to the control if there is one, and their change points.

use std::collections::HashMap;

use model::factor::Factor;
use model::machine::Acceleration;
use model::record::Trial;
use stats::{ChangePoint, MIN_VALUES, Sample, change_points_of_all, medians};

use super::steps::session;
use super::{HistoryAxis, HistoryError, Series, Step, Tested};
use crate::judgement::{is_usable, runs};
use crate::layout::ordered_cells;
use crate::levels::{Levels, in_words, key, shown};
use crate::select::Selector;

/// Figures by trial, each divided by the median of its control: the usable trials of the same run with equal levels in
/// all factors that the control does not name. A trial without a control has none.
pub(super) fn relative<'a>(
    control: &Selector,
    trials: &[(&'a Trial, String)],
    controls: &[&Trial],
    figure: impl Fn(&Trial) -> Option<f64>,
) -> HashMap<&'a str, f64> {
    let others: Vec<Factor> = Factor::ALL
        .into_iter()
        .filter(|factor| !control.levels().contains_key(factor) || *factor == Factor::Acceleration)
        .collect();
    let place = |trial: &Trial| (session(trial), key(&trial.cell, &others));
    let mut sessions: HashMap<_, Vec<f64>> = HashMap::new();
    for trial in controls.iter().filter(|trial| is_usable(trial)) {
        if let Some(figure) = figure(trial) {
            sessions.entry(place(trial)).or_default().push(figure);
        }
    }
    let medians: HashMap<_, f64> = sessions
        .into_iter()
        .filter_map(|(place, figures)| Some((place, Sample::new(figures)?.median())))
        .filter(|(_, median)| *median != 0.0)
        .collect();
    trials
        .iter()
        .filter_map(|(trial, _)| Some((trial.id.as_str(), figure(trial)? / medians.get(&place(trial))?)))
        .collect()
}

/// The series of all cells, in the order of the cells.
pub(super) fn cell_series(
    over: HistoryAxis,
    steps: &[Step],
    trials: &[(&Trial, String)],
    figure: impl Fn(&Trial) -> Option<f64>,
) -> Result<Vec<Series>, HistoryError> {
    let free: Vec<Factor> = Factor::ALL.into_iter().filter(|factor| Some(*factor) != over.factor()).collect();
    let places: HashMap<&str, usize> =
        steps.iter().enumerate().map(|(place, step)| (step.key.as_str(), place)).collect();
    let mut by_cell: HashMap<Levels, Vec<Vec<&Trial>>> = HashMap::new();
    for (trial, step) in trials {
        if let Some(place) = places.get(step.as_str()) {
            let points =
                by_cell.entry(key(&trial.cell, &free)).or_insert_with(|| vec![Vec::new(); steps.len()]);
            points[*place].push(trial);
        }
    }
    let mut series = Vec::new();
    let all: Vec<&Trial> = trials.iter().map(|(trial, _)| *trial).collect();
    for cell in ordered_cells(&all) {
        // A cell with another server belongs to the same series.
        let Some(points) = by_cell.remove(&key(&cell, &free)) else { continue };
        let levels = shown(&cell, &free);
        for (step, trials) in steps.iter().zip(&points) {
            require_one_server(over, step, &levels, trials)?;
        }
        series.push(point_series(levels, &points, &figure));
    }
    search(&mut series);
    Ok(series)
}

/// Searches all series that can be searched, together: the more there are, the more have a change by chance.
fn search(all: &mut [Series]) {
    let searched: Vec<&mut Series> = all.iter_mut().filter(|series| series.tested == Tested::Yes).collect();
    let medians: Vec<&[Option<f64>]> = searched.iter().map(|series| series.medians.as_slice()).collect();
    let found: Vec<Option<Vec<ChangePoint>>> = change_points_of_all(&medians);
    for (series, changes) in searched.into_iter().zip(found) {
        match changes {
            None => series.tested = Tested::NoRatio,
            Some(changes) => {
                series.accepted = vec![None; changes.len()];
                series.changes = changes;
            }
        }
    }
}

/// A version or commit may have two servers, built in two ways: these must not be averaged.
fn require_one_server(
    over: HistoryAxis,
    step: &Step,
    cell: &Levels,
    trials: &[&Trial],
) -> Result<(), HistoryError> {
    if over.factor() != Some(Factor::Server) {
        return Ok(());
    }
    let mut servers = Factor::Server.levels(trials.iter().map(|trial| &trial.cell));
    // 18 and 18.1 are the same if the server reports 18.1.
    let is_version = |server: &String| server.starts_with(|c: char| c.is_ascii_digit());
    let mut seen = false;
    servers.retain(|server| !is_version(server) || !std::mem::replace(&mut seen, true));
    match servers.len() {
        0 | 1 => Ok(()),
        _ => Err(HistoryError::SeveralServers {
            step: step.label.clone(),
            levels: servers.join(", "),
            cell: in_words(cell),
        }),
    }
}

fn point_series(cell: Levels, points: &[Vec<&Trial>], figure: impl Fn(&Trial) -> Option<f64>) -> Series {
    let points: Vec<_> = points.iter().map(|trials| runs(trials, &figure)).collect();
    let values: Vec<&[f64]> = points.iter().map(|runs| runs.values.as_slice()).collect();
    // Non-finite figures are not stored; if there is one anyway, all medians are unknown.
    let medians = medians(&values).unwrap_or_else(|| vec![None; points.len()]);
    let known = medians.iter().flatten().count();
    let usable = points.iter().any(|runs| runs.without > 0 || !runs.values.is_empty());
    let has_logarithms = medians.iter().flatten().all(|median| *median > 0.0 && median.is_finite());
    let tested = match () {
        () if !usable => Tested::Invalid,
        () if points.iter().any(|runs| runs.acceleration == Acceleration::Tcg) => Tested::Emulated,
        () if known == 0 => Tested::NoFigure,
        () if !has_logarithms => Tested::NoRatio,
        () if known < MIN_VALUES => Tested::FewPoints,
        () => Tested::Yes,
    };
    Series { cell, points, medians, tested, accepted: Vec::new(), changes: Vec::new() }
}
