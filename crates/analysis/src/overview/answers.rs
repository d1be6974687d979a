//! The answers of the trials: what a reader decides by.

use std::cmp::Reverse;
use std::collections::HashMap;

use diagnose::{Confidence, Difference};
use model::record;
use plaintext::figures::counted;
use store::StoreReader;

use super::cpu_cause::cpu_cause;
use super::findings::by_cause;
use super::view::{
    Answer, AnswerCell, AnswerKind, Column, Confound, FindingGroup, PairedComparison, Panel, Point, Trial,
    View,
};
use crate::compare::advice::{advice, is_of_sessions};
use crate::compare::{Advice, MAX_SMALL_SHARE, MetricRows, Pair, cell_of, extreme, result};
use crate::explain::{CellExplanation, explain_trials};
use crate::judgement::{Outcome, Row};
use crate::metric::Metric;

/// The most sentences of one kind in an answer.
const MAX_NAMED: usize = 3;
/// The most answers whose cause is read from the trials: bundles have to be loaded for that.
const MAX_EXPLAINED: usize = 3;
/// Trials of each side that are explained: those nearest to the mean.
const EXPLAINED_TRIALS: usize = 3;

/// The comparisons of all columns with the first one.
pub(super) struct JudgedColumns {
    /// One for each other column.
    pub(super) pairs: Vec<Pair>,
    /// By metric, the rows that cells are judged by, then those of scripts.
    pub(super) by_metric: Vec<MetricRows>,
    /// The places of the pairs' cells, by the indices of both.
    pub(super) cells: HashMap<[usize; 2], AnswerCell>,
}

/// Answers on the columns that share a cell with the first one.
pub(super) fn answers_on_columns(
    judged: &JudgedColumns,
    columns: &[Column],
    panels: &[Panel],
    confounds: &[Confound],
    trials: &[&record::Trial],
) -> Vec<Answer> {
    let shares = |(_, pair): &(usize, &Pair)| !pair.cells.is_empty();
    let pairs = judged.pairs.iter().enumerate().filter(shares);
    pairs.map(|(at, _)| answer_on_column(judged, at, columns, panels, confounds, trials)).collect()
}

fn answer_on_column(
    judged: &JudgedColumns,
    at: usize,
    columns: &[Column],
    panels: &[Panel],
    confounds: &[Confound],
    trials: &[&record::Trial],
) -> Answer {
    let pair = &judged.pairs[at];
    let of_pair = || {
        let rows = |of: &'_ MetricRows| of.rows.iter().filter(|row| row.pair == at).count() > 0;
        judged.by_metric.iter().filter(move |of| rows(of))
    };
    let rows: Vec<(&Row, &Metric)> = of_pair()
        .flat_map(|of| of.rows.iter().filter(|row| row.pair == at).map(move |row| (row, &of.metric)))
        .collect();
    let kind = kind(&rows);
    let changed = sorted_by_change(of_pair(), at).into_iter().find_map(|of| {
        let rows: Vec<&Row> = of.rows.iter().filter(|row| row.pair == at).collect();
        extreme(&rows, of.metric.better()).map(|(_, row)| row)
    });
    let points: Vec<&Point> = judged
        .cells
        .iter()
        .filter(|([of, _], _)| *of == at)
        .flat_map(|(_, place)| {
            let points = &panels[place.panel].rows[place.row].points;
            [&points[0], &points[pair.variant]].into_iter().flatten()
        })
        .collect();
    let is_change = |row: &Row| row.pair == at && matches!(row.judged.outcome, Outcome::Change { .. });
    let mut changes = of_pair().filter(|of| of.rows.iter().any(is_change)).peekable();
    let by_cpu_alone = changes.peek().is_some() && changes.all(|of| of.metric == Metric::CpuPerTransaction);
    let suspicions = suspicions(&points);
    let (why, mut risks) = match kind {
        AnswerKind::Open => (suspicions, Vec::new()),
        _ => (Vec::new(), suspicions),
    };
    risks.extend(cautions(&rows, pair));
    risks.extend(unshared(pair));
    risks.extend(undeclared(confounds, &columns[0], &columns[pair.variant]));
    Answer {
        subject: format!("{} against {}", columns[pair.variant].label, columns[0].label),
        column: Some(pair.variant),
        against: 0,
        kind,
        sentence: sentences(&judged.by_metric, at, &judged.pairs),
        confidence: confidence(&rows, judged.by_metric.iter().flat_map(|of| &of.rows)),
        cell: changed.and_then(|row| judged.cells.get(&[row.pair, row.cell]).copied()),
        size: changed.map_or(0.0, size),
        cpu_ratio: changed.filter(|_| by_cpu_alone).and_then(Row::ratio),
        why,
        risks,
        next: next(&rows, &points, trials),
    }
}

