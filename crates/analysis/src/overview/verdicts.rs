//! Verdicts on a report's columns: each compared with the first one, over all panels and numbers of clients.

use std::collections::{BTreeMap, HashMap};

use model::cell::{RecordedCell, UNKNOWN};
use model::factor::{Factor, Place};
use model::merit::Merit;
use model::record::Trial;
use stats::MARGIN;

use super::answers::JudgedColumns;
use super::paired::{PairedCells, decided_together, in_pairs};
use super::parts::part_figure;
use super::view;
use crate::compare::{Differences, MetricRows, Pair};
use crate::context::TrialContext;
use crate::design::Campaigns;
use crate::judgement::{Caution, CellPair, CommonSessions, Row, Sessions, deciding_row, judge_cells, runs};
use crate::levels::Levels;
use crate::margin::MetricMargin;
use crate::metric::Metric;

/// Adds a verdict on its panel's figure to each point, and returns the comparisons of each column. `cells` are the panels', with
/// any number of clients, `trials` all that are shown. Cells that only one of two columns has are not compared. Scripts and
/// phases of cells that have several are judged next to them, as in `compare`: all of them are one matrix of their own. `paired` are the
/// comparisons of the report that are decided by sessions.
pub(super) fn judge_columns<'a>(
    panels: &mut [view::Panel],
    cells: &[RecordedCell],
    columns: usize,
    trials: &[&'a Trial],
    contexts: &BTreeMap<String, TrialContext>,
    paired: &[PairedCells<'a>],
) -> JudgedColumns {
    let mut campaigns = Campaigns::default();
    let effect = campaigns.smallest_effect(trials.iter().map(|trial| &trial.run));
    let together = decided_together(paired, &mut campaigns);
    let by_id: HashMap<&str, &'a Trial> = trials.iter().map(|trial| (trial.id.as_str(), *trial)).collect();
    let cell_pair = |campaigns: &mut Campaigns<'a>,
                     metric: Metric,
                     [pair, cell]: [usize; 2],
                     sides: [&view::Point; 2],
                     figure: &FigureOf<'_>,
                     together: usize| {
        let sides = sides.map(|point| trials_of(point, &by_id));
        let sessions = CommonSessions::new(&sides[0], &sides[1]);
        let [a, b] = match &sessions {
            Some(sessions) => sessions.trials.each_ref(),
            None => sides.each_ref(),
        };
        let (a, b) = (runs(a, figure), runs(b, figure));
        let margin = MetricMargin::new(&metric, &[], std::iter::empty()).of(effect, &a, &b);
        let of_both = a.trials.iter().chain(&b.trials);
        let of_both = of_both.filter_map(|id| Some(&by_id.get(id.as_str())?.run));
        let mut design = campaigns.design(of_both, a.figures(), b.figures());
        design.sessions = Sessions::new(a.figures(), b.figures(), &[]);
        let paired = sessions.map(|sessions| {
            let deciding = sessions.deciding(campaigns);
            sessions.compare(&metric, figure, margin, &deciding, together)
        });
        CellPair { pair, cell, a, b, margin, metric, design, paired }
    };
    let (mut pairs, mut wholes, mut parts) = (Vec::new(), Vec::new(), Vec::new());
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
            let merit = Merit::of(&cells[at_panel]);
            let of_parts = Metric::of_parts(&cells[at_panel]);
            for (at_row, row) in panel.rows.iter().enumerate() {
                let levels = levels(&cells[at_panel], row.clients);
                match (&row.points[0], &row.points[column]) {
                    (Some(a), Some(b)) => {
                        let at = [pairs.len(), pair.cells.len()];
                        let place = [at_panel, at_row, column];
                        let sessions = CommonSessions::new(&trials_of(a, &by_id), &trials_of(b, &by_id));
                        let deciding = sessions.map(|sessions| sessions.deciding(&mut campaigns));
                        let mut judge = |metric: &Metric, figure: &FigureOf<'_>, together: usize| {
                            let pair =
                                cell_pair(&mut campaigns, metric.clone(), at, [a, b], figure, together);
                            (pair, place)
                        };
                        match deciding {
                            None => {
                                let shown = |trial: &Trial| {
                                    let mut all = a.runs.iter().chain(&b.runs);
                                    all.find(|run| run.id == trial.id)?.figure
                                };
                                wholes.push(judge(&Metric::of(merit), &shown, together));
                            }
                            Some(deciding) => {
                                for metric in deciding {
                                    let figure = |trial: &Trial| metric.head_value(trial);
                                    wholes.push(judge(&metric, &figure, together));
                                }
                            }
                        }
                        for metric in &of_parts {
                            let figure = |trial: &Trial| part_figure(metric, trial, contexts);
                            parts.push(judge(metric, &figure, paired.len() * of_parts.len()));
                        }
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
    let wholes: Vec<(Row, Metric, At)> = judged(wholes).collect();
    let parts: Vec<(Row, Metric, At)> = judged(parts).collect();
    let mut judging: Vec<(Row, Metric)> = Vec::new();
    let mut cells = HashMap::new();
    for of_cell in wholes.chunk_by(|(.., a), (.., b)| a == b) {
        let [panel, at, column] = of_cell[0].2;
        let Some(point) = &mut panels[panel].rows[at].points[column] else { continue };
        let deciding = deciding_row(of_cell.iter().map(|(row, metric, _)| (row, metric)));
        let (row, metric, _) = &of_cell[deciding];
        judging.push((row.clone(), metric.clone()));
        cells.insert([row.pair, row.cell], view::AnswerCell { panel, row: at });
        let mut of_point = verdict(row, metric);
        if deciding > 0 {
            let (first, of_panel, _) = &of_cell[0];
            of_point.by = Some(metric.in_words(None));
            of_point.cautions.push(format!(
                "the verdict is by {}; {}",
                metric.in_words(None),
                in_pairs(first, of_panel)
            ));
        }
        point.verdict = Some(of_point);
    }
    for (row, metric, [panel, at, column]) in &parts {
        let Some(point) = &mut panels[*panel].rows[*at].points[*column] else { continue };
        let name = metric.to_string();
        let scripts = point.scripts.iter_mut().map(|of| (&of.metric, &mut of.verdict));
        let phases = point.phases.iter_mut().map(|of| (&of.metric, &mut of.verdict));
        let own = point.figures.iter_mut().map(|of| (&of.metric, &mut of.verdict));
        if let Some((_, of_part)) = scripts.chain(phases).chain(own).find(|(metric, _)| **metric == name) {
            *of_part = Some(verdict(row, metric));
        }
    }
    let mut by_metric: Vec<MetricRows> = Vec::new();
    let parts = parts.into_iter().map(|(row, metric, _)| (row, metric));
    for (row, metric) in judging.into_iter().chain(parts) {
        match by_metric.iter_mut().find(|rows| rows.metric == metric) {
            Some(rows) => rows.rows.push(row),
            None => {
                by_metric.push(MetricRows { metric, kind: None, rows: vec![row], advice: Vec::new() });
            }
        }
    }
    JudgedColumns { pairs, by_metric, cells }
}

/// The figure of a trial that is compared.
type FigureOf<'a> = dyn Fn(&Trial) -> Option<f64> + 'a;

/// Indices of a panel, its row and a column.
type At = [usize; 3];

/// The rows of some cells, which are one matrix for the adjustment of p, with their metrics and places.
fn judged(cells: Vec<(CellPair, At)>) -> impl Iterator<Item = (Row, Metric, At)> {
    let (cells, places): (Vec<CellPair>, Vec<At>) = cells.into_iter().unzip();
    let metrics: Vec<Metric> = cells.iter().map(|cell| cell.metric.clone()).collect();
    judge_cells(cells).into_iter().zip(metrics).zip(places).map(|((row, metric), place)| (row, metric, place))
}

fn levels(cell: &RecordedCell, clients: Option<u32>) -> Levels {
    let level = |factor: Factor| match factor {
        Factor::Clients => clients.map_or_else(|| UNKNOWN.to_owned(), |clients| clients.to_string()),
        factor => factor.shown_level(cell),
    };
    Factor::ALL
        .into_iter()
        .filter(|factor| factor.place() != Place::Column)
        .map(|factor| (factor, level(factor)))
        .collect()
}

fn trials_of<'a>(point: &view::Point, trials: &HashMap<&str, &'a Trial>) -> Vec<&'a Trial> {
    point.runs.iter().filter_map(|run| trials.get(run.id.as_str()).copied()).collect()
}

fn verdict(row: &Row, metric: &Metric) -> view::Verdict {
    let paired = row.judged.paired.as_ref();
    let [ci95, ci99] = match paired {
        None => [row.interval(), None],
        Some(_) => [None, row.interval()],
    };
    let caution = |Caution { side, text }| match side {
        0 => format!("the baseline: {text}"),
        _ => text,
    };
    let apart = row.sessions.filter(|sessions| sessions.spread.is_none()).map(|_| {
        "measured in another session than the baseline, or on another machine; how much these differ is unknown".to_owned()
    });
    view::Verdict {
        verdict: row.judged.outcome.name(metric.better()),
        by: None,
        change: row.ratio().map(|ratio| ratio - 1.0),
        ci95_low: ci95.map(|interval| interval.low - 1.0),
        ci95_high: ci95.map(|interval| interval.high - 1.0),
        ci99_low: ci99.map(|interval| interval.low - 1.0),
        ci99_high: ci99.map(|interval| interval.high - 1.0),
        sessions: paired.map(|paired| paired.sequence.sessions()),
        sessions_left: paired.and_then(|paired| paired.sequence.sessions_left()),
        p_holm: row.judged.p_holm,
        margin: row.margin().unwrap_or(MARGIN),
        cautions: row.cautions().into_iter().map(caution).chain(apart).collect(),
    }
}
