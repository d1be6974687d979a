//! Runs and histories with known truth.

use rand::{RngExt, SeedableRng};
use rand_distr::{Exp1, StandardNormal, StudentT};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Baseline throughput.
const BASELINE: f64 = 1000.0;

/// Standard deviations of the log ratios of pairs.
#[derive(Clone, Copy)]
pub(crate) struct PairNoise {
    /// Between sessions.
    pub(crate) session: f64,
    /// Between pairs of a session.
    pub(crate) pair: f64,
    /// Distribution of both.
    pub(crate) tails: Tails,
    /// Loss of the machine's speed during a session, as a logarithm.
    pub(crate) drift: f64,
}

/// A distribution of deviations.
#[derive(Clone, Copy)]
pub(crate) enum Tails {
    Normal,
    /// Student's t with 3 degrees of freedom.
    Heavy(StudentT<f64>),
}

pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn normal(&mut self) -> f64 {
        self.0.sample(StandardNormal)
    }

    /// A throughput of `ratio` times the baseline, with noise.
    pub(crate) fn run(&mut self, ratio: f64, noise: f64) -> f64 {
        BASELINE * ratio * (noise * self.normal()).exp()
    }

    pub(crate) fn runs(&mut self, n: usize, ratio: f64, noise: f64) -> Vec<f64> {
        (0..n).map(|_| self.run(ratio, noise)).collect()
    }

    /// Runs of two cells in blocks, which spread and affect both alike.
    pub(crate) fn blocks(&mut self, n: usize, ratio: f64, noise: f64, block: f64) -> Vec<(f64, f64)> {
        (0..n)
            .map(|_| {
                let common = (block * self.normal()).exp();
                (self.run(common, noise), self.run(common * ratio, noise))
            })
            .collect()
    }

    /// Runs of two cells in blocks of random order, on a machine that loses `slope` of its speed until the last of them and
    /// whose noise is correlated from one run to the next.
    pub(crate) fn machine(&mut self, n: usize, correlation: f64, slope: f64, noise: f64) -> Vec<(f64, f64)> {
        let mut deviation = self.normal();
        let mut run = |random: &mut Self, at: usize| {
            let new = (1.0 - correlation * correlation).sqrt() * random.normal();
            deviation = correlation * deviation + new;
            random.run((noise * deviation - slope * at as f64 / (2 * n) as f64).exp(), 0.0)
        };
        (0..n)
            .map(|block| {
                let (first, second) = (run(self, 2 * block), run(self, 2 * block + 1));
                if self.0.random_bool(0.5) { (first, second) } else { (second, first) }
            })
            .collect()
    }

    /// A deviation with variance 1.
    fn deviation(&mut self, tails: Tails) -> f64 {
        match tails {
            Tails::Normal => self.normal(),
            Tails::Heavy(student) => self.0.sample(student) / 3.0_f64.sqrt(),
        }
    }

    /// A session of pairs of slices, of which the second side has `ratio` times the throughput of the first.
    pub(crate) fn session(&mut self, pairs: usize, ratio: f64, noise: PairNoise) -> Vec<(f64, f64)> {
        let of_session = (noise.session * self.deviation(noise.tails)).exp();
        (0..pairs)
            .map(|at| {
                // A machine that gets slower slows both, and the later slice of a pair a little more.
                let level = (-noise.drift * at as f64 / pairs as f64).exp();
                let later = level * (-noise.drift / (2 * pairs) as f64).exp();
                let (first, second) = if self.0.random_bool(0.5) { (level, later) } else { (later, level) };
                let of_pair = (noise.pair * self.deviation(noise.tails)).exp();
                (BASELINE * first, BASELINE * second * ratio * of_session * of_pair)
            })
            .collect()
    }

    /// A throughput that is occasionally far too low.
    pub(crate) fn skewed_run(&mut self, noise: f64) -> f64 {
        let below: f64 = self.0.sample(Exp1);
        BASELINE * (-noise * below).exp()
    }

    /// Runs that are each in one of two modes.
    pub(crate) fn bimodal_runs(&mut self, n: usize, ratio: f64, noise: f64) -> Vec<f64> {
        (0..n)
            .map(|_| {
                let mode = if self.0.random_bool(0.5) { ratio } else { 1.0 };
                self.run(mode, noise)
            })
            .collect()
    }
}
