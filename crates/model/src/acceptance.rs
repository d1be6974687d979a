//! That somebody looked at a shift in a history and accepted it.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// A shift that somebody accepted: it is shown as such from then on, and fails no gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// Unique and sortable by time: a ULID.
    pub id: String,
    /// The metric that shifted, as the command line has it.
    pub metric: String,
    /// The selector of the control that it was taken relative to.
    pub control: Option<String>,
    /// What the history goes over, such as `version`.
    pub over: String,
    /// The last step with the level before.
    pub before: String,
    /// The first step with the level after.
    pub after: String,
    /// Whether the figure fell; it rose otherwise.
    pub fell: bool,
    /// The cells that shifted, each as its levels by the names of their factors.
    pub cells: Vec<BTreeMap<String, String>>,
    /// Why it is accepted.
    pub note: String,
    /// Who accepted it; none where that is not known.
    pub by: Option<String>,
    /// When it was accepted.
    pub at: Timestamp,
}
