//! Comparisons by sessions: of each two cells that were measured in pairs.

use std::collections::BTreeMap;

use model::factor::{Factor, Place};
use model::merit::Merit;
use model::metrics::Better;
use model::paired::Side;
use model::record::Trial;
use plaintext::figures::{change, counted, duration};

use super::answers::answer_on_pair;
use super::view;
use crate::compare::interval;
use crate::design::{Campaigns, Design};
use crate::judgement::{
    Attempt, CellPair, CommonSessions, Outcome, Row, attempt, deciding_row, judge_cells, paired_runs, runs,
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

/// Number of comparisons that are decided together: for each cell one for each figure that decides.
pub(super) fn decided_together<'a>(cells: &[PairedCells<'a>], campaigns: &mut Campaigns<'a>) -> usize {
    let sessions = cells.iter().filter_map(PairedCells::sessions);
    sessions.map(|sessions| sessions.deciding(campaigns).len()).sum()
}

impl<'a> PairedCells<'a> {
    fn sessions(&self) -> Option<CommonSessions<'a>> {
        CommonSessions::new(&self.trials[0], &self.trials[1])
    }
}

/// The comparisons of these cells, with answers on those whose sides are no columns; `columns` are those of the layout,
/// `trials` all that are shown.
pub(super) fn paired_comparisons<'a>(
    cells: &[PairedCells<'a>],
    layout: &Layout,
    columns: &[view::Column],
    trials: &[&Trial],
) -> (Vec<view::PairedComparison>, Vec<view::Answer>) {
    let mut campaigns = Campaigns::default();
    let all = cells.iter().flat_map(|cells| cells.trials.iter().flatten());
    let effect = campaigns.smallest_effect(all.map(|trial| &trial.run));
    let together = decided_together(cells, &mut campaigns);
    let mut rows = |which: usize| {
        let pair = |(cell, of): (usize, &PairedCells<'a>)| {
            let metric = Metric::paired(Merit::of(&of.trials[1][0].cell))[which].clone();
            let figure = |trial: &Trial| metric.head_value(trial);
            let [a, b] = of.trials.each_ref().map(|trials| runs(trials, figure));
            let margin = MetricMargin::new(&metric, &[], std::iter::empty()).of(effect, &a, &b);
            let paired = of.sessions().map(|sessions| {
                let deciding = sessions.deciding(&mut campaigns);
                sessions.compare(&metric, figure, margin, &deciding, together)
            });
            CellPair { pair: 0, cell, a, b, margin, metric, design: Design::default(), paired }
        };
        let pairs: Vec<CellPair> = cells.iter().enumerate().map(pair).collect();
        let metrics: Vec<Metric> = pairs.iter().map(|pair| pair.metric.clone()).collect();
        judge_cells(pairs).into_iter().zip(metrics).collect::<Vec<(Row, Metric)>>()
    };
    let comparisons = rows(0).into_iter().zip(rows(1)).zip(rows(2)).zip(cells);
    let varied = Factor::varied(cells.iter().flat_map(|cells| &cells.trials).map(|trials| &trials[0].cell));
    let mut answers = Vec::new();
    let comparisons = comparisons
        .map(|(((merit, cpu), instructions), cells)| {
            let is_counted = !instructions.0.a.values.is_empty();
            let rows = [merit, cpu].into_iter().chain(Some(instructions).filter(|_| is_counted));
            let mut rows: Vec<(Row, Metric)> = rows.collect();
            let decides = |(row, _): &&(Row, Metric)| decides(row);
            let at = deciding_row(rows.iter().take_while(decides).map(|(row, metric)| (row, metric)));
            rows[..=at].rotate_right(1);
            let comparison = comparison(&rows, cells, &varied, layout, columns);
            let [a, b] = cells.trials.each_ref().map(|trials| &trials[0].cell);
            if !are_columns(&Factor::varied([a, b])) {
                answers.push(answer_on_pair(&comparison, &rows[0].0, &rows[0].1, trials));
            }
            comparison
        })
        .collect();
    (comparisons, answers)
}

/// Whether two sides that differ in these factors are columns of the report.
fn are_columns(compared: &[Factor]) -> bool {
    compared.iter().all(|factor| factor.place() == Place::Column)
}

fn decides(row: &Row) -> bool {
    row.judged.paired.as_ref().is_some_and(|paired| paired.decides)
}

/// The comparison of two cells; the first figure decides, or keeps it open.
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
    let are_columns = are_columns(&compared);
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
        sentence: sentence(rows),
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
        decides: decides(row),
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

/// The verdict by the first figure, as [`in_pairs`]; equivalence names all figures that decide.
fn sentence(rows: &[(Row, Metric)]) -> String {
    let (row, metric) = &rows[0];
    let is_equivalent = |row: &Row| row.judged.outcome == Outcome::Equivalent;
    let others = rows[1..].iter().filter(|(of, _)| is_equivalent(row) && is_equivalent(of) && decides(of));
    let names = std::iter::once(metric).chain(others.map(|(_, metric)| metric));
    by(row, metric, &names.map(|metric| metric.in_words(None)).collect::<Vec<_>>().join(" and "))
}

/// `REGRESSION by throughput: -5.2% (-8.0% to -2.3%), 26 sessions`, what an open one takes, and why there is no verdict.
pub(super) fn in_pairs(row: &Row, metric: &Metric) -> String {
    by(row, metric, &metric.in_words(None))
}

/// The verdict on a metric, which names what it was reached by.
fn by(row: &Row, metric: &Metric, names: &str) -> String {
    let mut text = format!("{} by {names}", row.judged.outcome.name(metric.better()));
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
