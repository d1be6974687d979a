//! Search for the place of a change by tests that pass or fail, and are not always right.
//!
//! Each test fails with one probability before the step and with another one after it. Both are unknown: the posterior
//! over the place integrates over them. The next position is the one whose test has the most expected information.

use std::collections::{BTreeMap, BTreeSet};

use super::likelihood::normalized;
use super::{Culprits, culprits};

/// Prior of the probability that a test is wrong, of either kind: a beta distribution with a mean of a tenth, so that some few runs
/// of a test that is always right are enough.
const WRONG: (f64, f64) = (0.5, 4.5);

/// Points of the grid of each probability.
const POINTS: usize = 40;

/// The least information of a test worth its time, in nats.
const LEAST: f64 = 1e-4;

/// A search by tests. Position 0 is the baseline, where fewer fail than at the last position.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeSearch {
    last: usize,
    /// Tests by position: that passed, and that failed.
    outcomes: BTreeMap<usize, [u32; 2]>,
    excluded: BTreeSet<usize>,
}

/// The posterior of a search by tests.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomePosterior {
    /// Probability of the step at each position, from the first after the baseline on.
    pub steps: Vec<f64>,
    /// Mean probabilities that a test fails before and after it.
    pub failing: [f64; 2],
}

impl OutcomeSearch {
    /// A search among the positions 1 to `last`.
    pub fn new(last: usize) -> Self {
        Self { last, outcomes: BTreeMap::new(), excluded: BTreeSet::new() }
    }

    /// Adds a test at a position.
    pub fn add(&mut self, position: usize, has_failed: bool) {
        self.outcomes.entry(position).or_default()[usize::from(has_failed)] += 1;
    }

    /// Excludes a position that can't be tested: it may still have the step.
    pub fn exclude(&mut self, position: usize) {
        self.excluded.insert(position);
    }

    /// Tests at a position: that passed, and that failed.
    pub fn outcomes(&self, position: usize) -> [u32; 2] {
        self.outcomes.get(&position).copied().unwrap_or_default()
    }

    /// Probability that tests fail more often at the last position than at the baseline, with flat priors of both.
    pub fn ends_differ(&self) -> f64 {
        let weights = |position: usize| {
            let outcomes = self.outcomes(position);
            let logs = (0..POINTS).map(|at| log_likelihood(point(at), outcomes));
            let highest = logs.clone().fold(f64::NEG_INFINITY, f64::max);
            normalized(logs.map(|log| (log - highest).exp()).collect())
        };
        let (baseline, last) = (weights(0), weights(self.last));
        let mut below = 0.0;
        let mut sum = 0.0;
        for (baseline, last) in baseline.iter().zip(last) {
            // In the same cell of the grid, one is as likely to be the larger one as the other.
            sum += last * (below + baseline / 2.0);
            below += baseline;
        }
        sum
    }

    /// The posterior.
    pub fn posterior(&self) -> OutcomePosterior {
        let mut logs: Vec<(usize, [usize; 2], f64)> = Vec::new();
        let tested: Vec<(usize, [u32; 2])> = self.outcomes.iter().map(|(at, of)| (*at, *of)).collect();
        for before in 0..POINTS {
            for after in before + 1..POINTS {
                let prior = log_prior(point(before)) + log_prior(1.0 - point(after));
                // The step is at or before the first tested position that it is not after: places between two are alike.
                let mut log =
                    prior + tested.iter().map(|(_, of)| log_likelihood(point(after), *of)).sum::<f64>();
                for (at, (_, of)) in tested.iter().enumerate() {
                    log += log_likelihood(point(before), *of) - log_likelihood(point(after), *of);
                    logs.push((at, [before, after], log));
                }
            }
        }
        let highest = logs.iter().map(|(.., log)| *log).fold(f64::NEG_INFINITY, f64::max);
        // The gap after tested position i: from the one after it to the next tested one.
        let next = |gap: usize| tested.get(gap + 1).map_or(self.last, |(position, _)| *position);
        let mut gaps = vec![0.0; tested.len()];
        let (mut sum, mut failing) = (0.0, [0.0; 2]);
        for (gap, places, log) in logs {
            let weight = (log - highest).exp();
            gaps[gap] += weight;
            let width = (next(gap) - tested[gap].0) as f64;
            sum += weight * width;
            failing[0] += weight * width * point(places[0]);
            failing[1] += weight * width * point(places[1]);
        }
        let mut steps = vec![0.0; self.last];
        for (gap, weight) in gaps.iter().enumerate() {
            steps[tested[gap].0..next(gap)].fill(weight / sum);
        }
        OutcomePosterior { steps, failing: failing.map(|of| of / sum) }
    }

