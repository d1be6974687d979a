//! Whether a change is one of code layout alone, in words and as data.

use diagnose::{LinkOrderCheck, LinkOrderFinding};
use plaintext::figures::{change, counted};
use serde::Serialize;

use super::{Subject, figure_name, in_words};

/// The comparison of the commit and the one before it with their functions in another order.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "BisectionLinkOrder"))]
pub(super) struct LinkOrderDocument {
    /// `confirmed`: the change is there, too; `layout-alone`: it is not; `open`; `failed`: a build can't be measured.
    state: &'static str,
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
    pub(super) fn new(check: &LinkOrderCheck, subject: &Subject) -> Self {
        let name = |position: usize| subject.levels.get(position).map(|level| level.name.clone());
        Self {
            state: match check.finding() {
                LinkOrderFinding::Confirmed => "confirmed",
                LinkOrderFinding::LayoutAlone => "layout-alone",
                LinkOrderFinding::Open => "open",
                LinkOrderFinding::Failed(_) => "failed",
            },
            sentence: sentence(check),
            before: name(check.before).unwrap_or_default(),
            after: name(check.after).unwrap_or_default(),
            sessions: check.sequence.sessions(),
            ratio: check.sequence.ratio(),
            interval: check.sequence.interval().map(|interval| [interval.low, interval.high]),
        }
    }
}

/// What the check shows, in a sentence.
pub(super) fn sentence(check: &LinkOrderCheck) -> String {
    let sessions = check.sequence.sessions();
    let ratio = check.sequence.ratio().map(|ratio| change(ratio - 1.0)).unwrap_or_default();
    let interval = check.sequence.interval().map(|interval| format!(" ({})", in_words(interval, "99%")));
    let measured = format!(
        "with the functions of both builds in the order of their names, {} {ratio}{} by {}",
        figure_name(check.figure),
        interval.unwrap_or_default(),
        counted(sessions, "session")
    );
    match check.finding() {
        LinkOrderFinding::Confirmed => format!("It is not one of code layout: {measured}."),
        LinkOrderFinding::LayoutAlone => format!("It is one of code layout alone: {measured}."),
        LinkOrderFinding::Open if sessions == 0 => {
            "Whether it is one of code layout was not measured: more time shows it.".to_owned()
        }
        LinkOrderFinding::Open => format!("Whether it is one of code layout is not known: {measured}."),
        LinkOrderFinding::Failed(why) => format!(
            "Whether it is one of code layout is not known, as a build with the functions in the order of their names can't be \
             measured: {}",
            why.lines().next().unwrap_or_default()
        ),
    }
}