/// The size of a row's change, of either direction.
fn size(row: &Row) -> f64 {
    row.ratio().map_or(0.0, |ratio| ratio.ln().abs())
}

/// The result of all rows of a pair.
fn kind(rows: &[(&Row, &Metric)]) -> AnswerKind {
    let count = |worse: bool| {
        let is =
            |(row, metric): &&(&Row, &Metric)| row.judged.outcome.is_worse(metric.better()) == Some(worse);
        rows.iter().filter(is).count()
    };
    let open = rows.iter().filter(|(row, _)| !row.judged.outcome.is_decided()).count();
    match (count(true), count(false)) {
        (0, 0) if open as f64 > MAX_SMALL_SHARE * rows.len() as f64 => AnswerKind::Open,
        (0, 0) => AnswerKind::Same,
        (0, _) => AnswerKind::Better,
        (_, 0) => AnswerKind::Worse,
        _ => AnswerKind::Mixed,
    }
}

/// The metrics of a pair, those that changed first.
fn sorted_by_change<'r>(by_metric: impl Iterator<Item = &'r MetricRows>, pair: usize) -> Vec<&'r MetricRows> {
    let has_changed = |of: &&MetricRows| {
        let is_change = |row: &Row| matches!(row.judged.outcome, Outcome::Change { .. });
        of.rows.iter().any(|row| row.pair == pair && is_change(row))
    };
    let (mut changed, others): (Vec<&MetricRows>, Vec<&MetricRows>) = by_metric.partition(has_changed);
    changed.extend(others);
    changed
}

/// The sentences of a pair's metrics, those that changed first, with their names unless throughput is the only one. Scripts
/// are mentioned if they changed.
fn sentences(by_metric: &[MetricRows], pair: usize, pairs: &[Pair]) -> String {
    let has_rows = |of: &&MetricRows| of.rows.iter().any(|row| row.pair == pair);
    let is_change = |row: &Row| row.pair == pair && matches!(row.judged.outcome, Outcome::Change { .. });
    let mut mentioned = sorted_by_change(by_metric.iter().filter(has_rows), pair);
    mentioned.retain(|of| !of.metric.is_of_part() || of.rows.iter().any(is_change));
    let is_throughput = matches!(mentioned.as_slice(), [MetricRows { metric: Metric::Tps, .. }]);
    let sentences = mentioned.into_iter().map(|of| match is_throughput {
        true => result(of, pair, pairs),
        false => format!("{}: {}", of.metric, result(of, pair, pairs)),
    });
    sentences.collect::<Vec<_>>().join(". ")
}

/// What the decided rows hold with; `all` are the rows of all pairs, over which p is adjusted.
fn confidence<'r>(rows: &[(&Row, &Metric)], all: impl Iterator<Item = &'r Row>) -> Option<String> {
    let decided: Vec<&Row> =
        rows.iter().map(|(row, _)| *row).filter(|row| row.judged.outcome.is_decided()).collect();
    let range = |numbers: Vec<usize>, what: &str| -> Option<String> {
        let (least, most) = (*numbers.iter().min()?, *numbers.iter().max()?);
        Some(if least == most { counted(least, what) } else { format!("{least} to {}", counted(most, what)) })
    };
    let mut parts: Vec<String> = Vec::new();
    let sessions = || decided.iter().filter_map(|row| row.judged.paired.as_ref());
    if let Some(first) = sessions().next() {
        let together = match first.comparisons {
            0 | 1 => String::new(),
            several => format!(" and for {several} comparisons together"),
        };
        parts.push(format!("99% at any number of sessions{together}"));
        parts.extend(range(sessions().map(|paired| paired.sequence.sessions()).collect(), "session"));
    }
    let runs: Vec<&&Row> = decided.iter().filter(|row| row.judged.paired.is_none()).collect();
    if !runs.is_empty() {
        let tested = all.filter(|row| row.judged.p_holm.is_some()).count();
        let adjusted = (tested > 1).then(|| format!(", p adjusted over {}", counted(tested, "comparison")));
        parts.push(format!("95% intervals{}", adjusted.unwrap_or_default()));
        let n = runs.iter().flat_map(|row| [row.a.values.len(), row.b.values.len()]).collect();
        parts.extend(range(n, "run").map(|n| n + " a side"));
    }
    let margin = decided.iter().filter_map(|row| row.margin()).reduce(f64::max);
    // A ratio of 1.05 is not exactly a share of 0.05 in binary.
    let percent = margin.map(|margin| ((margin - 1.0) * 1e6).round() / 1e4);
    parts.extend(percent.map(|percent| format!("equivalent is within ±{percent}%")));
    (!decided.is_empty()).then(|| parts.join("; "))
}

