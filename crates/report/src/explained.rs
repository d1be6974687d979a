//! Where the time of a trial's or a cell's transactions goes, from the store, and how it is shown.

use std::collections::BTreeMap;

use diagnose::{Budget, Cause, Confidence, Difference, Explanation, Place, explain};
use model::record::{Status, Trial, TrialRecord};
use serde::Serialize;
use store::{Store, StoreError};

use crate::chart::{self, Terminal};
use crate::compare::text::wrapped_to;
use crate::selector::{SelectError, Selector, varied};
use crate::source::Selection;
use crate::table::{self, Column, Format, Table};

/// Why something can't be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// Nothing is selected.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No trial of the cell may be used.
    #[error(
        "all trials of {selector} are invalid: `pgdyno store show {id}` says why; name one by its id to explain it"
    )]
    Unusable {
        /// What was asked for.
        selector: String,
        /// The last of them.
        id: String,
    },
    /// Several cells are selected.
    #[error("{count} cells have {selector}: name a level of{known}")]
    SeveralCells {
        /// How many.
        count: usize,
        /// What was asked for.
        selector: String,
        /// The factors in which they differ, one a line.
        known: String,
    },
    /// There is nothing to explain.
    #[error("trial {id} can't be explained: {why}")]
    Nothing {
        /// Of the trial.
        id: String,
        /// The reason.
        why: String,
    },
}

/// One trial, or several of one cell, explained.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The cell, for people.
    pub cell: String,
    /// Ids of the trials.
    pub trials: Vec<String>,
    /// The worst status of theirs.
    pub status: Status,
    /// Mean transactions per second.
    pub tps: f64,
    /// The mean of their budgets.
    pub budget: Budget,
    /// What most of them have in common, with the mean of its shares.
    pub causes: Vec<Cause>,
    /// One sentence.
    pub verdict: String,
    /// How much it is to be trusted.
    pub confidence: Confidence,
}

/// Explains trials of a store; of the run `default` where the selector does not say where they are from.
///
/// # Errors
/// They are not there, or there is nothing to explain.
pub fn explained(store: &Store, default: &Selection, what: &Selector) -> Result<Explained, ExplainError> {
    let ids = selected(store, default, what)?;
    let mut trials = Vec::new();
    let mut explanations = Vec::new();
    for id in &ids {
        let record = store.load(id)?;
        let explanation =
            explain(&record).map_err(|why| ExplainError::Nothing { id: record.trial.id.clone(), why })?;
        trials.push(record.trial);
        explanations.push(explanation);
    }
    together(&trials, &explanations).ok_or_else(|| ExplainError::Nothing {
        id: "of this cell".to_owned(),
        why: "there is none".to_owned(),
    })
}

/// The ids of the trials that are to be explained together, which are of one cell: those that are named; else the usable
/// ones that have the levels; of a selector without levels, the latest usable one.
///
/// # Errors
/// They are not there, may not be used, or are of several cells.
pub fn selected(store: &Store, default: &Selection, what: &Selector) -> Result<Vec<String>, ExplainError> {
    let all = store.trials().map_err(SelectError::from)?;
    let mut trials = what.trials(store, &all, default)?;
    let last = trials.last().copied();
    if !what.is_by_id() {
        trials.retain(|trial| trial.validity.status != Status::Invalid);
        if what.levels().is_empty() {
            return Ok(trials.last().copied().or(last).map(|trial| trial.id.clone()).into_iter().collect());
        }
    }
    let mut cells: Vec<_> = trials.iter().map(|trial| &trial.cell).collect();
    cells.sort();
    cells.dedup();
    match (cells.len(), last) {
        (0, Some(last)) => Err(ExplainError::Unusable { selector: what.to_string(), id: last.id.clone() }),
        (0 | 1, _) => Ok(trials.iter().map(|trial| trial.id.clone()).collect()),
        (count, _) => {
            Err(ExplainError::SeveralCells { count, selector: what.to_string(), known: varied(&trials) })
        }
    }
}

