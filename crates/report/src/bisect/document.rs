//! `bisect --format json`.

use diagnose::{Bisection, BisectionFinding};
use serde::Serialize;
use stats::Culprits;

use super::link_order::LinkOrderDocument;
use super::{Subject, sentence};

/// Version of the document, raised when readers of the older version would misread it.
const SCHEMA: u32 = 1;

/// A bisection as data, schema 1.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Bisection"))]
pub struct Document {
    schema: u32,
    /// `found`, `searching`, `nothing-to-find`, `ends-open` or `no-verdict`.
    state: &'static str,
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
    /// Whether it is a change of code layout alone; null if that was not asked.
    link_order: Option<LinkOrderDocument>,
    /// All levels in their order, the baseline first.
    levels: Vec<LevelDocument>,
    /// Sessions of all levels.
    sessions: usize,
    /// Time of the sessions.
    seconds: f64,
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
    /// Log ratios of the sessions.
    log_ratios: Vec<f64>,
    /// Why it can't be measured; null if it can.
    unavailable: Option<String>,
}

impl Document {
    /// The document of a bisection.
    pub fn new(bisection: &Bisection, subject: &Subject) -> Self {
        let posterior = bisection.posterior();
        let (state, mut found) = match bisection.finding() {
            BisectionFinding::EndsOpen => ("ends-open", Vec::new()),
            BisectionFinding::NothingToFind => ("nothing-to-find", Vec::new()),
            BisectionFinding::Searching => ("searching", Vec::new()),
            BisectionFinding::Found(found) => ("found", found),
            BisectionFinding::NoVerdict(_) => ("no-verdict", Vec::new()),
        };
        found.sort_by_key(|culprits| *culprits.positions.start());
        let name = |position: usize| {
            subject.levels.get(position).map(|level| level.name.clone()).unwrap_or_default()
        };
        let change = |(at, culprits): (usize, &Culprits)| {
            let size = posterior.and_then(|posterior| posterior.sizes.get(at));
            FoundDocument {
                levels: culprits.positions.clone().map(name).collect(),
                probability: culprits.probability,
                ratio: size.map(|size| size.ratio),
                interval: size.map(|size| [size.interval.low, size.interval.high]),
            }
        };
        let level = |(at, state): (usize, &diagnose::Position)| {
            let sessions = state.log_ratios.len();
            let mean = state.log_ratios.iter().sum::<f64>() / sessions.max(1) as f64;
            LevelDocument {
                level: name(at),
                title: subject.levels.get(at).and_then(|level| level.title.clone()),
                probability: posterior
                    .filter(|_| at > 0)
                    .and_then(|posterior| posterior.steps.get(at - 1))
                    .copied(),
                sessions,
                ratio: (sessions > 0).then(|| mean.exp()),
                log_ratios: state.log_ratios.clone(),
                unavailable: state.unavailable.clone(),
            }
        };
        Self {
            schema: SCHEMA,
            state,
            sentence: sentence(bisection, subject),
            figure: bisection.figure.as_str(),
            confidence: bisection.confidence(),
            ends: EndsDocument {
                sessions: bisection.ends.sessions(),
                ratio: bisection.ends.ratio(),
                interval: bisection.ends.interval().map(|interval| [interval.low, interval.high]),
                margin: bisection.ends.margin(),
            },
            two_changes: posterior.map(|posterior| posterior.two_steps),
            found: found.iter().enumerate().map(change).collect(),
            link_order: subject.link_order.as_ref().map(|check| LinkOrderDocument::new(check, subject)),
            levels: bisection.positions.iter().enumerate().map(level).collect(),
            sessions: bisection.sessions(),
            seconds: subject.seconds,
        }
    }
}
