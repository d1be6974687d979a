//! A history of commits with planted steps, and what measuring them gives.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::conditions::Condition;

/// Number of commits after the good one.
pub(crate) const COMMITS: usize = 1000;
/// Time of a session.
pub(crate) const SESSION_S: f64 = 2.5;
/// Time of a build and of filling its data set.
pub(crate) const BUILD_S: f64 = 60.0;
/// An outlier, in standard deviations.
const OUTLIER: f64 = 5.0;

/// A history. Position 0 is the good commit, [`COMMITS`] the bad one.
pub(crate) struct History {
    random: Xoshiro256PlusPlus,
    /// The first commits with a new level.
    pub(crate) steps: Vec<usize>,
    /// Logarithms of throughput by position, with the luck of builds.
    levels: Vec<f64>,
    unbuildable: Vec<bool>,
    session_sd: f64,
    outliers: f64,
    drift_per_hour: f64,
    built: BTreeSet<usize>,
    /// What is built while sessions run, and when it is.
    building: Option<(usize, f64)>,
    /// Number of sessions.
    pub(crate) sessions: usize,
    /// Time so far.
    pub(crate) seconds: f64,
}

impl History {
    pub(crate) fn draw(condition: &Condition, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut steps: Vec<usize> = Vec::new();
        while steps.len() < condition.steps.len() {
            let step = random.random_range(1..=COMMITS);
            // Steps closer to each other are one to whoever measures some dozen commits.
            if steps.iter().all(|other| step.abs_diff(*other) > COMMITS / 50) {
                steps.push(step);
            }
        }
        steps.sort_unstable();
        let levels = (0..=COMMITS).map(|position| {
            let steps = steps.iter().zip(condition.steps).filter(|(step, _)| **step <= position);
            let luck: f64 = random.sample(StandardNormal);
            steps.map(|(_, change)| (1.0 + change).ln()).sum::<f64>() + condition.build_sd * luck
        });
        let levels = levels.collect();
        let ends = [0, COMMITS];
        let unbuildable = (0..=COMMITS)
            .map(|position| !ends.contains(&position) && random.random_bool(condition.unbuildable))
            .collect();
        Self {
            random,
            steps,
            levels,
            unbuildable,
            session_sd: condition.session_sd,
            outliers: condition.outliers,
            drift_per_hour: condition.drift_per_hour,
            built: BTreeSet::new(),
            building: None,
            sessions: 0,
            seconds: 0.0,
        }
    }

    /// Builds a commit, unless it is built: whether it can be.
    pub(crate) fn build(&mut self, position: usize) -> bool {
        if self.built.insert(position) {
            self.seconds += BUILD_S;
        }
        !self.unbuildable[position]
    }

    /// Begins to build a commit while sessions run, unless one is being built.
    pub(crate) fn begin_build(&mut self, position: usize) {
        self.building = self.building.or(Some((position, self.seconds + BUILD_S)));
    }

    /// Returns the commit whose build has ended; if `waits`, waits until it has.
    pub(crate) fn ended_build(&mut self, waits: bool) -> Option<usize> {
        let (position, at) = self.building.take_if(|(_, at)| waits || *at <= self.seconds)?;
        self.seconds = self.seconds.max(at);
        self.built.insert(position);
        Some(position)
    }

    /// Whether a commit is built.
    pub(crate) fn is_built(&self, position: usize) -> bool {
        self.built.contains(&position)
    }

    /// Number of commits that were built.
    pub(crate) fn probes(&self) -> usize {
        self.built.len()
    }

    fn noise(&mut self) -> f64 {
        let luck: f64 = self.random.sample(StandardNormal);
        let scale = if self.random.random_bool(self.outliers) { OUTLIER } else { 1.0 };
        self.session_sd * scale * luck
    }

    fn end_session(&mut self) {
        self.sessions += 1;
        self.seconds += SESSION_S;
    }

    /// A session of a commit and the good one: the log ratio.
    pub(crate) fn pair(&mut self, position: usize) -> f64 {
        self.end_session();
        self.levels[position] - self.levels[0] + self.noise()
    }

    /// A run of a commit alone: the logarithm of its throughput.
    pub(crate) fn run(&mut self, position: usize) -> f64 {
        self.end_session();
        let drift = (1.0 - self.drift_per_hour * self.seconds / 3600.0).max(0.1).ln();
        // A pair's noise is that of two servers.
        self.levels[position] + drift + self.noise() / std::f64::consts::SQRT_2
    }
}
