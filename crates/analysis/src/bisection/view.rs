//! Bisections as plain data: for reports, and for texts.

use serde::Serialize;

/// A run that searches for the level that changed the performance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bisection {
    /// ULID of its run.
    pub run: String,
    /// What is searched, such as `64 commits of /src/postgres, from a1b2 to c3d4`.
    pub searched: String,
    /// What a level is: `commit`, `release`, `setting`, `kernel`, `kernel argument`, `kernel parameter` or `level`.
    pub what: &'static str,
    /// How far it is.
    pub state: BisectionState,
    /// What was found, in a sentence or two.
    pub sentence: String,
    /// The figure whose change is searched: `throughput`, `latency`, `server-cpu`, `server-instructions` or `instructions`.
    pub figure: &'static str,
    /// The figure in words.
    pub label: &'static str,
    /// The direction in which it improves.
    #[cfg_attr(test, ts(type = "'higher' | 'lower'"))]
    pub better: &'static str,
    /// The probability at which a level is named.
    pub confidence: f64,
    /// The last level against the first.
    pub ends: BisectionEnds,
    /// Probability that there are two changes; null before the ends are known to differ.
    pub two_changes: Option<f64>,
    /// The changes that were found, in the order of the levels.
    pub changes: Vec<BisectionChange>,
    /// Whether sessions are pairs of slices; else each is two trials, one after the other.
    pub is_in_slices: bool,
    /// All levels in their order; the first one is the baseline.
    pub levels: Vec<BisectionLevel>,
    /// Indices of the most probable levels and of those next to them, in their order.
    pub candidates: Vec<usize>,
    /// Number of levels that were measured, the baseline included.
    pub measured: usize,
    /// Number of sessions of all levels.
    pub sessions: usize,
    /// Time of the sessions and of what was prepared between them.
    pub seconds: f64,
}

/// How far a bisection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BisectionState {
    /// Whether the ends differ is not known yet.
    EndsOpen,
    /// They are equivalent.
    NothingToFind,
    /// They differ, and the level is not known yet.
    Searching,
    /// The change is known.
    Found,
    /// There is no verdict, whatever the figures.
    NoVerdict,
}

/// The comparison of a commit and the one before it in builds with their functions in another order.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BisectionLinkOrder {
    /// What it shows.
    pub state: BisectionLinkOrderState,
    /// The same in a sentence.
    pub sentence: String,
    /// Index of the level before the change.
    pub before: usize,
    /// Index of the level of the change.
    pub after: usize,
    /// Number of its sessions.
    pub sessions: usize,
    /// Ratio of the figure, less 1; null without a session.
    pub change: Option<f64>,
    /// The lower end of its interval, with 99% confidence at any number of sessions; null while it is unbounded.
    pub ci99_low: Option<f64>,
    /// The upper end.
    pub ci99_high: Option<f64>,
}

/// What the comparison with another order of functions shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BisectionLinkOrderState {
    /// The change is there, too.
    Confirmed,
    /// It is not: it is one of code layout.
    LayoutAlone,
    /// Not known.
    Open,
    /// A build can't be measured.
    Failed,
}

/// The last level against the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BisectionEnds {
    /// Sessions that show whether they differ.
    pub sessions: usize,
    /// Ratio of the figure, less 1; null without a session.
    pub change: Option<f64>,
    /// The lower end of its interval, with 99% confidence at any number of sessions; null while it is unbounded.
    pub ci99_low: Option<f64>,
    /// The upper end.
    pub ci99_high: Option<f64>,
    /// The largest ratio at which they are equivalent.
    pub margin: f64,
}

/// A change that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BisectionChange {
    /// Index of the level of the change; of several that can't be told apart, the first.
    pub first: usize,
    /// The last of them.
    pub last: usize,
    /// Probability that the change is there.
    pub probability: f64,
    /// Ratio of the figure after and before, less 1; null if it is unknown.
    pub change: Option<f64>,
    /// The lower end of its 95% interval, given the level.
    pub ci95_low: Option<f64>,
    /// The upper end.
    pub ci95_high: Option<f64>,
    /// Index of the last measured level before it.
    pub before: usize,
    /// Index of the first measured level at or after it.
    pub after: usize,
    /// Whether it is one of code layout alone; null if that was not asked.
    pub link_order: Option<BisectionLinkOrder>,
}

/// A level of a bisection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BisectionLevel {
    /// The level as selectors name it.
    pub name: String,
    /// A shorter name: of a commit without its repository.
    pub short: String,
    /// Subject of a commit, release of a kernel, all arguments of a kernel; null for others, and if the run did not record it.
    pub title: Option<String>,
    /// Author and date of a commit; null as above, and unless it was to be measured.
    pub author: Option<String>,
    /// Its files with their numbers of changed lines, in lines; empty as above.
    pub files: Vec<String>,
    /// Probability of a change at this level; null for the baseline, and before the ends are known to differ.
    pub probability: Option<f64>,
    /// Ratio of the figure to the baseline in each of its sessions, less 1.
    pub sessions: Vec<f64>,
    /// The geometric mean of these ratios, less 1; null without a session.
    pub change: Option<f64>,
    /// The lower end of its 95% interval, by these sessions alone; null with fewer than two.
    pub ci95_low: Option<f64>,
    /// The upper end.
    pub ci95_high: Option<f64>,
    /// Why it can't be measured; null if it can.
    pub unavailable: Option<String>,
    /// Its cell; null if it has no trial.
    pub place: Option<BisectionPlace>,
}

/// The cell of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BisectionPlace {
    /// Index of its panel.
    pub panel: usize,
    /// Index in the panel's rows.
    pub row: usize,
    /// Index of its column.
    pub column: usize,
}
