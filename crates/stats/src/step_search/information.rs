//! The next position to measure: the one with the most expected information per second.

use super::posterior::StepPosterior;
use super::{ProbeCost, StepSearch};

/// Numbers of sessions for which a position that must be prepared is considered.
const SESSIONS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];

/// Shares of the posterior at which positions are considered.
const QUANTILES: [f64; 11] = [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98];

/// The most probable positions that are considered together with their neighbours.
const MOST_PROBABLE: usize = 4;

/// Points of the integral over a value's distribution, for each level.
const POINTS: usize = 24;

/// The least information of a session worth its time, in nats.
const LEAST: f64 = 1e-4;

impl StepSearch {
    /// The position whose next session has the most expected information per second; none if no session would tell more.
    pub fn next(&self, posterior: &StepPosterior, cost: impl Fn(usize) -> ProbeCost) -> Option<usize> {
        let rate = |position: usize| {
            let ProbeCost { preparation_s, session_s } = cost(position);
            let numbers = if preparation_s > 0.0 { &SESSIONS[..] } else { &SESSIONS[..1] };
            let rate = |sessions: &f64| {
                self.information(posterior, position, *sessions) / (preparation_s + sessions * session_s)
            };
            numbers.iter().map(rate).fold(0.0, f64::max)
        };
        let best = self.candidates(posterior).into_iter().map(|position| (position, rate(position)));
        let (position, _) = best.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (self.information(posterior, position, 1.0) > LEAST).then_some(position)
    }

    /// Positions worth a measurement: those around the posterior's quantiles, the most probable ones and those measured already.
    fn candidates(&self, posterior: &StepPosterior) -> Vec<usize> {
        let mut found: Vec<usize> =
            self.likelihoods.keys().copied().filter(|position| *position > 0).collect();
        let StepPosterior { one, first, last, .. } = posterior;
        for of_two in [first, last] {
            let mut cumulated = 0.0;
            let mut quantiles = QUANTILES.iter().peekable();
            for ((share, of_two), position) in one.iter().zip(of_two).zip(1..) {
                cumulated += share + of_two;
                while quantiles.next_if(|quantile| cumulated >= **quantile).is_some() {
                    found.extend([position - 1, position]);
                }
            }
        }
        for culprits in self.culprits(posterior).into_iter().take(MOST_PROBABLE) {
            found.extend([culprits.positions.start() - 1, *culprits.positions.end()]);
        }
        // The nearest ones to both sides of those that can't be measured.
        let nearest = |position: usize| {
            let below = (0..=position).rev().find(|other| self.is_testable(*other));
            [below, (position..=self.last).find(|other| self.is_testable(*other))].into_iter().flatten()
        };
        let mut found: Vec<usize> = found.into_iter().flat_map(nearest).collect();
        found.retain(|position| *position > 0 || !self.is_paired);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Expected information of further sessions at a position about its level, in nats: the mutual information of the level
    /// (before, between or after the steps, of which there are one or two) and the mean of the sessions.
    fn information(&self, posterior: &StepPosterior, position: usize, sessions: f64) -> f64 {
        let StepPosterior { one, first, last, levels, .. } = posterior;
        let at_or_before = |steps: &[f64]| steps[..position].iter().sum::<f64>();
        let before = one[position..].iter().chain(&first[position..]).sum::<f64>();
        let (after_one, after_two) = (at_or_before(one), at_or_before(last));
        let weights = [before, after_one, (1.0 - before - after_one - after_two).max(0.0), after_two];
        let session_variance = posterior.session_sd.powi(2);
        let build_variance = posterior.build_sd.powi(2);
        // Earlier sessions there show the luck of its build for each of its possible levels: their share of the next ones is known.
        let earlier = self.sessions(position) as f64;
        let known = earlier * build_variance / (earlier * build_variance + session_variance);
        let variance = (1.0 - known) * build_variance + session_variance / sessions;
        let levels = [levels.before, levels.after_one, levels.between, levels.after_two];
        let share = 1.0 - known;
        // Where the level itself is not known, so is the value.
        let values =
            levels.map(|(mean, of_level)| (share * mean, (variance + share * share * of_level).sqrt()));
        mutual_information(weights, values)
    }
}

/// Mutual information, in nats, of a choice with these weights and a value that is normal, with a mean and a standard deviation for
/// each choice.
fn mutual_information<const N: usize>(weights: [f64; N], values: [(f64, f64); N]) -> f64 {
    let density = |x: f64, (mean, sd): (f64, f64)| (-0.5 * ((x - mean) / sd).powi(2)).exp() / sd;
    let mut information = 0.0;
    for (weight, value) in weights.iter().zip(values).filter(|(weight, _)| **weight > 0.0) {
        let (mut sum, mut all) = (0.0, 0.0);
        for point in 0..POINTS {
            let x = value.0 + value.1 * (8.0 * (point as f64 + 0.5) / POINTS as f64 - 4.0);
            let own = density(x, value);
            let mixture: f64 =
                weights.iter().zip(values).map(|(weight, value)| weight * density(x, value)).sum();
            sum += own * (own / mixture).ln();
            all += own;
        }
        information += weight * sum / all;
    }
    information
}
