//! Comparisons by sessions: of each two cells that were measured in pairs.

use std::collections::BTreeMap;

use model::factor::{Factor, Place};
use model::merit::Merit;
use model::metrics::Better;
use model::paired::Side;
use model::record::Trial;
use plaintext::figures::{change, counted, duration};

use super::view;
use crate::compare::interval;
use crate::design::{Campaigns, Design};
use crate::judgement::{
    Attempt, CellPair, CommonSessions, Outcome, Row, attempt, judge_cells, paired_runs, runs,
};
use crate::layout::Layout;
use crate::levels::{in_words, is_left_out, shown};
use crate::margin::MetricMargin;
use crate::metric::Metric;

/// Two cells that were measured in pairs: the trials of their sessions.
pub(super) struct PairedCells<'a> {
    /// The trials of each side.
    trials: [Vec<&'a Trial>; 2],
}

/// The cells that were measured in pairs, in the order of their first sessions. All of them together are decided with one
/// error rate.
pub(super) fn paired_cells<'a>(trials: &[&'a Trial]) -> Vec<PairedCells<'a>> {
    let runs = paired_runs(trials.iter().copied());
    let mut sessions: BTreeMap<Attempt<'a>, Vec<&'a Trial>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| runs.contains(trial.run.id.as_str())) {
        sessions.entry(attempt(trial)).or_default().push(trial);
    }
    let mut all: Vec<PairedCells<'a>> = Vec::new();
    for mut sides in sessions.into_values() {
        // The baseline's position is the first.
        sides.sort_by_key(|trial| trial.position);
        let [a, b] = sides[..] else { continue };
        let is_same = |cells: &&mut PairedCells<'a>| {
            cells.trials[0][0].cell == a.cell && cells.trials[1][0].cell == b.cell
        };
        match all.iter_mut().find(is_same) {
            Some(cells) => {
                cells.trials[0].push(a);
                cells.trials[1].push(b);
            }
            None => all.push(PairedCells { trials: [vec![a], vec![b]] }),
        }
    }
    all
}

