//! Errors of histories, with the remedies.

use std::path::PathBuf;

use store::StoreError;

use super::HistoryAxis;
use crate::metric::Metric;
use crate::select::SelectError;

/// Error of a history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Nothing is selected.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// None of the selected trials can be read; holds the problem of the first.
    #[error("none of the selected trials can be read: {0}")]
    Unreadable(Box<StoreError>),
    /// An acceptance can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The control has no levels.
    #[error(
        "\"{0}\" is not a control: specify the levels in which the control differs from the other trials, \
         such as server=15"
    )]
    Control(String),
    /// A gate is on another metric.
    #[error("the gate \"{gate}\" is for {of}, but the history is of {metric}: specify a gate for {metric}")]
    Gate {
        /// The gate as written.
        gate: String,
        /// Its metric.
        of: Metric,
        /// The history's metric.
        metric: Metric,
    },
    /// No trial has a known step.
    #[error("none of {trials} has a {over}: {next}")]
    NoStep {
        /// Number of trials, in words.
        trials: String,
        /// The requested axis.
        over: HistoryAxis,
        /// What to do.
        next: &'static str,
    },
    /// A repository cannot order the commits.
    #[error(
        "git could not order {} in {path}: it must be a git repository that has all of them, and belong to you",
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
    #[error(
        "{step} has several servers ({levels}) for one cell ({cell}): select one of them, as in `server=…`"
    )]
    SeveralServers {
        /// The step.
        step: String,
        /// Names of the servers.
        levels: String,
        /// The cell.
        cell: String,
    },
    /// The selected cells are judged by different metrics, and none was requested.
    #[error(
        "the selected cells are judged by {}: name one of them, as in `pgdyno history {} …`, or select cells that are judged by the same",
        .metrics.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        .metrics.first().map(ToString::to_string).unwrap_or_default()
    )]
    SeveralMetrics {
        /// These metrics.
        metrics: Vec<Metric>,
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
        "no trial has a control {control} in its run, a cell with equal levels in all other factors. \
         Measure it in the same campaign, or specify more of its levels"
    )]
    NoControl {
        /// The control's selector.
        control: String,
    },
    /// Only the control was selected.
    #[error("all trials are of the control {control}: select others to compare with it")]
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
