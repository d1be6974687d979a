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
    search(history, false)
}

/// As with `--build-while-measuring`; builds do not disturb sessions here.
pub(crate) fn run_with_builds_apart(history: &mut History) -> Outcome {
    search(history, true)
}

fn search(history: &mut History, builds_apart: bool) -> Outcome {
    let mut ends = PairedSequence::new(MARGIN, 1);
    history.build(0);
    history.build(COMMITS);
    if builds_apart {
        history.begin_build(COMMITS / 2);
    }
    while ends.verdict().is_open() && history.sessions < MAX_SESSIONS {
        ends.add(history.pair(COMMITS));
    }
    if !matches!(ends.verdict(), Verdict::Regression | Verdict::Improvement) {
        return outcome(history, None);
    }
    let mut search = StepSearch::new(COMMITS, ends.log_ratios());
    let mut waits = false;
    loop {
        if let Some(ended) = history.ended_build(std::mem::take(&mut waits))
            && !history.build(ended)
        {
            search.exclude(ended);
        }
        let posterior = search.posterior();
        let found = search.found(&posterior, CONFIDENCE);
        if found.is_some() || history.sessions >= MAX_SESSIONS {
            return outcome(history, found.map(|found| found.into_iter().map(|of| of.positions).collect()));
        }
        let is_built = |position: usize| history.is_built(position);
        let cost = |position: usize| ProbeCost {
            preparation_s: if is_built(position) { 0.0 } else { BUILD_S },
            session_s: SESSION_S,
        };
        let of_built = |position| cost(position).only_if(is_built(position));
        let ready = builds_apart.then(|| search.next(&posterior, of_built)).flatten();
        // What would be built next if nothing were measured meanwhile.
        let to_build = search.next(&posterior, cost).filter(|position| builds_apart && !is_built(*position));
        let Some(next) = ready.or_else(|| search.next(&posterior, cost)) else {
            let found = search.narrowed(&posterior, CONFIDENCE);
            return outcome(history, found.map(|found| found.into_iter().map(|of| of.positions).collect()));
        };
        if let Some(to_build) = to_build {
            history.begin_build(to_build);
            if ready.is_none() {
                waits = true;
                continue;
            }
        }
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
