//! The posterior over the place of one step or two.

use std::ops::RangeInclusive;

use super::likelihood::{Curve, Levels, normalized};
use super::{Culprits, MAX_STEPS, StepSearch, culprits};
use crate::logs::Interval;

/// Prior probability of two steps.
const TWO_STEPS: f64 = 0.1;

/// Both of two steps are at least this share of the whole difference: with less, they are one.
const LEAST_STEP: f64 = 0.25;

/// Standard deviation of the level between two steps around the middle of the ends, in relation to their difference: steps in
/// opposite directions are less likely.
const MIDDLE_SD: f64 = 1.0;

/// The most positions that are named together, less one, because no session tells them apart.
const MOST_NEIGHBOURS: usize = 9;

/// Evidence that is lower by so much, as a logarithm, is left out.
const NEGLIGIBLE: f64 = 12.0;

/// Standard normal quantile of an interval of 95 %.
const Z95: f64 = 1.96;

/// The posterior over the place of the steps.
#[derive(Clone, Debug)]
pub struct StepPosterior {
    /// Probability of a step at each position, from the first after the baseline on. They add up to the expected number of steps.
    pub steps: Vec<f64>,
    /// Probability that there are two.
    pub two_steps: f64,
    /// Probability that there is one step, at a position.
    pub(super) one: Vec<f64>,
    /// Probability that there are two, the first at a position.
    pub(super) first: Vec<f64>,
    /// Probability that there are two, the last at a position.
    pub(super) last: Vec<f64>,
    /// What these probabilities are of.
    pub(super) places: Places,
    /// Mean standard deviations of sessions and builds.
    pub(super) session_sd: f64,
    pub(super) build_sd: f64,
    /// Sizes of the steps of the more probable number of steps.
    pub sizes: Vec<StepSize>,
}

/// Mean and variance of a level.
pub(super) type Moments = (f64, f64);

/// All places of one step and of two, by the gaps between measured positions: those in a gap are equally likely.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Gap i has the positions above the i-th of these, up to the next one.
    pub(super) bounds: Vec<usize>,
    /// Probability of two steps in the same gap, by this.
    pub(super) both: Vec<f64>,
    /// Of one step, or of two in the same gap, by this: the probability, and the levels before and after it.
    pub(super) one: Vec<(f64, [Moments; 2])>,
    /// Of two, by the gap of the first and then that of the last, from the next one on: the probability, and the levels before, between
    /// and after them.
    pub(super) two: Vec<Vec<(f64, [Moments; 3])>>,
}

/// Size of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepSize {
    /// Ratio of the levels after and before it.
    pub ratio: f64,
    /// Its interval of 95 %, given the place.
    pub interval: Interval,
}

/// Products of likelihoods and a prior, in relation to a scale.
struct Product {
    log_scale: f64,
    values: Vec<f64>,
}

impl Product {
    fn new(values: Vec<f64>) -> Self {
        Self { log_scale: 0.0, values }
    }

    fn times(&self, curve: &Curve) -> Self {
        let mut values: Vec<f64> =
            self.values.iter().zip(&curve.values).map(|(one, other)| one * other).collect();
        let max = values.iter().copied().fold(0.0, f64::max);
        if max <= 0.0 {
            return Self { log_scale: f64::NEG_INFINITY, values };
        }
        values.iter_mut().for_each(|value| *value /= max);
        Self { log_scale: self.log_scale + curve.log_scale + max.ln(), values }
    }

    /// Logarithm of the integral.
    fn log_sum(&self) -> f64 {
        self.log_scale + self.values.iter().sum::<f64>().ln()
    }

    /// Mean and variance of the level.
    fn moments(&self, levels: &Levels) -> (f64, f64) {
        let weights = normalized(self.values.clone());
        let mean: f64 = weights.iter().zip(levels.values()).map(|(weight, level)| weight * level).sum();
        let square = |(weight, level): (&f64, f64)| weight * (level - mean).powi(2);
        (mean, weights.iter().zip(levels.values()).map(square).sum())
    }
}

/// The evidence for all places of steps under one noise. Gap i is between the measured positions i and i + 1, of which 0 is the
/// baseline; steps in the same gap have the same evidence.
struct Evidence {
    /// Logarithms for one step in gap i, without the prior of its place.
    one: Vec<f64>,
    /// For steps in the gaps i < l; by i, then l − i − 1.
    two: Vec<Vec<f64>>,
    log_prior: f64,
    noise: (usize, usize),
}