/// What trials of one cell say together.
fn together(trials: &[Trial], explanations: &[Explanation]) -> Option<Explained> {
    let budgets: Vec<Budget> = explanations.iter().map(|explanation| explanation.budget.clone()).collect();
    let budget = Budget::mean(&budgets)?;
    let mut by_name: BTreeMap<&str, Vec<&Cause>> = BTreeMap::new();
    for cause in explanations.iter().flat_map(|explanation| &explanation.causes) {
        by_name.entry(cause.name).or_default().push(cause);
    }
    let mut causes: Vec<Cause> = by_name
        .into_values()
        .filter(|found| 2 * found.len() > explanations.len())
        .filter_map(|mut found| {
            found.sort_by(|a, b| a.share.total_cmp(&b.share));
            let middle = (*found.get(found.len() / 2)?).clone();
            Some(middle)
        })
        .collect();
    causes.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    let explanation = Explanation { budget: budget.clone(), causes: causes.clone() };
    let summaries: Vec<_> = trials.iter().filter_map(|trial| trial.summary.as_ref()).collect();
    Some(Explained {
        cell: trials.first()?.cell.to_string(),
        trials: trials.iter().map(|trial| trial.id.clone()).collect(),
        status: trials.iter().map(|trial| trial.validity.status).max()?,
        tps: summaries.iter().map(|summary| summary.tps).sum::<f64>() / summaries.len() as f64,
        verdict: explanation.verdict(),
        confidence: explanation.confidence(),
        budget,
        causes,
    })
}

/// One trial explained by itself, as a document has it.
///
/// # Errors
/// Why it can't be.
pub(crate) fn explained_alone(record: &TrialRecord) -> Result<ExplainedDocument, String> {
    let explanation = explain(record)?;
    let explained = together(std::slice::from_ref(&record.trial), &[explanation]);
    explained.map(|explained| ExplainedDocument::of(&explained)).ok_or_else(|| "there is nothing".to_owned())
}

/// What is shown of one; its bars are as long as a terminal has room for.
pub fn text(explained: &Explained, format: Format, terminal: Option<Terminal>) -> String {
    let parts = parts(explained, terminal);
    if format != Format::Table {
        return parts.render(format);
    }
    let mut out = fitted(&format!("{}\n{}\n\n", heading(explained), explained.verdict), terminal);
    out += &parts.render(Format::Table);
    for cause in &explained.causes {
        let text = format!(
            "\n{}: {:.0}% of {} (confidence: {})\n  {}\n  next: {}\n",
            cause.name,
            100.0 * cause.share,
            cause.of.name(),
            cause.confidence.name(),
            cause.evidence.join("\n  "),
            cause.next
        );
        out += &fitted(&text, terminal);
    }
    out
}

/// Lines as wide as a terminal has room for; in a file they are as long as they are.
fn fitted(text: &str, terminal: Option<Terminal>) -> String {
    match terminal {
        Some(terminal) => text.lines().map(|line| wrapped_to(line, terminal.width)).collect(),
        None => text.to_owned(),
    }
}

fn heading(explained: &Explained) -> String {
    let trials = match explained.trials.as_slice() {
        [one] => format!("trial {one}"),
        several => format!("{} trials", several.len()),
    };
    let status = match explained.status {
        Status::Valid => String::new(),
        status => format!(", {}: `pgdyno store show` says why", status.name()),
    };
    format!(
        "{} ({trials}{status})\n{:.1} transactions/s, {:.3} ms each; the server's sessions were looked at {} times",
        explained.cell,
        explained.tps,
        explained.budget.latency_us / 1e3,
        explained.budget.looks
    )
}

/// Parts smaller than this are shown as one.
pub(crate) const SMALL: f64 = 0.005;

fn parts(explained: &Explained, terminal: Option<Terminal>) -> Table {
    let mut table = Table::new(["where the time goes", "#ms", "#%", ""]);
    let mut shares = Vec::new();
    let budget = &explained.budget;
    let mut row = |name: String, us: f64| {
        let share = us / budget.latency_us;
        table.push(vec![name, format!("{:.4}", us / 1e3), format!("{:.1}", 100.0 * share), String::new()]);
        shares.push(share);
    };
    let is_small = |us: f64| us / budget.latency_us < SMALL;
    let (mut small_us, mut small) = (0.0, 0);
    for part in budget.parts.iter().filter(|part| part.place != Place::Unexplained) {
        match is_small(part.us) {
            true => {
                small_us += part.us;
                small += 1;
            }
            false => row(part.name(), part.us),
        }
    }
    if small > 0 {
        row(format!("{small} smaller parts"), small_us);
    }
    row(Place::Unexplained.name().to_owned(), budget.us(Place::Unexplained));
    row("mean latency".to_owned(), budget.latency_us);
    let room = terminal.and_then(|terminal| terminal.beside(table.width()));
    for (row, share) in table.rows.iter_mut().zip(shares) {
        row[3] = match room {
            Some(width) => chart::bar(share, width),
            // In a file, whole characters.
            None => "█".repeat((25.0 * share.clamp(0.0, 1.0)).round() as usize),
        };
    }
    table
}

