//! The answers of a report: what a reader decides by.

use serde::Serialize;

use crate::compare::Advice;

/// What a reader decides by: the result of a comparison, how certain it is, its reason and its risks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// What it is on: `PostgreSQL 18.1 against PostgreSQL 13.23`.
    pub subject: String,
    /// Index in [`columns`](super::View::columns) of what is compared; null if the two sides are not columns, or nothing
    /// is compared.
    pub column: Option<usize>,
    /// Index of the column that it is compared with: the first one, but of a bisection the level before the change.
    pub against: usize,
    /// The result.
    pub kind: AnswerKind,
    /// The result in one sentence, with the largest change; of an open one, why it is open.
    pub sentence: String,
    /// What the verdicts hold with; null if nothing is decided.
    pub confidence: Option<String>,
    /// The cell that `why` is about; null if there is none.
    pub cell: Option<AnswerCell>,
    /// The largest change of a cell in the direction of `kind`, as the absolute logarithm of the ratio: orders answers.
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub(in crate::overview) size: f64,
    /// Ratio of the server's CPU time per transaction in `cell`, if that alone changed.
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub(in crate::overview) cpu_ratio: Option<f64>,
    /// Causes of the result, one sentence each; empty if none is known.
    pub why: Vec<String>,
    /// What may be wrong with it, or is not covered by it, one sentence each.
    pub risks: Vec<String>,
    /// What would decide the cells that are open.
    pub next: Vec<Advice>,
}

/// Result of a comparison, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AnswerKind {
    /// Some cells are worse, none is better.
    Worse,
    /// Some cells are worse, others better.
    Mixed,
    /// Some cells are better, none is worse.
    Better,
    /// No cell changed, and most are equivalent.
    Same,
    /// Nothing changed as far as it is known, which is too little.
    Open,
    /// Nothing is compared.
    Alone,
}

/// A cell of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerCell {
    /// Index in [`panels`](super::View::panels).
    pub panel: usize,
    /// Index in [its rows](super::Panel::rows).
    pub row: usize,
}
