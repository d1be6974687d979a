//! The next position to measure: the one with the most expected information per second.

use std::cmp::Ordering;

use super::posterior::{Moments, Places, StepPosterior};
use super::{ProbeCost, StepSearch, entropy};

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

/// What is not known, in nats, when the places are known with 95 %.
const KNOWN: f64 = 0.25;

/// How much more time it takes than at the present information per second, as sessions tell less and less: the median of simulated
/// searches, most of which take from half to four times as long.
const SLOWER: f64 = 1.3;

impl StepSearch {
    /// The position whose next session has the most expected information per second; none if no session would tell more. A position
    /// of infinite cost is not chosen.
    pub fn next(&self, posterior: &StepPosterior, cost: impl Fn(usize) -> ProbeCost) -> Option<usize> {
        let (position, rate) = self.best(posterior, cost)?;
        (rate > 0.0 && self.information(posterior, position, 1.0) > LEAST).then_some(position)
    }

    /// Rough time until the places are known, in seconds: what is not known yet, at the information per second of the next session.
    pub fn expected_s(&self, posterior: &StepPosterior, cost: impl Fn(usize) -> ProbeCost) -> Option<f64> {
        let (_, rate) = self.best(posterior, cost)?;
        (rate > 0.0).then(|| SLOWER * (posterior.uncertainty() - KNOWN).max(0.0) / rate)
    }