impl StepSearch {
    /// The posterior.
    pub fn posterior(&self) -> StepPosterior {
        let evidence = self.all_evidence();
        let max = evidence.iter().map(Evidence::highest).fold(f64::NEG_INFINITY, f64::max);
        // The ends of gap i: positions above the first up to the second.
        let bounds: Vec<usize> = std::iter::once(0).chain(self.likelihoods.keys().copied()).collect();
        let width = |gap: usize| (bounds[gap + 1] - bounds[gap]) as f64;
        let gaps = bounds.len() - 1;
        let places = self.last as f64;
        let pairs = (places * (places - 1.0) / 2.0).max(1.0);
        let prior_two = if self.last > 1 { TWO_STEPS } else { 0.0 };
        let (mut one, mut two) = (vec![0.0; gaps], vec![vec![0.0; gaps]; gaps]);
        let mut weights: Vec<f64> = Vec::with_capacity(evidence.len());
        for of in &evidence {
            let mut sum = 0.0;
            let mut weigh = |log: f64, prior: f64| {
                let weight = prior * (log + of.log_prior - max).exp();
                sum += weight;
                weight
            };
            for gap in 0..gaps {
                one[gap] += weigh(of.one[gap], (1.0 - prior_two) * width(gap) / places);
                let within = width(gap) * (width(gap) - 1.0) / 2.0;
                two[gap][gap] += weigh(of.one[gap], prior_two * within / pairs);
                for (later, log) in (gap + 1..gaps).zip(&of.two[gap]) {
                    two[gap][later] += weigh(*log, prior_two * width(gap) * width(later) / pairs);
                }
            }
            weights.push(sum);
        }
        let weights = normalized(weights);
        let total = one.iter().sum::<f64>() + two.iter().flatten().sum::<f64>();
        one.iter_mut().chain(two.iter_mut().flatten()).for_each(|weight| *weight /= total);
        let two_steps = two.iter().flatten().sum();
        let [mut at_one, mut first, mut last, mut steps] = [const { Vec::new() }; 4];
        for gap in 0..gaps {
            let width = width(gap);
            let earlier: f64 = (0..gap).map(|other| two[other][gap]).sum();
            let later: f64 = (gap + 1..gaps).map(|other| two[gap][other]).sum();
            let same = two[gap][gap] / (width * (width - 1.0) / 2.0).max(1.0);
            for at in 0..width as usize {
                let before = at as f64;
                at_one.push(one[gap] / width);
                first.push(later / width + same * (width - 1.0 - before));
                last.push(earlier / width + same * before);
                steps.push((one[gap] + later + earlier) / width + same * (width - 1.0));
            }
        }
        let mean = |of: &dyn Fn(&Evidence) -> f64| {
            evidence.iter().zip(&weights).map(|(evidence, weight)| weight * of(evidence)).sum::<f64>()
        };
        let session_sd = mean(&|of| self.noises.sessions[of.noise.0]);
        let build_sd = mean(&|of| self.noises.builds[of.noise.1].0);
        let best = evidence.iter().zip(&weights).max_by(|a, b| a.1.total_cmp(b.1)).map(|(of, _)| of.noise);
        let places = self.places(best.unwrap_or_default(), bounds, &one, &two);
        let sizes = places.sizes(two_steps > 0.5);
        StepPosterior { steps, two_steps, one: at_one, first, last, places, session_sd, build_sd, sizes }
    }

    /// The evidence under each noise that matters: no noise has more than what its sessions would have if each position had a level
    /// of its own.
    fn all_evidence(&self) -> Vec<Evidence> {
        let bound = |(session, ..): &(usize, usize, f64)| {
            self.likelihoods.values().map(|likelihood| likelihood.curve(*session, 0).log_scale).sum::<f64>()
        };
        let mut noises: Vec<((usize, usize, f64), f64)> =
            self.noises.all().map(|noise| (noise, bound(&noise))).collect();
        noises.sort_by(|a, b| b.1.total_cmp(&a.1));
        let (mut all, mut highest) = (Vec::new(), f64::NEG_INFINITY);
        for (noise, bound) in noises {
            if bound < highest - NEGLIGIBLE {
                break;
            }
            let evidence = self.evidence(noise);
            highest = highest.max(evidence.highest());
            all.push(evidence);
        }
        all
    }