    /// The position whose next test has the most expected information; none if no test would tell more.
    pub fn next(&self, posterior: &OutcomePosterior) -> Option<usize> {
        let [before, after] = posterior.failing;
        let information = |is_after: f64| {
            let mixed = is_after * after + (1.0 - is_after) * before;
            entropy(mixed) - is_after * entropy(after) - (1.0 - is_after) * entropy(before)
        };
        let mut is_after = 0.0;
        let rates = posterior.steps.iter().zip(1..).map(|(share, position)| {
            is_after += share;
            (position, information(is_after))
        });
        let testable = rates.filter(|(position, _)| !self.excluded.contains(position));
        let best = testable.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (best.1 > LEAST).then_some(best.0)
    }

    /// All positions by their probability, the most probable first; those that can't be told apart are together.
    pub fn culprits(&self, posterior: &OutcomePosterior) -> Vec<Culprits> {
        culprits(&posterior.steps, |position| !self.excluded.contains(&position))
    }
}

/// The middle of a cell of the grid.
fn point(at: usize) -> f64 {
    (at as f64 + 0.5) / POINTS as f64
}

fn log_likelihood(failing: f64, [passed, failed]: [u32; 2]) -> f64 {
    f64::from(failed) * failing.ln() + f64::from(passed) * (1.0 - failing).ln()
}

fn log_prior(wrong: f64) -> f64 {
    (WRONG.0 - 1.0) * wrong.ln() + (WRONG.1 - 1.0) * (1.0 - wrong).ln()
}

/// Entropy of a test that fails with this probability, in nats.
fn entropy(failing: f64) -> f64 {
    super::entropy([failing, 1.0 - failing])
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Searches with tests that fail with these probabilities before and after the step: the answer, and the number of tests.
    fn search(
        seed: u64,
        (last, step): (usize, usize),
        failing: [f64; 2],
        is_excluded: fn(usize) -> bool,
    ) -> (Culprits, usize) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut test = |position: usize| random.random_bool(failing[usize::from(position >= step)]);
        let mut search = OutcomeSearch::new(last);
        let mut tests = 0;
        while search.ends_differ() < 0.99 {
            for end in [0, last] {
                search.add(end, test(end));
                tests += 1;
            }
        }
        loop {
            let posterior = search.posterior();
            let best = search.culprits(&posterior).remove(0);
            let next = search.next(&posterior);
            match next.filter(|_| best.probability < 0.95 && tests < 5000) {
                Some(next) if is_excluded(next) => search.exclude(next),
                Some(next) => {
                    search.add(next, test(next));
                    tests += 1;
                }
                None => return (best, tests),
            }
        }
    }

    #[test]
    fn a_test_that_is_always_right_finds_the_step_in_few_runs() {
        for (seed, step) in [(1, 1), (2, 317), (3, 1000), (4, 640)] {
            let (found, tests) = search(seed, (1000, step), [0.0, 1.0], |_| false);
            assert_eq!(found.positions, step..=step);
            assert!(tests < 45, "{tests}");
        }
    }

    #[test]
    fn a_test_that_is_often_wrong_finds_it_in_more_with_the_stated_probability() {
        let searches = 60;
        let right = (0..searches).filter(|seed| {
            let step = 1 + (*seed as usize * 97) % 500;
            search(*seed, (500, step), [0.1, 0.7], |_| false).0.positions == (step..=step)
        });
        let right = right.count();
        assert!(right >= 53, "{right} of {searches}");
    }

    #[test]
    fn positions_that_cant_be_tested_are_named_with_their_neighbours() {
        let (found, _) = search(5, (60, 22), [0.0, 1.0], |position| (20..=24).contains(&position));
        assert_eq!(found.positions, 20..=25);
    }

    #[test]
    fn equal_ends_do_not_differ() {
        let mut search = OutcomeSearch::new(9);
        assert!((search.ends_differ() - 0.5).abs() < 1e-9);
        for _ in 0..20 {
            for end in [0, 9] {
                search.add(end, true);
                search.add(end, false);
            }
        }
        assert!((search.ends_differ() - 0.5).abs() < 1e-9);
    }
}
