//! How the design of the campaigns entered a comparison: blocks, numbers of runs that results decided, sessions.

use crate::paired::paused_in_words;
use analysis::compare::MetricRows;
use analysis::judgement::{PairedComparison, Row};
use plaintext::figures::counted;
use serde::Serialize;

/// The design of a comparison, as data.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct DesignDocument {
    /// Number of blocks within which the sides are compared; null if they are compared as two samples.
    blocks: Option<usize>,
    /// Spread of what both sides of a block have in common, a standard deviation of logarithms; null without blocks.
    block_spread: Option<f64>,
    /// Whether p and interval are valid although the number of runs depends on the results.
    sequential: bool,
    /// The numbers of sessions of both sides if they have none in common; null if they do.
    sessions: Option<[usize; 2]>,
    /// Spread between sessions, a standard deviation of logarithms; null if no other sessions show it.
    session_spread: Option<f64>,
}

impl DesignDocument {
    pub(super) fn new(row: &Row) -> Self {
        let comparison = row.judged.comparison.as_ref();
        let blocks = comparison.and_then(|comparison| comparison.blocks.as_ref());
        Self {
            blocks: blocks.map(stats::Blocks::n),
            block_spread: blocks.map(|blocks| blocks.spread),
            sequential: comparison
                .and_then(|comparison| comparison.estimate)
                .is_some_and(|estimate| estimate.is_sequential),
            sessions: row.sessions.map(|sessions| [sessions.a, sessions.b]),
            session_spread: row.sessions.and_then(|sessions| Some(sessions.spread?.variance.sqrt())),
        }
    }
}

/// A comparison by common sessions, as data.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PairedDocument {
    /// The sessions that count, in their order.
    sessions: Vec<SessionDocument>,
    /// Number of comparisons that are decided together, with one error rate.
    comparisons: usize,
    /// Number of further sessions until a decision, 0 if it is decided; null if unknown.
    sessions_left: Option<usize>,
    /// The time that they take.
    seconds_left: Option<f64>,
    /// The median duration of a session.
    session_seconds: Option<f64>,
    /// Number of sessions that do not count, as a side is invalid.
    invalid: usize,
    /// For each side, the CPU time of its servers while the other one had the load, as a share of that during its own load.
    paused_cpu: [Option<f64>; 2],
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SessionDocument {
    /// Its number in its run.
    session: u32,
    /// Variant over baseline.
    ratio: f64,
}

impl PairedDocument {
    pub(super) fn new(paired: &PairedComparison) -> Self {
        let sessions = paired.numbers.iter().zip(paired.sequence.log_ratios());
        Self {
            sessions: sessions
                .map(|(session, log_ratio)| SessionDocument { session: *session, ratio: log_ratio.exp() })
                .collect(),
            comparisons: paired.comparisons,
            sessions_left: paired.sequence.sessions_left(),
            seconds_left: paired.seconds_left(),
            session_seconds: paired.session_seconds,
            invalid: paired.invalid,
            paused_cpu: paired.paused_cpu,
        }
    }
}

/// The number of common sessions, or the numbers of runs of both sides; if these were measured at other times, with the
/// numbers of times.
pub(super) fn numbers(row: &Row) -> String {
    if let Some(paired) = &row.judged.paired {
        return paired.sequence.sessions().to_string();
    }
    let (a, b) = (row.a.values.len(), row.b.values.len());
    match row.sessions {
        None => format!("{a}/{b}"),
        Some(sessions) => format!("{}×{}/{}×{}", sessions.a, a / sessions.a, sessions.b, b / sessions.b),
    }
}

/// Notes for readers of the table.
pub(super) fn notes(of: &MetricRows) -> Vec<String> {
    let documents: Vec<DesignDocument> = of.rows.iter().map(DesignDocument::new).collect();
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let mut notes = Vec::new();
    let mut spreads: Vec<f64> = documents.iter().filter_map(|of| of.block_spread).collect();
    spreads.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (spreads.first(), spreads.last()) {
        let range = if spreads.len() == 1 {
            percent(*most)
        } else {
            format!("{} to {}", percent(*least), percent(*most))
        };
        notes.push(format!(
            "{} compared within blocks, which have a spread of {range} in common",
            counted(spreads.len(), "cell")
        ));
    }
    if documents.iter().any(|of| of.sequential) {
        notes.push("the number of runs depends on their results: p and intervals allow for that".to_owned());
    }
    let paired: Vec<&PairedComparison> =
        of.rows.iter().filter_map(|row| row.judged.paired.as_ref()).collect();
    if let Some(first) = paired.first() {
        let together = match first.comparisons {
            0 | 1 => String::new(),
            several => format!(" and for {several} comparisons together"),
        };
        notes.push(format!(
            "{} measured in pairs: the intervals hold with 99% confidence at any number of sessions{together}",
            counted(paired.len(), "cell")
        ));
        let invalid: usize = paired.iter().map(|paired| paired.invalid).sum();
        if invalid > 0 {
            notes.push(format!("{} not used: a side is invalid", counted(invalid, "session")));
        }
        notes.extend(paused_in_words(paired.iter().flat_map(|paired| paired.paused_cpu)));
    }
    let apart: Vec<&DesignDocument> = documents.iter().filter(|of| of.sessions.is_some()).collect();
    if let Some(first) = apart.first() {
        let known: Vec<f64> = apart.iter().filter_map(|of| of.session_spread).collect();
        let sides = match first.sessions {
            Some([1, 1]) => "each side is one session: its runs share the machine's state".to_owned(),
            _ => "n: sessions × runs; the sides have no session in common".to_owned(),
        };
        let widest = known.iter().copied().fold(0.0, f64::max);
        notes.push(match known.len() {
            0 => format!(
                "{sides}. How much sessions differ is unknown, and not in p and interval: `pgdyno ab` measures both sides in \
                 pairs"
            ),
            n if n == apart.len() => {
                format!("{sides}. Sessions differ by up to {}, which p and intervals contain", percent(widest))
            }
            n => format!(
                "{sides}. Sessions differ by up to {} in the {} of which others are known; p and intervals of the \
                 other ones do not contain that",
                percent(widest),
                counted(n, "cell")
            ),
        });
    }
    notes
}