    /// What is known of the baseline's level without the measured positions after it: its own luck, with the other sign.
    fn baseline(&self, noise: (usize, usize)) -> Product {
        let build_sd = self.noises.builds[noise.1].0;
        Product::new(self.levels.normal(0.0, build_sd))
    }

    fn middle(&self) -> Product {
        let end = self.levels.end;
        let normal = self.levels.normal(end / 2.0, MIDDLE_SD * end.abs());
        let least = LEAST_STEP * end.abs();
        let is_apart = |level: f64| level.abs() >= least && (level - end).abs() >= least;
        let weights = normal.iter().zip(self.levels.values());
        Product::new(normalized(
            weights.map(|(weight, level)| if is_apart(level) { *weight } else { 0.0 }).collect(),
        ))
    }

    fn measured(&self, noise: (usize, usize)) -> Vec<&Curve> {
        self.likelihoods.values().map(|likelihood| likelihood.curve(noise.0, noise.1)).collect()
    }

    /// The products of the baseline and the first i measured positions, and those of the positions after the first i.
    fn sides(&self, noise: (usize, usize)) -> (Vec<Product>, Vec<Product>) {
        let curves = self.measured(noise);
        let mut before = vec![self.baseline(noise)];
        for curve in &curves {
            before.push(before[before.len() - 1].times(curve));
        }
        let mut after = vec![Product::new(self.levels.flat())];
        for curve in curves.iter().rev() {
            after.push(after[after.len() - 1].times(curve));
        }
        after.reverse();
        (before, after)
    }

    fn evidence(&self, (session, build, prior): (usize, usize, f64)) -> Evidence {
        let noise = (session, build);
        let curves = self.measured(noise);
        let (before, after) = self.sides(noise);
        let before: Vec<f64> = before.iter().map(Product::log_sum).collect();
        let after: Vec<f64> = after.iter().map(Product::log_sum).collect();
        let one = (0..curves.len()).map(|gap| before[gap] + after[gap]).collect();
        let middle = self.middle();
        let from = |gap: usize| {
            let mut product = Product { log_scale: 0.0, values: middle.values.clone() };
            let later = curves[gap..curves.len().saturating_sub(1).max(gap)].iter().zip(gap + 1..);
            later
                .map(|(curve, later)| {
                    product = product.times(curve);
                    before[gap] + product.log_sum() + after[later]
                })
                .collect()
        };
        let two = (0..curves.len()).map(from).collect();
        Evidence { one, two, log_prior: prior.ln(), noise }
    }

    /// All places with their levels under a noise.
    fn places(&self, noise: (usize, usize), bounds: Vec<usize>, one: &[f64], two: &[Vec<f64>]) -> Places {
        let (before, after) = self.sides(noise);
        let moments = |product: &Product| product.moments(&self.levels);
        let before: Vec<Moments> = before.iter().map(moments).collect();
        let after: Vec<Moments> = after.iter().map(moments).collect();
        // Two steps in a gap have the levels of one.
        let of_one = one.iter().enumerate();
        let of_one = of_one.map(|(gap, share)| (share + two[gap][gap], [before[gap], after[gap]]));
        let curves = self.measured(noise);
        let of_two = |gap: usize| {
            let mut between = self.middle();
            let later = (gap + 1..two.len()).map(|later| {
                between = between.times(curves[later - 1]);
                (two[gap][later], [before[gap], moments(&between), after[later]])
            });
            later.collect()
        };
        let both = (0..two.len()).map(|gap| two[gap][gap]).collect();
        Places { bounds, both, one: of_one.collect(), two: (0..two.len()).map(of_two).collect() }
    }

    /// The positions of the steps, if it is known with this probability how many there are and where all of them are; those that
    /// can't be told apart are together.
    pub fn found(&self, posterior: &StepPosterior, confidence: f64) -> Option<Vec<Culprits>> {
        let steps = posterior.count();
        let found: Vec<Culprits> = self.culprits(posterior).into_iter().take(steps).collect();
        (found.len() == steps && posterior.probability_of(&found) >= confidence).then_some(found)
    }