/// What is shown of two: where the time of the second went.
pub fn difference_text(
    before: &Explained,
    after: &Explained,
    format: Format,
    terminal: Option<Terminal>,
) -> String {
    let difference = Difference::of(&before.budget, &after.budget);
    let mut table = Table::new(["where the time goes", "#A ms", "#B ms", "#B − A ms", "#% of A"]);
    let mut row = |name: String, a: f64, b: f64| {
        table.push(vec![
            name,
            format!("{:.4}", a / 1e3),
            format!("{:.4}", b / 1e3),
            format!("{:+.4}", (b - a) / 1e3),
            format!("{:+.1}", 100.0 * (b - a) / difference.before_us),
        ]);
    };
    for change in &difference.changes {
        row(change.name(), change.before_us, change.after_us);
    }
    row("mean latency".to_owned(), difference.before_us, difference.after_us);
    if format != Format::Table {
        return table.render(format);
    }
    if let Some(width) = terminal.and_then(|terminal| terminal.beside(table.width() + table::BETWEEN)) {
        let more: Vec<f64> =
            difference.changes.iter().map(|change| change.after_us - change.before_us).collect();
        let largest = more.iter().copied().map(f64::abs).fold(0.0, f64::max);
        table.columns.push(Column { name: String::new(), numeric: false });
        let all = more.into_iter().chain([difference.more_us()]);
        for (row, more) in table.rows.iter_mut().zip(all) {
            row.push(chart::signed_bar(if largest > 0.0 { more / largest } else { 0.0 }, width));
        }
    }
    let text = format!(
        "A: {}\n   {}\n\nB: {}\n   {}\n\n{}\n\n",
        heading(before).replace('\n', "\n   "),
        before.verdict,
        heading(after).replace('\n', "\n   "),
        after.verdict,
        difference.verdict(),
    );
    fitted(&text, terminal) + &table.render(Format::Table)
}

/// `explain --format json`, schema 1.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: u32,
    explained: Vec<ExplainedDocument>,
    /// Of the second against the first; null of one.
    difference: Option<DifferenceDocument>,
}

/// One trial, or those of one cell, explained.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedDocument {
    cell: String,
    trials: Vec<String>,
    status: &'static str,
    tps: f64,
    latency_us: f64,
    looks: u32,
    verdict: String,
    confidence: &'static str,
    parts: Vec<PartDocument>,
    causes: Vec<CauseDocument>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct PartDocument {
    place: &'static str,
    of: Option<String>,
    us: f64,
    share: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct CauseDocument {
    name: &'static str,
    share: f64,
    of: &'static str,
    sentence: String,
    evidence: Vec<String>,
    next: &'static str,
    confidence: &'static str,
}

#[derive(Debug, Serialize)]
struct DifferenceDocument {
    verdict: String,
    more_us: f64,
    parts: Vec<ChangeDocument>,
}

#[derive(Debug, Serialize)]
struct ChangeDocument {
    place: &'static str,
    of: Option<String>,
    before_us: f64,
    after_us: f64,
}

impl Document {
    /// Of one, or of two.
    pub fn of(first: &Explained, second: Option<&Explained>) -> Self {
        let difference = second.map(|second| {
            let difference = Difference::of(&first.budget, &second.budget);
            DifferenceDocument {
                verdict: difference.verdict(),
                more_us: difference.more_us(),
                parts: difference
                    .changes
                    .iter()
                    .map(|change| ChangeDocument {
                        place: change.place.name(),
                        of: change.of.clone(),
                        before_us: change.before_us,
                        after_us: change.after_us,
                    })
                    .collect(),
            }
        });
        let explained = std::iter::once(first).chain(second).map(ExplainedDocument::of).collect();
        Self { schema: 1, explained, difference }
    }
}

impl ExplainedDocument {
    fn of(explained: &Explained) -> Self {
        let budget = &explained.budget;
        Self {
            cell: explained.cell.clone(),
            trials: explained.trials.clone(),
            status: explained.status.name(),
            tps: explained.tps,
            latency_us: budget.latency_us,
            looks: budget.looks,
            verdict: explained.verdict.clone(),
            confidence: explained.confidence.name(),
            parts: budget
                .parts
                .iter()
                .map(|part| PartDocument {
                    place: part.place.name(),
                    of: part.of.clone(),
                    us: part.us,
                    share: budget.share(part),
                })
                .collect(),
            causes: explained
                .causes
                .iter()
                .map(|cause| CauseDocument {
                    name: cause.name,
                    share: cause.share,
                    of: cause.of.name(),
                    sentence: cause.sentence.clone(),
                    evidence: cause.evidence.clone(),
                    next: cause.next,
                    confidence: cause.confidence.name(),
                })
                .collect(),
        }
    }
}