/// What gates found in the suspect and invalid trials of a comparison.
pub(super) fn suspicions(points: &[&Point]) -> Vec<String> {
    let trials: usize = points.iter().map(|point| point.runs.len()).sum();
    let groups = groups(points);
    let named = groups.iter().take(MAX_NAMED).map(|group| in_words(group, trials));
    named.chain(and_more(groups.len(), "that gates found")).collect()
}

/// The findings of a comparison's trials that make them suspect or invalid, by cause; those of most trials first.
fn groups(points: &[&Point]) -> Vec<FindingGroup> {
    let findings = points.iter().flat_map(|point| &point.runs).flat_map(Trial::findings);
    let mut groups = by_cause(findings.filter(|(_, finding)| finding.validity != "valid"));
    groups.sort_by_key(|group| Reverse(group.trials.len()));
    groups
}

/// `foreign-cpu in 34 of 56 trials: other processes used 10–83% of the CPU`.
fn in_words(group: &FindingGroup, trials: usize) -> String {
    let unused = if group.validity == "invalid" { ", not used" } else { "" };
    let n = group.trials.len();
    format!("{} in {n} of {}{unused}: {}", group.gate, counted(trials, "trial"), group.evidence)
}

/// The number of those that are not named.
fn and_more(all: usize, what: &str) -> Option<String> {
    (all > MAX_NAMED).then(|| format!("{} more {what}", all - MAX_NAMED).trim_end().to_owned())
}

/// The cautions on the verdicts of a pair, with their cells.
fn cautions(rows: &[(&Row, &Metric)], pair: &Pair) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (row, _) in rows {
        for caution in row.cautions() {
            let side = if caution.side == 0 { ", the baseline" } else { "" };
            let text = format!("{}{side}: {}", cell_of(row, pair), caution.text);
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    let more = and_more(all.len(), "of this kind");
    all.into_iter().take(MAX_NAMED).chain(more).collect()
}

fn unshared(pair: &Pair) -> Option<String> {
    let n = pair.only_baseline.len() + pair.only_variant.len();
    (n > 0).then(|| format!("{} not on both sides, and not compared", counted(n, "cell")))
}

/// Differences of a column from the first one that are not factors.
fn undeclared(confounds: &[Confound], baseline: &Column, column: &Column) -> Option<String> {
    let is_level = |column: &Column, factor, level: &String| column.levels.get(factor) == Some(level);
    let mut what: Vec<&str> = confounds
        .iter()
        .filter(|of| is_level(baseline, of.factor, &of.baseline) && is_level(column, of.factor, &of.level))
        .map(|of| of.what.as_str())
        .collect();
    what.dedup();
    let more = and_more(what.len(), "");
    let named: Vec<String> = what.iter().take(MAX_NAMED).map(|&what| what.to_owned()).chain(more).collect();
    (!named.is_empty()).then(|| format!("also different, but not a factor: {}", named.join(", ")))
}

/// What would decide the open cells.
fn next(rows: &[(&Row, &Metric)], points: &[&Point], trials: &[&record::Trial]) -> Vec<Advice> {
    let judged = || rows.iter().filter(|(_, metric)| !metric.is_of_part());
    let mut all = advice(judged().map(|(row, _)| *row), trials);
    let has = |is: &dyn Fn(&Row) -> bool| judged().any(|(row, _)| is(row));
    let without_command = |text: String| Advice { text, commands: Vec::new() };
    if has(&|row| !row.judged.outcome.is_decided() && is_of_sessions(row)) {
        all.push(without_command(
            "More runs of the same sessions do not decide it, as sessions differ: measure both next to each other, with \
             order = \"paired\" or pgdyno ab"
                .to_owned(),
        ));
    }
    if has(&|row| row.judged.outcome == Outcome::Invalid) {
        let invalid = groups(points).into_iter().find(|group| group.validity == "invalid");
        let text = invalid.and_then(|group| Some(format!("{}: {}", group.gate, group.advice?)));
        all.extend(text.map(without_command));
    }
    all
}

/// The answer on a comparison in pairs whose sides are no columns.
pub(super) fn answer_on_pair(
    comparison: &PairedComparison,
    row: &Row,
    metric: &Metric,
    trials: &[&record::Trial],
) -> Answer {
    let rows = [(row, metric)];
    let cell = comparison.cell.join(", ");
    let subject = format!("{} against {}", comparison.variant, comparison.baseline);
    Answer {
        subject: if cell.is_empty() { subject } else { format!("{subject}, {cell}") },
        column: None,
        against: 0,
        kind: kind(&rows),
        sentence: comparison.sentence.clone(),
        confidence: confidence(&rows, std::iter::once(row)),
        cell: None,
        size: size(row),
        cpu_ratio: None,
        why: Vec::new(),
        risks: comparison.disagreement.clone().into_iter().collect(),
        next: advice(std::iter::once(row), trials),
    }
}

/// The answer if nothing is compared: how stable the cells are, or why no cell is compared. `None` without trials.
pub(super) fn answer_alone(columns: &[Column], panels: &[Panel]) -> Option<Answer> {
    let points: Vec<&Point> =
        panels.iter().flat_map(|panel| &panel.rows).flat_map(|row| row.points.iter().flatten()).collect();
    let first = &columns.first()?.label;
    let (kind, subject, sentence) = match columns.len() {
        1 => (AnswerKind::Alone, first.clone(), stability(&points)),
        _ => (AnswerKind::Open, first.clone(), "no other column has a cell in common with it".to_owned()),
    };
    Some(Answer {
        subject,
        column: None,
        against: 0,
        kind,
        sentence,
        confidence: None,
        cell: None,
        size: 0.0,
        cpu_ratio: None,
        why: Vec::new(),
        risks: suspicions(&points),
        next: Vec::new(),
    })
}

/// `5 runs: STABLE`, or `4 cells: 3 STABLE, 1 NOISY`.
fn stability(points: &[&Point]) -> String {
    if let [only] = points {
        return format!(
            "{}: {}",
            counted(only.n, "run"),
            only.class.as_deref().unwrap_or("too few to classify")
        );
    }
    let mut classes: Vec<(&str, usize)> = Vec::new();
    for point in points {
        let class = point.class.as_deref().unwrap_or("with fewer than 3 runs");
        match classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, n)) => *n += 1,
            None => classes.push((class, 1)),
        }
    }
    classes.sort_unstable();
    let classes: Vec<String> = classes.into_iter().map(|(class, n)| format!("{n} {class}")).collect();
    format!("{}: {}", counted(points.len(), "cell"), classes.join(", "))
}