    /// The position with the most expected information per second, and that.
    fn best(&self, posterior: &StepPosterior, cost: impl Fn(usize) -> ProbeCost) -> Option<(usize, f64)> {
        let rate = |position: usize| {
            let ProbeCost { preparation_s, session_s } = cost(position);
            let numbers = if preparation_s > 0.0 { &SESSIONS[..] } else { &SESSIONS[..1] };
            let rate = |sessions: &f64| {
                self.information(posterior, position, *sessions) / (preparation_s + sessions * session_s)
            };
            numbers.iter().map(rate).fold(0.0, f64::max)
        };
        let best = self.candidates(posterior).into_iter().map(|position| (position, rate(position)));
        best.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Positions worth a measurement: those around the posterior's quantiles, the most probable ones and those measured already.
    fn candidates(&self, posterior: &StepPosterior) -> Vec<usize> {
        let mut found: Vec<usize> = self.likelihoods.keys().copied().collect();
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
        found.retain(|position| *position > 0);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Expected information of further sessions at a position about its level, in nats: the mutual information of the level
    /// (before, between or after the steps, of which there are one or two) and the mean of the sessions.
    fn information(&self, posterior: &StepPosterior, position: usize, sessions: f64) -> f64 {
        let session_variance = posterior.session_sd.powi(2);
        let build_variance = posterior.build_sd.powi(2);
        // Earlier sessions there show the luck of its build for each of its possible levels: their share of the next ones is known.
        let earlier = self.sessions(position) as f64;
        let known = earlier * build_variance / (earlier * build_variance + session_variance);
        let variance = (1.0 - known) * build_variance + session_variance / sessions;
        let share = 1.0 - known;
        let levels = posterior.places.levels_at(position);
        // Where the level itself is not known, so is the value.
        let values =
            levels.map(|(_, (mean, of_level))| (share * mean, (variance + share * share * of_level).sqrt()));
        mutual_information(levels.map(|(weight, _)| weight), values)
    }
}

impl StepPosterior {
    /// Entropy of the places, in nats.
    fn uncertainty(&self) -> f64 {
        let of = |shares: &[f64]| entropy(shares.iter().copied());
        // Of two steps, as if both were at independent places; the share of two is in both.
        of(&self.one) + of(&self.first) + of(&self.last) - of(&[self.two_steps])
    }
}

impl Places {
    /// The possible levels of a position: before all steps, after the only one, between two and after both, each with its probability,
    /// mean and variance.
    fn levels_at(&self, position: usize) -> [(f64, Moments); 4] {
        let mut levels = [Mixture::default(); 4];
        // Gaps before this one end at or before the position; of this one, a share is at or before it.
        let own = self.bounds.partition_point(|bound| *bound <= position) - 1;
        let share = match (self.bounds[own], self.bounds.get(own + 1)) {
            (start, Some(end)) => (position - start) as f64 / (end - start) as f64,
            _ => 0.0,
        };
        let passed = |gap: usize| match gap.cmp(&own) {
            Ordering::Less => 1.0,
            Ordering::Equal => share,
            Ordering::Greater => 0.0,
        };
        for (gap, (weight, [before, after])) in self.one.iter().enumerate() {
            levels[0].add(weight * (1.0 - passed(gap)), *before);
            levels[1].add(weight * passed(gap), *after);
        }
        for (gap, of_gap) in self.two.iter().enumerate() {
            for (later, (weight, [before, between, after])) in (gap + 1..).zip(of_gap) {
                levels[0].add(weight * (1.0 - passed(gap)), *before);
                levels[2].add(weight * (passed(gap) - passed(later)), *between);
                levels[3].add(weight * passed(later), *after);
            }
        }
        levels.map(|mixture| (mixture.weight, mixture.moments()))
    }
}

/// A mixture of levels.
#[derive(Clone, Copy, Debug, Default)]
struct Mixture {
    weight: f64,
    sum: f64,
    squares: f64,
}

impl Mixture {
    fn add(&mut self, weight: f64, (mean, variance): Moments) {
        self.weight += weight;
        self.sum += weight * mean;
        self.squares += weight * (variance + mean * mean);
    }

    fn moments(&self) -> Moments {
        if self.weight <= 0.0 {
            return (0.0, 0.0);
        }
        let mean = self.sum / self.weight;
        (mean, (self.squares / self.weight - mean * mean).max(0.0))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Three levels of ten positions each.
    fn search() -> StepSearch {
        let level = |position: usize| -0.05 * (position / 10) as f64;
        let sessions = |position: usize| [-0.01, 0.0, 0.01].map(|luck| level(position) + luck).repeat(6);
        let mut search = StepSearch::new(29, &sessions(29));
        for position in [5, 13, 16, 25] {
            search.add(position, &sessions(position));
        }
        search
    }

    #[test]
    fn the_levels_of_a_position_have_all_of_the_probability_and_their_own_means() {
        let posterior = search().posterior();
        assert!(posterior.two_steps > 0.9, "{}", posterior.two_steps);
        for position in 1..=29 {
            let levels = posterior.places.levels_at(position);
            let sum: f64 = levels.iter().map(|(weight, _)| weight).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{position}: {levels:?}");
            let passed: f64 = posterior.steps[..position].iter().sum();
            let of_levels = levels[1].0 + levels[2].0 + 2.0 * levels[3].0;
            // Two steps in the same gap count as one there.
            assert!((passed - of_levels).abs() < 0.02, "{position}: {passed} {of_levels}");
        }
        let (weight, (mean, _)) = posterior.places.levels_at(15)[2];
        assert!(weight > 0.9 && (mean + 0.05).abs() < 0.01, "{weight} {mean}");
    }

    #[test]
    fn what_is_known_tells_nothing_more() {
        let search = search();
        let posterior = search.posterior();
        let of = |position: usize| search.information(&posterior, position, 1.0);
        let best = search.next(&posterior, |_| ProbeCost { preparation_s: 0.0, session_s: 1.0 }).unwrap();
        assert!((6..13).contains(&best) || (17..25).contains(&best), "{best}");
        let left =
            search.expected_s(&posterior, |_| ProbeCost { preparation_s: 0.0, session_s: 1.0 }).unwrap();
        assert!((1.0..200.0).contains(&left), "{left}");
        assert!(of(best) > 10.0 * of(5) && of(best) > 10.0 * of(29), "{} {} {}", of(best), of(5), of(29));
    }
}