    /// The positions of the steps, if no further session would tell more: each with the neighbours that it takes for all of them to be
    /// known with this probability.
    pub fn narrowed(&self, posterior: &StepPosterior, confidence: f64) -> Option<Vec<Culprits>> {
        let steps = posterior.count();
        let wanted = 1.0 - (1.0 - confidence) / steps as f64;
        let most_probable = self.culprits(posterior).into_iter().take(steps);
        let widened = most_probable.map(|culprits| {
            let (mut first, mut last, mut probability) =
                (*culprits.positions.start(), *culprits.positions.end(), culprits.probability);
            let at =
                |position: usize| posterior.steps.get(position.wrapping_sub(1)).copied().unwrap_or_default();
            while probability < wanted && last - first < MOST_NEIGHBOURS {
                let (before, after) = (at(first - 1), at(last + 1));
                probability += before.max(after);
                if before > after { first -= 1 } else { last += 1 }
            }
            (probability >= wanted).then_some(Culprits { positions: first..=last, probability })
        });
        let found: Vec<Culprits> = widened.collect::<Option<_>>()?;
        let is_apart = |pair: &[Culprits]| {
            pair[0].positions.end() < pair[1].positions.start()
                || pair[1].positions.end() < pair[0].positions.start()
        };
        found.windows(2).all(is_apart).then_some(found)
    }

    /// All positions by the probability of a step, the most probable first; those that can't be told apart are together.
    pub fn culprits(&self, posterior: &StepPosterior) -> Vec<Culprits> {
        culprits(&posterior.steps, |position| self.is_testable(position))
    }
}

impl Places {
    /// Probability that both of two steps are at these positions, which are in the same gap.
    fn both_at(&self, positions: &RangeInclusive<usize>) -> f64 {
        let pairs = |count: usize| (count * count.saturating_sub(1) / 2) as f64;
        let gap = self.bounds.partition_point(|bound| bound < positions.start()).saturating_sub(1);
        match (self.bounds.get(gap..gap + 2), self.both.get(gap)) {
            (Some([start, end]), Some(both)) if end - start > 1 => {
                both * pairs(positions.end() + 1 - positions.start()) / pairs(end - start)
            }
            _ => 0.0,
        }
    }

    /// Sizes of the steps at the most probable places, in their order.
    fn sizes(&self, are_two: bool) -> Vec<StepSize> {
        let size = |(from, from_variance): Moments, (to, to_variance): Moments| {
            let half = Z95 * (from_variance + to_variance).sqrt();
            let difference = to - from;
            let interval = Interval { low: (difference - half).exp(), high: (difference + half).exp() };
            StepSize { ratio: difference.exp(), interval }
        };
        let two = self.two.iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0)).filter(|_| are_two);
        let one = self.one.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        match (two, one) {
            (Some((_, [before, between, after])), _) => vec![size(*before, *between), size(*between, *after)],
            (None, Some((_, [before, after]))) => vec![size(*before, *after)],
            (None, None) => Vec::new(),
        }
    }
}

impl StepPosterior {
    /// The more probable number of steps.
    pub fn count(&self) -> usize {
        if self.two_steps > 0.5 { MAX_STEPS } else { 1 }
    }

    /// Probability that there are as many steps as this, and each is at these positions; of two steps, at least this. Two that can't
    /// be told apart count as one.
    fn probability_of(&self, found: &[Culprits]) -> f64 {
        let at = |steps: &[f64], culprits: &Culprits| {
            steps[culprits.positions.start() - 1..*culprits.positions.end()].iter().sum::<f64>()
        };
        match found {
            [only] => at(&self.one, only) + self.places.both_at(&only.positions),
            [one, other] => {
                let (first, last) =
                    if one.positions.start() < other.positions.start() { (one, other) } else { (other, one) };
                at(&self.first, first) + at(&self.last, last) - self.two_steps
            }
            _ => 0.0,
        }
    }
}

impl Evidence {
    /// Logarithm of the evidence for the most probable place.
    fn highest(&self) -> f64 {
        let all = self.one.iter().chain(self.two.iter().flatten());
        self.log_prior + all.copied().fold(f64::NEG_INFINITY, f64::max)
    }
}