/// Adds causes from the trials of the cells that changed most, as far as they can be explained.
pub fn explain_answers(view: &mut View, reader: &StoreReader) {
    let View { answers, panels, .. } = view;
    // Several columns may have changed most in the same cell, against the same trials.
    let mut explained: HashMap<Vec<&str>, Option<CellExplanation>> = HashMap::new();
    for answer in answers.iter_mut().take(MAX_EXPLAINED) {
        let Some((cell, column)) = answer.cell.zip(answer.column) else { continue };
        let points = &panels[cell.panel].rows[cell.row].points;
        let [Some(before), Some(after)] = [answer.against, column].map(|side| points[side].as_ref()) else {
            continue;
        };
        let ids = [before, after].map(nearest_to_mean);
        if let Some(ratio) = answer.cpu_ratio {
            answer.why.push(cpu_cause(reader, ratio, [before, after], [&ids[0], &ids[1]]));
            continue;
        }
        let explain =
            |ids| explained.entry(ids).or_insert_with_key(|ids| explain_trials(reader, ids)).clone();
        let [Some(before), Some(after)] = ids.map(explain) else { continue };
        // What trials of one cell differ by is no cause.
        let is_clear = |of: &Difference| of.margin_us.is_some_and(|margin| of.increase_us().abs() > margin);
        let difference = Difference::new(&before.budgets, &after.budgets).filter(is_clear);
        answer.why.extend(difference.map(|difference| difference.verdict()));
        if after.confidence > Confidence::Low && !after.causes.is_empty() {
            answer.why.push(format!("limit: {}", after.verdict));
        }
    }
}

/// Ids of the usable trials nearest to a point's mean.
fn nearest_to_mean(point: &Point) -> Vec<&str> {
    let mean = point.mean.unwrap_or_default();
    let mut usable: Vec<(f64, &str)> = point
        .runs
        .iter()
        .filter(|trial| trial.validity != "invalid")
        .filter_map(|trial| Some(((trial.figure? - mean).abs(), trial.id.as_str())))
        .collect();
    usable.sort_by(|a, b| a.0.total_cmp(&b.0));
    usable.into_iter().take(EXPLAINED_TRIALS).map(|(_, id)| id).collect()
}
