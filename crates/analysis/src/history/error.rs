//! Why there is no history, said so that the user can do something about it.

use std::path::PathBuf;

use store::StoreError;

use super::Over;
use crate::metric::Metric;
use crate::select::SelectError;

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Nothing is selected.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The control is not named by levels.
    #[error(
        "\"{0}\" is no control: name the levels in which the control differs from what is measured against it, \
         such as server=15"
    )]
    Control(String),
    /// A gate is of another metric.
    #[error(
        "the gate \"{gate}\" is of {of}, and the history of {metric}: a gate has the metric of its history"
    )]
    Gate {
        /// As it was written.
        gate: String,
        /// Its metric.
        of: Metric,
        /// The history's.
        metric: Metric,
    },
    /// No trial says where it stands.
    #[error("none of {trials} says its {over}: {next}")]
    NoStep {
        /// How many trials, in words.
        trials: String,
        /// What was to be gone over.
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
        /// The repository.
        path: PathBuf,
        /// Refs of the history's steps.
        refs: Vec<String>,
    },
    /// A step that is named is not there.
    #[error("there is no step \"{wanted}\"; there are {known}")]
    UnknownStep {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// Several cells would be one.
    #[error("{step} has the servers {levels} in one cell ({cell}): name one of them, as in `server=…`")]
    Together {
        /// The step.
        step: String,
        /// The servers.
        levels: String,
        /// The cell.
        cell: String,
    },
    /// No trial has a metric.
    #[error("no trial of this history has the metric {metric}: {known}")]
    NoFigure {
        /// The metric.
        metric: Metric,
        /// What there is.
        known: String,
    },
    /// No trial has a control measured with it.
    #[error(
        "no trial has a control {control} in its run: it is the cell that is like the trial's in all other factors. \
         Measure it in the same campaign, or name more of its levels"
    )]
    NoControl {
        /// The selector.
        control: String,
    },
    /// Nothing but the control is left.
    #[error("all trials are of the control {control}: there is nothing to measure against it")]
    OnlyControl {
        /// The selector.
        control: String,
    },
    /// Nothing shifted at this step, so nothing can be accepted or withdrawn.
    #[error("{0}")]
    NoShift(String),
}

impl HistoryError {
    /// Whether the command line is wrong, whatever the store has.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Control(_) | Self::Gate { .. })
    }
}
