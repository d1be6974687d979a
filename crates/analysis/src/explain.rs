//! Explanations of stored trials: where the time of a cell's transactions goes.

use std::collections::BTreeMap;

use diagnose::{Budget, Cause, Confidence, Explanation, NotExplained, explain};
use model::record::{Status, Trial, TrialRecord};
use serde::Serialize;
use store::{Part, StoreError, StoreReader};

use crate::phase::{PhaseError, phase_of};
use crate::select::{OneCellError, RunSelection, Selector, trials_of_one_cell};

/// The parts of a bundle that an explanation needs.
pub const PARTS: [Part; 5] = [Part::Series, Part::Metrics, Part::Waits, Part::Events, Part::Settings];

/// Error of explaining stored trials.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// No single cell is selected.
    #[error(transparent)]
    Select(#[from] OneCellError),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such phase.
    #[error(transparent)]
    Phase(#[from] PhaseError),
    /// A trial can't be explained.
    #[error("trial {id} can't be explained: {why}")]
    NotExplained {
        /// Id of the trial.
        id: String,
        /// Reason.
        why: String,
    },
}

/// Explanation of one trial, or of several trials of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellExplanation {
    /// The cell as text.
    pub cell: String,
    /// Ids of the trials.
    pub trials: Vec<String>,
    /// The worst of their statuses.
    pub status: Status,
    /// Mean transactions per second.
    pub tps: f64,
    /// The mean of their budgets.
    pub budget: Budget,
    /// The budget of each.
    pub budgets: Vec<Budget>,
    /// The causes that most of them share, with the means of their shares.
    pub causes: Vec<Cause>,
    /// One sentence.
    pub verdict: String,
    /// Confidence in the verdict.
    pub confidence: Confidence,
}

/// Explains trials of a store, or a phase of each; of the run `default` if the selector does not name an origin.
///
/// # Errors
/// There are no such trials or phases, or they can't be explained.
pub fn explain_cell(
    reader: &StoreReader,
    default: &RunSelection,
    what: &Selector,
    phase: Option<&str>,
) -> Result<CellExplanation, ExplainError> {
    let ids = trials_of_one_cell(reader, default, what)?;
    let mut trials = Vec::new();
    let mut explanations = Vec::new();
    for id in &ids {
        let Some(mut record) = reader.load_parts(id, &PARTS) else { continue };
        if let Some(phase) = phase {
            record = phase_of(&record, phase)?;
        }
        let explanation = explain(&record).map_err(|why| ExplainError::NotExplained {
            id: record.trial.id.clone(),
            why: why.to_string(),
        })?;
        trials.push(record.trial);
        explanations.push(explanation);
    }
    if let (true, Some(id)) = (trials.is_empty(), ids.first()) {
        return Err(reader.error(id).into());
    }
    combine(&trials, &explanations).ok_or_else(|| ExplainError::NotExplained {
        id: "of this cell".to_owned(),
        why: "there is none".to_owned(),
    })
}

/// Combines the explanations of trials of one cell.
fn combine(trials: &[Trial], explanations: &[Explanation]) -> Option<CellExplanation> {
    let budgets: Vec<Budget> = explanations.iter().map(|explanation| explanation.budget.clone()).collect();
    let budget = Budget::mean(&budgets)?;
    let mut by_name: BTreeMap<&str, Vec<&Cause>> = BTreeMap::new();
    for cause in explanations.iter().flat_map(|explanation| &explanation.causes) {
        by_name.entry(cause.name).or_default().push(cause);
    }
    let causes: Vec<Cause> = by_name
        .into_values()
        .filter(|found| 2 * found.len() > explanations.len())
        .filter_map(|mut found| {
            found.sort_by(|a, b| a.share.total_cmp(&b.share));
            let middle = (*found.get(found.len() / 2)?).clone();
            Some(middle)
        })
        .collect();
    let explanation = Explanation::new(budget, causes);
    let summaries: Vec<_> = trials.iter().filter_map(|trial| trial.summary.as_ref()).collect();
    Some(CellExplanation {
        cell: trials.first()?.cell.to_string(),
        trials: trials.iter().map(|trial| trial.id.clone()).collect(),
        status: trials.iter().map(|trial| trial.validity.status).max()?,
        tps: summaries.iter().map(|summary| summary.tps).sum::<f64>() / summaries.len() as f64,
        verdict: explanation.verdict(),
        confidence: explanation.confidence(),
        budget: explanation.budget,
        budgets,
        causes: explanation.causes,
    })
}

/// Explanation of these trials of one cell, without those that can't be read or explained; `None` without any.
pub(crate) fn explain_trials(reader: &StoreReader, ids: &[&str]) -> Option<CellExplanation> {
    let explained = |id: &&str| {
        let record = reader.load_parts(id, &PARTS)?;
        let explanation = explain(&record).ok()?;
        Some((record.trial, explanation))
    };
    let (trials, explanations): (Vec<Trial>, Vec<Explanation>) = ids.iter().filter_map(explained).unzip();
    combine(&trials, &explanations)
}

/// Explanation of a single trial.
///
/// # Errors
/// The trial can't be explained, with the reason.
pub(crate) fn explain_trial(record: &TrialRecord) -> Result<CellExplanation, NotExplained> {
    let explanation = explain(record)?;
    combine(std::slice::from_ref(&record.trial), &[explanation]).ok_or(NotExplained::NoLoad)
}

/// Explanation of one trial, or of those of one cell, as data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplanationView {
    cell: String,
    trials: Vec<String>,
    #[cfg_attr(test, ts(type = "'valid' | 'suspect' | 'invalid'"))]
    status: &'static str,
    tps: f64,
    latency_us: f64,
    #[serde(rename = "looks")]
    samples: u32,
    verdict: String,
    confidence: &'static str,
    parts: Vec<PartView>,
    causes: Vec<CauseView>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PartView {
    place: &'static str,
    of: Option<String>,
    us: f64,
    share: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CauseView {
    name: &'static str,
    share: f64,
    of: &'static str,
    sentence: String,
    evidence: Vec<String>,
    next: &'static str,
    confidence: &'static str,
}

impl ExplanationView {
    /// View of an explanation.
    pub fn new(explained: &CellExplanation) -> Self {
        let budget = &explained.budget;
        Self {
            cell: explained.cell.clone(),
            trials: explained.trials.clone(),
            status: explained.status.as_str(),
            tps: explained.tps,
            latency_us: budget.latency_us,
            samples: budget.samples,
            verdict: explained.verdict.clone(),
            confidence: explained.confidence.name(),
            parts: budget
                .parts
                .iter()
                .map(|part| PartView {
                    place: part.component.name(),
                    of: part.of.clone(),
                    us: part.us,
                    share: budget.share(part),
                })
                .collect(),
            causes: explained
                .causes
                .iter()
                .map(|cause| CauseView {
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
