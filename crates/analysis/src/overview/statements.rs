//! The statements of the cells that play a trace: against the first column of their panel, or against another workload that plays
//! the same trace, such as one without a change of the schema.

use std::collections::{BTreeMap, HashMap};

use model::record::Trial;
use model::trace::PlayedStatement;
use store::hlog;

use super::view;
use crate::context::TrialContext;
use crate::design::Campaigns;
use crate::judgement::{Runs, is_usable};
use crate::margin::MetricMargin;
use crate::metric::{LatencyFigure, Metric};
use crate::statements::{PlayedCell, common_trace, compare_statements};
use crate::trial::counted::Counted;
use crate::trial::curve;

/// Statements of a comparison whose distributions, times and waits are shown: those with the largest part of the change.
const MAX_DETAILED: usize = 200;

/// A cell that plays a trace.
struct PlayingCell<'a> {
    panel: usize,
    row: usize,
    column: usize,
    trace: &'a str,
    trials: Vec<&'a Trial>,
}

/// The comparisons of all cells that play a trace, decided together.
pub(super) fn compared_statements(
    panels: &[view::Panel],
    columns: &[view::Column],
    trials: &[&Trial],
    contexts: &BTreeMap<String, TrialContext>,
) -> Vec<view::Statements> {
    let cells = playing_cells(panels, trials);
    let effect = Campaigns::default().smallest_effect(trials.iter().map(|trial| &trial.run));
    let mean = Metric::Latency(LatencyFigure::Mean);
    let margin = MetricMargin::new(&mean, &[], std::iter::empty());
    let margin = margin.of(effect, &Runs::default(), &Runs::default());
    let mut sides = Vec::new();
    let mut played = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        let Some(baseline) = baseline(&cells, cell) else { continue };
        let of = |cell: &PlayingCell<'_>| -> Vec<Vec<PlayedStatement>> {
            let usable = cell.trials.iter().filter(|trial| is_usable(trial));
            let known = usable.filter_map(|trial| contexts.get(&trial.id));
            known.map(|known| known.played.clone()).filter(|played| !played.is_empty()).collect()
        };
        played.push(PlayedCell {
            pair: sides.len(),
            cell: at,
            trace: cell.trace.to_owned(),
            played: [of(baseline), of(cell)],
            margin,
        });
        sides.push([baseline, cell]);
    }
    let compared = compare_statements(&played);
    compared
        .iter()
        .zip(&played)
        .zip(sides)
        .map(|((compared, played), [a, b])| {
            let mut shown =
                view::Statements::new(compared, name(a, b, panels, columns), name(b, a, panels, columns));
            let mut distributions = [0, 1].map(|side| distributions(&played.played[side]));
            for (statement, row) in shown.statements.iter_mut().zip(&compared.rows).take(MAX_DETAILED) {
                statement.over_time = row.over_time.clone();
                statement.waits = row.waits.clone();
                statement.latency = distributions
                    .each_mut()
                    .map(|by_statement| by_statement.get_mut(&statement.fingerprint).and_then(distribution));
            }
            shown
        })
        .collect()
}

fn playing_cells<'a>(panels: &[view::Panel], trials: &[&'a Trial]) -> Vec<PlayingCell<'a>> {
    let by_id: HashMap<&str, &'a Trial> = trials.iter().map(|trial| (trial.id.as_str(), *trial)).collect();
    let mut cells = Vec::new();
    for (panel, shown) in panels.iter().enumerate() {
        for (row, of_row) in shown.rows.iter().enumerate() {
            for (column, point) in of_row.points.iter().enumerate() {
                let Some(point) = point else { continue };
                let trials: Vec<&Trial> =
                    point.runs.iter().filter_map(|run| by_id.get(run.id.as_str()).copied()).collect();
                if let Some(trace) = common_trace(trials.iter().copied()) {
                    cells.push(PlayingCell { panel, row, column, trace, trials });
                }
            }
        }
    }
    cells
}

/// What a cell is compared with: the first column of its panel; else the first other panel with the trace, in the same column or
/// in its first one.
fn baseline<'c, 'a>(cells: &'c [PlayingCell<'a>], of: &PlayingCell<'a>) -> Option<&'c PlayingCell<'a>> {
    let of_panel = cells.iter().find(|cell| (cell.panel, cell.row) == (of.panel, of.row));
    let of_panel = of_panel.filter(|cell| cell.column == 0 && of.column > 0);
    let others = || cells.iter().filter(|cell| cell.trace == of.trace && cell.panel < of.panel);
    of_panel
        .or_else(|| others().find(|cell| cell.column == of.column))
        .or_else(|| others().find(|cell| cell.column == 0))
}

/// What distinguishes a cell from another: its column, its workload, or both.
fn name(
    of: &PlayingCell<'_>,
    other: &PlayingCell<'_>,
    panels: &[view::Panel],
    columns: &[view::Column],
) -> String {
    let column = columns.get(of.column).map(|column| column.label.clone()).unwrap_or_default();
    let workload = panels[of.panel].workload.clone().unwrap_or_default();
    match (of.panel == other.panel, of.column == other.column) {
        (true, _) => column,
        (false, true) => workload,
        (false, false) => format!("{workload}, {column}"),
    }
}

/// Execution times by fingerprint, of all trials together.
fn distributions(trials: &[Vec<PlayedStatement>]) -> HashMap<String, Counted> {
    let mut all: HashMap<String, Counted> = HashMap::new();
    for statement in trials.iter().flatten() {
        if let Some(values) = hlog::values_of(&statement.latency_ns) {
            all.entry(statement.fingerprint.clone()).or_default().add(&values);
        }
    }
    all
}

fn distribution(counted: &mut Counted) -> Option<view::Distribution> {
    let curve = curve(counted)?;
    Some(view::Distribution { q: curve.q, us: curve.us, count: curve.count })
}
