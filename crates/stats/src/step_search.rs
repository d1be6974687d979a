//! Search for the place of a change among many positions, by noisy measurements: which commit, release, setting or kernel.
//!
//! Position 0 is the baseline; the last position is known to differ from it. A step at position k means that k is the first
//! with the new level. Every value is a log ratio to the baseline, of one session; it adds up from the level, the luck of the
//! position's build (its code layout, which all its sessions share) and the luck of the session, which is now and then far
//! off. The posterior over the place is that of all these unknowns, integrated on a grid: of one step, and of two with a level of
//! its own between them. The next position is the one with the most expected information per second.
//!
//! Source of the idea: Burnashev and Zigangirov, "An Interval Estimation Problem for Controlled Observations", Problems of
//! Information Transmission 10 (1974), probabilistic bisection; choosing by mutual information follows Lindley, "On a Measure
//! of the Information Provided by an Experiment", Annals of Mathematical Statistics 27 (1956).

mod information;
mod likelihood;
mod outcomes;
mod posterior;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use likelihood::{Levels, Likelihood, Noises};
pub use outcomes::{OutcomePosterior, OutcomeSearch};
pub use posterior::{StepPosterior, StepSize};

/// The most steps that a search distinguishes.
const MAX_STEPS: usize = 2;

/// A search: the values so far.
#[derive(Clone, Debug)]
pub struct StepSearch {
    last: usize,
    levels: Levels,
    noises: Noises,
    likelihoods: BTreeMap<usize, Likelihood>,
    excluded: BTreeSet<usize>,
}

/// Cost of measuring at a position, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeCost {
    /// Before its first session: building, filling. 0 if it is ready.
    pub preparation_s: f64,
    /// Of a session.
    pub session_s: f64,
}

impl ProbeCost {
    /// This, or infinitely much, so that the position is not chosen.
    pub fn only_if(self, can_be_chosen: bool) -> Self {
        if can_be_chosen { self } else { Self { preparation_s: f64::INFINITY, ..self } }
    }
}

/// Neighbouring positions of which any may have the step: no position between them can be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Culprits {
    /// The positions.
    pub positions: RangeInclusive<usize>,
    /// Probability that one of them has a step.
    pub probability: f64,
}

impl StepSearch {
    /// A search among the positions 1 to `last`, of which the last one has sessions with these log ratios. They show that it
    /// differs from the baseline.
    pub fn new(last: usize, ends: &[f64]) -> Self {
        let mean = ends.iter().sum::<f64>() / ends.len().max(1) as f64;
        let squares: f64 = ends.iter().map(|value| (value - mean).powi(2)).sum();
        let degrees = ends.len().saturating_sub(1).max(1);
        let noises = Noises::new((squares / degrees as f64).sqrt(), mean.abs());
        let levels = Levels::new(mean, &noises, ends.len());
        let mut search =
            Self { last, levels, noises, likelihoods: BTreeMap::new(), excluded: BTreeSet::new() };
        search.add(last, ends);
        search
    }

    /// Adds sessions at a position after the baseline.
    pub fn add(&mut self, position: usize, log_ratios: &[f64]) {
        let (levels, noises) = (&self.levels, &self.noises);
        let likelihood = self.likelihoods.entry(position).or_insert_with(|| Likelihood::new(levels, noises));
        likelihood.add(log_ratios, levels, noises);
    }

    /// Excludes a position that can't be measured: it may still have the step.
    pub fn exclude(&mut self, position: usize) {
        self.excluded.insert(position);
    }

    /// Number of sessions at a position.
    pub fn sessions(&self, position: usize) -> usize {
        self.likelihoods.get(&position).map_or(0, Likelihood::sessions)
    }

    /// Whether a position can be measured.
    fn is_testable(&self, position: usize) -> bool {
        !self.excluded.contains(&position) || self.likelihoods.contains_key(&position)
    }
}

