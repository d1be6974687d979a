//! Binary search by hand: three runs of each commit, whose mean is above or below the middle of both ends.

use crate::Outcome;
use crate::history::{COMMITS, History};

/// Runs of a commit.
const RUNS: usize = 3;

pub(crate) fn run(history: &mut History) -> Outcome {
    let mut mean = |position: usize| {
        history.build(position).then(|| (0..RUNS).map(|_| history.run(position)).sum::<f64>() / RUNS as f64)
    };
    let (from, to) = (mean(0).unwrap_or_default(), mean(COMMITS).unwrap_or_default());
    let threshold = f64::midpoint(from, to);
    let (mut good, mut bad) = (0, COMMITS);
    while bad - good > 1 {
        let middle = usize::midpoint(good, bad);
        // The nearest one that builds, as `git bisect skip` goes on.
        let mut near: Vec<usize> = (good + 1..bad).collect();
        near.sort_by_key(|position| position.abs_diff(middle));
        let Some((position, level)) = near.into_iter().find_map(|at| Some((at, mean(at)?))) else { break };
        if (level > threshold) == (from > to) { good = position } else { bad = position }
    }
    let found = good + 1..=bad;
    let is_right = history.steps.len() == 1 && found.contains(&history.steps[0]);
    Outcome {
        is_right,
        is_wrong: !history.steps.iter().any(|step| found.contains(step)),
        probes: history.probes(),
        sessions: history.sessions,
        seconds: history.seconds,
    }
}
