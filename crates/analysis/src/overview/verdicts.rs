//! Verdicts on a report's columns: each compared with the first one, over all panels and numbers of clients.

use model::cell::{RecordedCell, UNKNOWN};
use model::factor::{Factor, Place};
use model::machine::Acceleration;
use model::metrics::Better;
use model::record::Trial;
use stats::MARGIN;

use super::view;
use crate::compare::{Differences, MetricRows, Pair, sentence};
use crate::judgement::{CellPair, Row, Runs, acceleration, judge_cells};
use crate::levels::Levels;
use crate::margin::{Effects, MetricMargin};
use crate::metric::Metric;

/// Adds a verdict to each point, and returns a summary of each column. `cells` are the panels', with any number of
/// clients, `all` their trials by run. Cells that only one of two columns has are not compared.
pub(crate) fn judge_columns(
    panels: &mut [view::Panel],
    cells: &[RecordedCell],
    columns: usize,
    all: &[Vec<&Trial>],
) -> Vec<view::Comparison> {
    let of_runs = all.iter().filter_map(|trials| Some(&trials.first()?.run));
    let effect = Effects::default().smallest(of_runs);
    let margin = MetricMargin::new(&Metric::Tps, &[], std::iter::empty());
    let (mut pairs, mut cells_of_pairs, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for column in 1..columns {
        let mut pair = Pair {
            variant: column,
            fixed: Vec::new(),
            cells: Vec::new(),
            only_baseline: Vec::new(),
            only_variant: Vec::new(),
            differences: Differences::default(),
        };
        for (at_panel, panel) in panels.iter().enumerate() {
            for (at_row, row) in panel.rows.iter().enumerate() {
                let levels = levels(&cells[at_panel], row.clients);
                match (&row.points[0], &row.points[column]) {
                    (Some(a), Some(b)) => {
                        let acceleration = acceleration(&cells[at_panel]);
                        let (a, b) = (runs(a, acceleration), runs(b, acceleration));
                        let margin = margin.of(effect, &a, &b);
                        let cell = pair.cells.len();
                        cells_of_pairs.push(CellPair { pair: pairs.len(), cell, a, b, margin });
                        places.push([at_panel, at_row, column]);
                        pair.cells.push(levels);
                    }
                    (Some(_), None) => pair.only_baseline.push(levels),
                    (None, Some(_)) => pair.only_variant.push(levels),
                    (None, None) => {}
                }
            }
        }
        pairs.push(pair);
    }
    let rows = judge_cells(cells_of_pairs);
    for (row, [panel, at, column]) in rows.iter().zip(places) {
        if let Some(point) = &mut panels[panel].rows[at].points[column] {
            point.verdict = Some(verdict(row));
        }
    }
    let rows = MetricRows { metric: Metric::Tps, kind: None, rows };
    pairs
        .iter()
        .enumerate()
        .filter(|(_, pair)| !pair.cells.is_empty())
        .map(|(at, pair)| view::Comparison {
            column: pair.variant,
            sentence: sentence(&rows, at, &pairs),
            unshared: pair.only_baseline.len() + pair.only_variant.len(),
        })
        .collect()
}

fn levels(cell: &RecordedCell, clients: Option<u32>) -> Levels {
    let level = |factor: Factor| match factor {
        Factor::Clients => clients.map_or_else(|| UNKNOWN.to_owned(), |clients| clients.to_string()),
        factor => factor.level(cell),
    };
    Factor::ALL
        .into_iter()
        .filter(|factor| factor.place() != Place::Column)
        .map(|factor| (factor, level(factor)))
        .collect()
}

/// The throughputs of the usable trials.
fn runs(point: &view::Point, acceleration: Acceleration) -> Runs {
    let usable: Vec<Option<f64>> =
        point.runs.iter().filter(|trial| trial.validity != "invalid").map(|trial| trial.tps).collect();
    let values: Vec<f64> = usable.iter().copied().flatten().collect();
    Runs { acceleration, without: usable.len() - values.len(), values, ..Runs::default() }
}

fn verdict(row: &Row) -> view::Verdict {
    let welch = row.judged.comparison.as_ref().and_then(|comparison| comparison.welch);
    let interval = welch.and_then(|welch| welch.confidence_interval(0.95));
    view::Verdict {
        verdict: row.judged.outcome.name(Better::Higher),
        change: row.ratio().map(|ratio| ratio - 1.0),
        ci95_low: interval.map(|interval| interval.low - 1.0),
        ci95_high: interval.map(|interval| interval.high - 1.0),
        p_holm: row.judged.p_holm,
        margin: row.judged.comparison.as_ref().map_or(MARGIN, |comparison| comparison.margin),
    }
}