/// All positions by the probability of a step, from that of position 1 on, the most probable first; those that can't be told apart
/// are together: each that can't be measured with the next one that can.
fn culprits(steps: &[f64], is_testable: impl Fn(usize) -> bool) -> Vec<Culprits> {
    let (mut all, mut first) = (Vec::new(), 1);
    while first <= steps.len() {
        let last = (first..=steps.len()).find(|position| is_testable(*position)).unwrap_or(steps.len());
        let probability = steps[first - 1..last].iter().sum::<f64>().min(1.0);
        all.push(Culprits { positions: first..=last, probability });
        first = last + 1;
    }
    all.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    all
}

/// Entropy of shares, in nats.
fn entropy(shares: impl IntoIterator<Item = f64>) -> f64 {
    shares.into_iter().filter(|share| *share > 0.0).map(|share| -share * share.ln()).sum()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_distr::StandardNormal;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const COST: ProbeCost = ProbeCost { preparation_s: 0.0, session_s: 1.0 };

    /// Positions with steps of these sizes, as log ratios, measured with noise.
    struct Truth {
        random: Xoshiro256PlusPlus,
        steps: Vec<(usize, f64)>,
        sd: f64,
    }

    impl Truth {
        fn new(seed: u64, steps: &[(usize, f64)], sd: f64) -> Self {
            Self { random: Xoshiro256PlusPlus::seed_from_u64(seed), steps: steps.to_vec(), sd }
        }

        fn session(&mut self, position: usize) -> f64 {
            let luck: f64 = self.random.sample(StandardNormal);
            let steps = self.steps.iter().filter(|(at, _)| *at <= position);
            steps.map(|(_, size)| size).sum::<f64>() + self.sd * luck
        }

        fn sessions(&mut self, position: usize, count: usize) -> Vec<f64> {
            (0..count).map(|_| self.session(position)).collect()
        }

        /// Searches until the steps are known; positions for which this is true can't be measured. Returns also the number of
        /// sessions.
        fn search(&mut self, last: usize, is_excluded: fn(usize) -> bool) -> (Vec<Culprits>, usize) {
            let ends = self.sessions(last, 30);
            let mut search = StepSearch::new(last, &ends);
            for sessions in 30..4000 {
                let posterior = search.posterior();
                if let Some(found) = search.found(&posterior, 0.95) {
                    return (found, sessions);
                }
                match search.next(&posterior, |_| COST) {
                    Some(next) if is_excluded(next) => search.exclude(next),
                    Some(next) => search.add(next, &[self.session(next)]),
                    None => return (search.narrowed(&posterior, 0.95).unwrap_or_default(), sessions),
                }
            }
            (Vec::new(), 4000)
        }
    }

    fn positions(found: &[Culprits]) -> Vec<RangeInclusive<usize>> {
        let mut positions: Vec<_> = found.iter().map(|culprits| culprits.positions.clone()).collect();
        positions.sort_by_key(|positions| *positions.start());
        positions
    }

    #[test]
    fn a_step_is_found_among_many_positions() {
        for seed in 0..8 {
            let step = 1 + (seed as usize * 97) % 500;
            let (found, sessions) = Truth::new(seed, &[(step, -0.05)], 0.02).search(500, |_| false);
            assert_eq!(positions(&found), [step..=step], "seed {seed}");
            assert!(sessions < 400, "seed {seed}: {sessions}");
        }
    }

    #[test]
    fn the_first_and_the_last_position_can_have_the_step() {
        for step in [1, 40] {
            assert_eq!(
                positions(&Truth::new(3, &[(step, 0.1)], 0.02).search(40, |_| false).0),
                [step..=step]
            );
        }
    }

    #[test]
    fn positions_that_cant_be_told_apart_are_named_together() {
        let (found, _) =
            Truth::new(5, &[(21, -0.06)], 0.01).search(60, |position| (20..23).contains(&position));
        assert_eq!(positions(&found), [20..=23]);
        // None but the ends can be measured.
        let mut search = StepSearch::new(60, &Truth::new(5, &[(21, -0.06)], 0.01).sessions(60, 8));
        (1..60).for_each(|position| search.exclude(position));
        let posterior = search.posterior();
        assert_eq!(positions(&search.narrowed(&posterior, 0.95).unwrap()), [1..=60]);
    }

    /// Two steps at positions of which none can be measured are one change.
    #[test]
    fn few_levels_are_enough() {
        for seed in 0..8 {
            let (found, sessions) = Truth::new(seed, &[(3, -0.2)], 0.1).search(4, |position| position == 2);
            assert_eq!(positions(&found), [2..=3], "seed {seed}");
            assert!(sessions < 120, "seed {seed}: {sessions}");
        }
    }

    #[test]
    fn two_steps_are_both_found() {
        for seed in 0..4 {
            let (found, _) = Truth::new(seed, &[(30, -0.06), (160, -0.05)], 0.015).search(200, |_| false);
            assert_eq!(positions(&found), [30..=30, 160..=160], "seed {seed}");
        }
    }

    /// Sessions of counted instructions hardly spread.
    #[test]
    fn values_without_noise_are_found_in_few_sessions() {
        for (seed, step) in [(9, 1), (10, 4), (11, 7)] {
            let mut truth = Truth::new(seed, &[(step, 0.02)], 0.0005);
            let mut search = StepSearch::new(7, &truth.sessions(7, 3));
            let mut sessions = 0;
            let found = loop {
                let posterior = search.posterior();
                if let Some(found) = search.found(&posterior, 0.95) {
                    break found;
                }
                let next = search.next(&posterior, |_| COST).unwrap();
                search.add(next, &[truth.session(next)]);
                sessions += 1;
                assert!(sessions < 20, "not found in 20 sessions: {:?}", search.posterior().steps);
            };
            assert_eq!(positions(&found), [step..=step]);
        }
    }

    #[test]
    fn the_posterior_counts_the_steps_and_has_their_size() {
        let mut truth = Truth::new(2, &[(5, -0.08)], 0.02);
        let mut search = StepSearch::new(9, &truth.sessions(9, 20));
        let prior = search.posterior();
        assert!((prior.steps.iter().sum::<f64>() - 1.0 - prior.two_steps).abs() < 1e-9);
        assert!(prior.steps.iter().all(|share| (share - prior.steps[0]).abs() < 1e-9), "{:?}", prior.steps);
        for position in [4, 5] {
            search.add(position, &truth.sessions(position, 20));
        }
        let posterior = search.posterior();
        let [size] = posterior.sizes.as_slice() else { panic!("{posterior:?}") };
        assert!(size.interval.low < (-0.08_f64).exp() && size.interval.high > (-0.08_f64).exp(), "{size:?}");
        assert!(posterior.steps[4] > 0.99, "{:?}", posterior.steps);
    }

    /// A session that is far off costs sessions, but does not decide.
    #[test]
    fn one_outlier_does_not_decide() {
        let mut truth = Truth::new(4, &[(40, -0.05)], 0.01);
        let mut search = StepSearch::new(64, &truth.sessions(64, 8));
        search.add(20, &[-0.05]);
        let posterior = search.posterior();
        assert!(search.found(&posterior, 0.95).is_none());
        let after: f64 = posterior.steps[20..].iter().sum();
        assert!(after > 0.005, "{after}");
    }

    #[test]
    fn a_ready_position_is_measured_before_one_that_takes_long_to_build() {
        let mut truth = Truth::new(1, &[(500, -0.05)], 0.06);
        let search = StepSearch::new(1000, &truth.sessions(1000, 30));
        let posterior = search.posterior();
        let expensive = ProbeCost { preparation_s: 600.0, session_s: 2.0 };
        let ready = ProbeCost { preparation_s: 0.0, session_s: 2.0 };
        let is_ready = |position: usize| (360..450).contains(&position);
        let next = search.next(&posterior, |position| if is_ready(position) { ready } else { expensive });
        assert!(next.is_some_and(is_ready), "{next:?}");
        let next = search.next(&posterior, |_| expensive);
        assert!(next.is_some_and(|next| next.abs_diff(500) < 60), "{next:?}");
    }
}
