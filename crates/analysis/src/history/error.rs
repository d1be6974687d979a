//! Errors of histories, with the remedies.

use std::path::PathBuf;

use store::StoreError;

use super::Over;
use crate::metric::Metric;
use crate::select::SelectError;

/// Error of a history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Nothing is selected.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The control has no levels.
    #[error(
        "\"{0}\" is no control: name the levels in which the control differs from what is measured against it, \
         such as server=15"
    )]
    Control(String),
    /// A gate is on another metric.
    #[error(
        "the gate \"{gate}\" is of {of}, and the history of {metric}: a gate has the metric of its history"
    )]
    Gate {
        /// The gate as written.
        gate: String,
        /// Its metric.
        of: Metric,
        /// The history's metric.
        metric: Metric,
    },
    /// No trial has a known step.
    #[error("none of {trials} says its {over}: {next}")]
    NoStep {
        /// Number of trials, in words.
        trials: String,
        /// The requested axis.
        over: Over,
        /// What to do.
        next: &'static str,
    },
    /// A repository cannot order the commits.
    #[error(
        "git finds no order of {} in {path}: it must be a git repository that has all of them, and belong to you",
        .refs.join(", ")
    )]
    Repository {
        /// Path of the repository.
        path: PathBuf,
        /// Refs of the history's steps.
        refs: Vec<String>,
    },
    /// A named step does not exist.
    #[error("there is no step \"{wanted}\"; there are {known}")]
    UnknownStep {
        /// The requested step.
        wanted: String,
        /// The existing steps.
        known: String,
    },
    /// Several servers would be treated as one.
    #[error("{step} has the servers {levels} in one cell ({cell}): name one of them, as in `server=…`")]
    Together {
        /// The step.
        step: String,
        /// Names of the servers.
        levels: String,
        /// The cell.
        cell: String,
    },
    /// No trial has a metric.
    #[error("no trial of this history has the metric {metric}: {known}")]
    NoFigure {
        /// The requested metric.
        metric: Metric,
        /// The available metrics.
        known: String,
    },
    /// No trial has a control in its run.
    #[error(
        "no trial has a control {control} in its run: it is the cell that is like the trial's in all other factors. \
         Measure it in the same campaign, or name more of its levels"
    )]
    NoControl {
        /// The control's selector.
        control: String,
    },
    /// Only the control was selected.
    #[error("all trials are of the control {control}: there is nothing to measure against it")]
    OnlyControl {
        /// The control's selector.
        control: String,
    },
    /// There is no shift at this step to accept or withdraw.
    #[error("{0}")]
    NoShift(String),
}

impl HistoryError {
    /// Whether the command line is wrong, regardless of the store's contents.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Control(_) | Self::Gate { .. })
    }
}
