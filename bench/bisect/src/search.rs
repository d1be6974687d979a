//! The search of the crate `stats`, as `pgdyno bisect` runs it.

use stats::{PairedSequence, ProbeCost, StepSearch, Verdict};

use crate::Outcome;
use crate::history::{BUILD_S, COMMITS, History, SESSION_S};

/// The largest ratio at which both ends are equivalent.
const MARGIN: f64 = 1.02;
/// Probability at which a commit is named.
const CONFIDENCE: f64 = 0.95;
/// Sessions after which a search ends.
const MAX_SESSIONS: usize = 3000;

pub(crate) fn run(history: &mut History) -> Outcome {
    let mut ends = PairedSequence::new(MARGIN, 1);
    history.build(0);
    history.build(COMMITS);
    while ends.verdict().is_open() && history.sessions < MAX_SESSIONS {
        ends.add(history.pair(COMMITS));
    }
    if !matches!(ends.verdict(), Verdict::Regression | Verdict::Improvement) {
        return outcome(history, None);
    }
    let mut search = StepSearch::new(COMMITS, ends.log_ratios());
    loop {
        let posterior = search.posterior();
        let found = search.found(&posterior, CONFIDENCE);
        if found.is_some() || history.sessions >= MAX_SESSIONS {
            return outcome(history, found.map(|found| found.into_iter().map(|of| of.positions).collect()));
        }
        let cost = |position: usize| ProbeCost {
            preparation_s: if history.is_built(position) { 0.0 } else { BUILD_S },
            session_s: SESSION_S,
        };
        let Some(next) = search.next(&posterior, cost) else {
            let found = search.narrowed(&posterior, CONFIDENCE);
            return outcome(history, found.map(|found| found.into_iter().map(|of| of.positions).collect()));
        };
        match history.build(next) {
            true => search.add(next, &[history.pair(next)]),
            false => search.exclude(next),
        }
    }
}

/// Judges an answer; none if nothing was found.
fn outcome(history: &History, found: Option<Vec<std::ops::RangeInclusive<usize>>>) -> Outcome {
    let named = found.unwrap_or_default();
    let has = |step: &usize| named.iter().any(|positions| positions.contains(step));
    Outcome {
        is_right: history.steps.iter().all(has) && named.len() == history.steps.len(),
        is_wrong: named.iter().any(|positions| !history.steps.iter().any(|step| positions.contains(step))),
        probes: history.probes(),
        sessions: history.sessions,
        seconds: history.seconds,
    }
}
