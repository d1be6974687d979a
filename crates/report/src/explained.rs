//! Where the time of a trial's or a cell's transactions goes, from the store, and how it is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use diagnose::{Budget, Cause, Confidence, Difference, Explanation, Place, explain};
use model::factor::Factor;
use model::record::{Status, Trial};
use serde::Serialize;
use store::{Store, StoreError};

use crate::source::{ReadError, Selection, select};
use crate::table::{Format, Table};

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The latest trial of a run that may be used.
    Latest,
    /// The trial whose id begins so.
    Trial(String),
    /// The trials of the cell that has these levels; the factors that are not named have but one.
    Cell(BTreeMap<Factor, String>),
}

/// Why something can't be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// No such run.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store can't be read, or has no such trial.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No trial has these levels.
    #[error("no trial of the run has {levels}; it has{known}")]
    NoCell {
        /// What was asked for.
        levels: String,
        /// The factors that vary and their levels, one a line.
        known: String,
    },
    /// Several cells have these levels.
    #[error("{count} cells have {levels}: name a level of{known}")]
    SeveralCells {
        /// How many.
        count: usize,
        /// What was asked for.
        levels: String,
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

/// Explains something in a store; of the run that is selected where it is not a trial.
///
/// # Errors
/// It is not there, or there is nothing to explain.
pub fn explained(store: &Store, run: &Selection, what: &What) -> Result<Explained, ExplainError> {
    let ids = selected(store, run, what)?;
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

/// The ids of what is selected, or the beginning of one; of the run where it is not a trial.
///
/// # Errors
/// It is not there.
pub fn selected(store: &Store, run: &Selection, what: &What) -> Result<Vec<String>, ExplainError> {
    Ok(match what {
        What::Trial(prefix) => vec![prefix.clone()],
        What::Latest => {
            let trials = of_run(store, run)?;
            let usable = trials.iter().rev().find(|trial| trial.validity.status != Status::Invalid);
            usable.or(trials.last()).map(|trial| trial.id.clone()).into_iter().collect()
        }
        What::Cell(levels) => {
            let trials = of_run(store, run)?;
            of_cell(&trials, levels)?.into_iter().map(|trial| trial.id.clone()).collect()
        }
    })
}

fn of_run(store: &Store, run: &Selection) -> Result<Vec<Trial>, ExplainError> {
    let trials = store.trials()?;
    let id = select(trials.iter().map(|trial| &trial.run), run)?;
    Ok(trials.into_iter().filter(|trial| trial.run.id == id).collect())
}

/// The usable trials of the one cell that has these levels.
fn of_cell<'a>(
    trials: &'a [Trial],
    levels: &BTreeMap<Factor, String>,
) -> Result<Vec<&'a Trial>, ExplainError> {
    let asked = || {
        levels
            .iter()
            .map(|(factor, level)| format!("{} = {level}", factor.name()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let fits = |trial: &&Trial| levels.iter().all(|(factor, level)| factor.level(&trial.cell) == *level);
    let found: Vec<&Trial> =
        trials.iter().filter(fits).filter(|trial| trial.validity.status != Status::Invalid).collect();
    let Some(first) = found.first() else {
        return Err(ExplainError::NoCell { levels: asked(), known: varied(trials.iter()) });
    };
    let mut cells: Vec<_> = found.iter().map(|trial| &trial.cell).collect();
    cells.dedup();
    cells.sort_by_key(ToString::to_string);
    cells.dedup();
    if cells.iter().any(|cell| **cell != first.cell) {
        return Err(ExplainError::SeveralCells {
            count: cells.len(),
            levels: asked(),
            known: varied(found.iter().copied()),
        });
    }
    Ok(found)
}

fn varied<'a>(trials: impl Iterator<Item = &'a Trial>) -> String {
    let cells: Vec<_> = trials.map(|trial| &trial.cell).collect();
    Factor::varied(cells.iter().copied()).into_iter().fold(String::new(), |mut out, factor| {
        // Trials are in the order of their run, which is random.
        let mut levels = factor.levels(cells.iter().copied());
        levels.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            _ => a.cmp(b),
        });
        let _ = write!(out, "\n  {}: {}", factor.name(), levels.join(", "));
        out
    })
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

/// What is shown of one.
pub fn text(explained: &Explained, format: Format) -> String {
    let parts = parts(explained);
    if format != Format::Table {
        return parts.render(format);
    }
    let mut out = format!("{}\n{}\n\n", heading(explained), explained.verdict);
    out += &parts.render(Format::Table);
    for cause in &explained.causes {
        let _ = write!(
            out,
            "\n{}: {:.0}% of {} (confidence: {})\n  {}\n",
            cause.name,
            100.0 * cause.share,
            cause.of.name(),
            cause.confidence.name(),
            cause.evidence.join("\n  ")
        );
        let _ = writeln!(out, "  next: {}", cause.next);
    }
    out
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
const SMALL: f64 = 0.005;

fn parts(explained: &Explained) -> Table {
    let mut table = Table::new(["where the time goes", "#ms", "#%", ""]);
    let budget = &explained.budget;
    let mut row = |name: String, us: f64| {
        let share = us / budget.latency_us;
        table.push(vec![name, format!("{:.4}", us / 1e3), format!("{:.1}", 100.0 * share), bar(share)]);
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
    table
}

/// A bar of up to 25 characters.
fn bar(share: f64) -> String {
    "█".repeat((25.0 * share.clamp(0.0, 1.0)).round() as usize)
}

/// What is shown of two: where the time of the second went.
pub fn difference_text(before: &Explained, after: &Explained, format: Format) -> String {
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
    format!(
        "A: {}\n   {}\n\nB: {}\n   {}\n\n{}\n\n{}",
        heading(before).replace('\n', "\n   "),
        before.verdict,
        heading(after).replace('\n', "\n   "),
        after.verdict,
        difference.verdict(),
        table.render(Format::Table)
    )
}

/// `explain --format json`, schema 1.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: u32,
    explained: Vec<ExplainedDocument>,
    /// Of the second against the first; null of one.
    difference: Option<DifferenceDocument>,
}

#[derive(Debug, Serialize)]
struct ExplainedDocument {
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

#[derive(Debug, Serialize)]
struct PartDocument {
    place: &'static str,
    of: Option<String>,
    us: f64,
    share: f64,
}

#[derive(Debug, Serialize)]
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