/// The comparisons of these cells; `columns` are the labels of the layout's.
pub(super) fn paired_comparisons(
    cells: &[PairedCells<'_>],
    layout: &Layout,
    columns: &[view::Column],
) -> Vec<view::PairedComparison> {
    let mut campaigns = Campaigns::default();
    let all = cells.iter().flat_map(|cells| cells.trials.iter().flatten());
    let effect = campaigns.smallest_effect(all.map(|trial| &trial.run));
    let rows = |which: usize| {
        let pair = |(cell, of): (usize, &PairedCells<'_>)| {
            let metric = Metric::paired(Merit::of(&of.trials[1][0].cell))[which].clone();
            let figure = |trial: &Trial| metric.head_value(trial);
            let [a, b] = of.trials.each_ref().map(|trials| runs(trials, figure));
            let margin = MetricMargin::new(&metric, &[], std::iter::empty()).of(effect, &a, &b);
            let sessions = CommonSessions::new(&of.trials[0], &of.trials[1]);
            let paired = sessions.map(|sessions| sessions.compare(&metric, figure, margin, cells.len()));
            CellPair { pair: 0, cell, a, b, margin, metric, design: Design::default(), paired }
        };
        let pairs: Vec<CellPair> = cells.iter().enumerate().map(pair).collect();
        let metrics: Vec<Metric> = pairs.iter().map(|pair| pair.metric.clone()).collect();
        judge_cells(pairs).into_iter().zip(metrics).collect::<Vec<(Row, Metric)>>()
    };
    let comparisons = rows(0).into_iter().zip(rows(1)).zip(rows(2)).zip(cells);
    let varied = Factor::varied(cells.iter().flat_map(|cells| &cells.trials).map(|trials| &trials[0].cell));
    comparisons
        .map(|(((deciding, cpu), instructions), cells)| {
            let is_counted = !instructions.0.a.values.is_empty();
            let rows = [deciding, cpu].into_iter().chain(Some(instructions).filter(|_| is_counted));
            comparison(&rows.collect::<Vec<_>>(), cells, &varied, layout, columns)
        })
        .collect()
}

/// The comparison of two cells; the first figure decides.
fn comparison(
    rows: &[(Row, Metric)],
    cells: &PairedCells<'_>,
    varied: &[Factor],
    layout: &Layout,
    columns: &[view::Column],
) -> view::PairedComparison {
    let cell_of = |side: Side| &cells.trials[side.index()][0].cell;
    let (a, b) = (cell_of(Side::A), cell_of(Side::B));
    let compared = Factor::varied([a, b]);
    let are_columns = compared.iter().all(|factor| factor.place() == Place::Column);
    let is_in_label = |factor: &Factor| are_columns && factor.place() == Place::Column;
    let label = |side: Side| {
        let cell = cell_of(side);
        let column = layout.columns.iter().position(|column| column.holds(cell));
        match column.filter(|_| are_columns) {
            Some(column) => columns[column].label.clone(),
            None => in_words(&shown(cell, &compared)),
        }
    };
    let is_shown = |factor: &Factor| {
        let is_usual = matches!(factor, Factor::Workload | Factor::Scale | Factor::Clients | Factor::Rate);
        !compared.contains(factor) && (is_usual || (varied.contains(factor) && !is_in_label(factor)))
    };
    let common: Vec<Factor> = Factor::ALL.into_iter().filter(is_shown).collect();
    // Levels that texts leave out, such as the default rate, are none here.
    let level = |factor: Factor| {
        Some(factor)
            .filter(|_| !is_left_out(factor, &factor.level(b)))
            .map(|factor| in_words(&shown(b, &[factor])))
    };
    let paired = rows[0].0.judged.paired.as_ref();
    view::PairedComparison {
        baseline: label(Side::A),
        variant: label(Side::B),
        cell: common.into_iter().filter_map(level).collect(),
        sentence: sentence(&rows[0]),
        disagreement: disagreement(rows),
        invalid: paired.map_or(0, |paired| paired.invalid),
        session_seconds: paired.and_then(|paired| paired.session_seconds),
        paused_cpu: paired.map(|paired| paired.paused_cpu).unwrap_or_default(),
        comparisons: paired.map_or(1, |paired| paired.comparisons),
        figures: rows.iter().map(figure).collect(),
    }
}

fn figure((row, metric): &(Row, Metric)) -> view::PairedFigure {
    let paired = row.judged.paired.as_ref();
    let interval = row.interval();
    let sessions =
        paired.into_iter().flat_map(|paired| paired.numbers.iter().zip(paired.sequence.log_ratios()));
    view::PairedFigure {
        metric: metric.to_string(),
        label: metric.in_words(None),
        better: metric.better().as_str(),
        verdict: row.judged.outcome.name(metric.better()),
        change: row.ratio().map(|ratio| ratio - 1.0),
        ci99_low: interval.map(|interval| interval.low - 1.0),
        ci99_high: interval.map(|interval| interval.high - 1.0),
        margin: row.margin(),
        sessions: sessions
            .map(|(session, log_ratio)| view::PairedSession { session: *session, change: log_ratio.exp_m1() })
            .collect(),
        sessions_left: paired.and_then(|paired| paired.sequence.sessions_left()),
        seconds_left: paired.and_then(|paired| paired.seconds_left()),
    }
}

/// `REGRESSION by throughput: -5.2% (-8.0% to -2.3%), 26 sessions`, what an open one takes, and why there is no verdict.
fn sentence((row, metric): &(Row, Metric)) -> String {
    let mut text = format!("{} by {}", row.judged.outcome.name(metric.better()), metric.in_words(None));
    if let Outcome::Refused(reason) = row.judged.outcome {
        text += &format!(": {}", reason.in_words());
    }
    if let Some(ratio) = row.ratio() {
        text += &format!(": {}", change(ratio - 1.0));
        text += &interval(row).map(|interval| format!(" ({interval})")).unwrap_or_default();
    }
    let Some(paired) = &row.judged.paired else { return text };
    text += &format!(", {}", counted(paired.sequence.sessions(), "session"));
    match (paired.sequence.sessions_left(), paired.seconds_left()) {
        (Some(0), _) => {}
        (Some(left), Some(seconds)) => {
            text += &format!("; about {left} more would decide it, {}", duration(seconds))
        }
        (Some(left), None) => text += &format!("; about {left} more would decide it"),
        (None, _) => text += "; too few to tell how many more it takes",
    }
    text
}

/// The verdicts of the figures that disagree with the deciding one: either shows a change, and the other is decided and shows none
/// in this direction. A change that is certain agrees with a larger one, even if it is within the margin.
fn disagreement(rows: &[(Row, Metric)]) -> Option<String> {
    let certainly_worse = |(row, metric): &(Row, Metric)| {
        let is_lower = match row.interval()? {
            interval if interval.high < 1.0 => true,
            interval if interval.low > 1.0 => false,
            _ => return None,
        };
        Some(is_lower == (metric.better() == Better::Higher))
    };
    let contradicts = |one: &(Row, Metric), other: &(Row, Metric)| {
        let worse = one.0.judged.outcome.is_worse(one.1.better());
        worse.is_some() && worse != certainly_worse(other)
    };
    let decided = |(row, metric): &(Row, Metric)| {
        let outcome = row.judged.outcome;
        outcome
            .is_decided()
            .then(|| format!("{} by {}", outcome.name(metric.better()), metric.in_words(None)))
    };
    let (deciding, others) = rows.split_first()?;
    let own = decided(deciding)?;
    let disagree = |other: &&(Row, Metric)| contradicts(deciding, other) || contradicts(other, deciding);
    let others: Vec<String> = others.iter().filter(disagree).filter_map(decided).collect();
    (!others.is_empty()).then(|| format!("{own}, but {}", others.join(" and ")))
}
