//! `bisect --format json`.

use analysis::bisection::{
    Bisection, BisectionChange, BisectionLevel, BisectionLinkOrder, BisectionLinkOrderState, BisectionState,
};
use serde::Serialize;

/// Version of the document, raised when readers of the older version would misread it.
const SCHEMA: u32 = 1;

/// A bisection as data, schema 1.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Bisection"))]
pub struct Document {
    schema: u32,
    /// `found`, `searching`, `nothing-to-find`, `ends-open` or `no-verdict`.
    #[cfg_attr(test, schemars(with = "String"))]
    state: BisectionState,
    /// What was found, in a sentence.
    sentence: String,
    /// The figure whose change is searched.
    figure: &'static str,
    /// The probability at which a level is named.
    confidence: f64,
    /// The last level against the first.
    ends: EndsDocument,
    /// Probability that there are two changes; null before the search.
    two_changes: Option<f64>,
    /// The changes, if they are known, in the order of the levels.
    found: Vec<FoundDocument>,
    /// All levels in their order, the baseline first.
    levels: Vec<LevelDocument>,
    /// Sessions of all levels.
    sessions: usize,
    /// Time of the sessions.
    seconds: f64,
    /// If changes are merges: what the searches among the commits that they brought found.
    pub merges: Vec<Self>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "BisectionEnds"))]
struct EndsDocument {
    sessions: usize,
    /// Ratio of the figure; null without a session.
    ratio: Option<f64>,
    /// Its interval of 99 %, valid at any number of sessions.
    interval: Option<[f64; 2]>,
    /// The largest ratio at which they are equivalent.
    margin: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "BisectionChange"))]
struct FoundDocument {
    /// The level of the change, or those of which any may be.
    levels: Vec<String>,
    probability: f64,
    /// Ratio of the figure after and before; null if unknown.
    ratio: Option<f64>,
    /// Its interval of 95 %, given the level.
    interval: Option<[f64; 2]>,
    /// Whether it is a change of code layout alone; null if that was not asked.
    link_order: Option<LinkOrderDocument>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "BisectionLevel"))]
struct LevelDocument {
    level: String,
    title: Option<String>,
    /// Probability of a change at this level; null for the baseline, and before the search.
    probability: Option<f64>,
    sessions: usize,
    /// Mean ratio of the figure to the baseline; null without a session.
    ratio: Option<f64>,
    /// Its interval of 95 %, by these sessions alone; null with fewer than two.
    interval: Option<[f64; 2]>,
    /// Log ratios of the sessions.
    log_ratios: Vec<f64>,
    /// Why it can't be measured; null if it can.
    unavailable: Option<String>,
}

impl Document {
    /// Whether both ends are equivalent.
    pub fn has_nothing_to_find(&self) -> bool {
        self.state == BisectionState::NothingToFind
    }

    /// The document of a bisection.
    pub fn new(bisection: &Bisection) -> Self {
        let ends = &bisection.ends;
        let change = |found: &BisectionChange| FoundDocument {
            levels: (found.first..=found.last)
                .filter_map(|at| bisection.levels.get(at))
                .map(|level| level.name.clone())
                .collect(),
            probability: found.probability,
            ratio: found.change.map(ratio),
            interval: interval(found.ci95_low, found.ci95_high),
            link_order: found.link_order.as_ref().map(|check| LinkOrderDocument::new(check, bisection)),
        };
        Self {
            schema: SCHEMA,
            state: bisection.state,
            sentence: bisection.sentence.clone(),
            figure: bisection.figure,
            confidence: bisection.confidence,
            ends: EndsDocument {
                sessions: ends.sessions,
                ratio: ends.change.map(ratio),
                interval: interval(ends.ci99_low, ends.ci99_high),
                margin: ends.margin,
            },
            two_changes: bisection.two_changes,
            found: bisection.changes.iter().map(change).collect(),
            levels: bisection.levels.iter().map(LevelDocument::new).collect(),
            sessions: bisection.sessions,
            seconds: bisection.seconds,
            merges: Vec::new(),
        }
    }
}

/// The comparison of the commit and the one before it with their functions in another order.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "BisectionLinkOrder"))]
struct LinkOrderDocument {
    /// `confirmed`: the change is there, too; `layout-alone`: it is not; `open`; `failed`: a build can't be measured.
    #[cfg_attr(test, schemars(with = "String"))]
    state: BisectionLinkOrderState,
    /// What it shows, in a sentence.
    sentence: String,
    /// The commit before the change.
    before: String,
    /// The commit of the change.
    after: String,
    sessions: usize,
    /// Ratio of the figure; null without a session.
    ratio: Option<f64>,
    /// Its interval of 99 %, valid at any number of sessions.
    interval: Option<[f64; 2]>,
}

impl LinkOrderDocument {
    fn new(check: &BisectionLinkOrder, bisection: &Bisection) -> Self {
        let name = |at: usize| bisection.levels.get(at).map(|level| level.name.clone()).unwrap_or_default();
        Self {
            state: check.state,
            sentence: check.sentence.clone(),
            before: name(check.before),
            after: name(check.after),
            sessions: check.sessions,
            ratio: check.change.map(ratio),
            interval: interval(check.ci99_low, check.ci99_high),
        }
    }
}

impl LevelDocument {
    fn new(level: &BisectionLevel) -> Self {
        Self {
            level: level.name.clone(),
            title: level.title.clone(),
            probability: level.probability,
            sessions: level.sessions.len(),
            ratio: level.change.map(ratio),
            interval: interval(level.ci95_low, level.ci95_high),
            log_ratios: level.sessions.iter().map(|change| change.ln_1p()).collect(),
            unavailable: level.unavailable.clone(),
        }
    }
}

/// The ratio of a change.
fn ratio(change: f64) -> f64 {
    1.0 + change
}

fn interval(low: Option<f64>, high: Option<f64>) -> Option<[f64; 2]> {
    low.zip(high).map(|(low, high)| [ratio(low), ratio(high)])
}
