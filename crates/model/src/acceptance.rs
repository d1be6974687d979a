//! Acceptance of a shift in a history.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// A shift that somebody accepted: from then on reports show it as accepted, and it fails no gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// Unique and sortable by time: a ULID.
    pub id: String,
    /// The metric that shifted, as on the command line.
    pub metric: String,
    /// Selector of the control that the metric was relative to.
    pub control: Option<String>,
    /// Axis of the history, such as `version`.
    pub over: String,
    /// Last step at the level before.
    pub before: String,
    /// First step at the level after.
    pub after: String,
    /// Whether the figure fell; otherwise it rose.
    pub fell: bool,
    /// The cells that shifted, each as levels by factor name.
    pub cells: Vec<BTreeMap<String, String>>,
    /// Reason for accepting it.
    pub note: String,
    /// Person who accepted it; none if unknown.
    pub by: Option<String>,
    /// Time of acceptance.
    pub at: Timestamp,
}
