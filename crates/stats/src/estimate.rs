//! Comparison of two cells: the ratio of their figures, and its confidence.

use crate::logs::is_probability;
use crate::moments::Moments;
use crate::{Interval, Logs, sequential, student};

/// The ratio of two cells with its confidence, from the logarithms of their runs: by Welch's test of two samples
/// ([`Estimate::welch`]) or by the differences within pairs ([`Estimate::of_pairs`]).
///
/// If there is no spread to estimate noise from, the figures are the limits as it goes to zero: the interval is the ratio
/// itself, and p is 1 for equal sides and 0 for others, if the number of runs was fixed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The geometric mean of the second sample over that of the first, or of the ratios within pairs.
    pub ratio: f64,
    /// The standard error of the ratio's logarithm.
    pub standard_error: f64,
    /// The degrees of freedom of that error. Of two samples without any spread, the smallest possible number.
    pub degrees_of_freedom: f64,
    /// The two-sided p-value of the hypothesis that the ratio is 1.
    pub p: f64,
    /// Whether p and interval stay valid if the number of runs depends on the results.
    pub is_sequential: bool,
    /// Number of independent values, as in [`sequential::p`].
    size: f64,
    /// Number of estimates among which this one was chosen.
    candidates: f64,
}

impl Estimate {
    /// Compares `b` with `a`; `None` if either has fewer than 2 values. If all values of one side are equal, only the other
    /// side's spread counts.
    ///
    /// Sources: Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are
    /// Involved", Biometrika 34 (1947), with the degrees of freedom of Satterthwaite, "An Approximate Distribution of
    /// Estimates of Variance Components", Biometrics Bulletin 2 (1946). It assumes that the logarithms of each side are
    /// normal, not that both spread alike.
    pub fn welch(a: &Logs, b: &Logs) -> Option<Self> {
        let (n_a, n_b) = (a.n() as f64, b.n() as f64);
        let (of_a, of_b) = ((a.variance()? / n_a, n_a - 1.0), (b.variance()? / n_b, n_b - 1.0));
        let difference = b.mean() - a.mean();
        Some(Self::new(difference, [of_a, of_b], n_a * n_b / (n_a + n_b)))
    }

    /// Compares `b` with `a` as [`Estimate::welch`], if both spread alike; `None` for fewer than 3 values together. A side
    /// of few values then has the spread of the other's many.
    ///
    /// Source: Student, "The Probable Error of a Mean", Biometrika 6 (1908), in Fisher's form for two samples
    /// ("Applications of 'Student's' Distribution", Metron 5 (1925)).
    pub fn pooled(a: &Logs, b: &Logs) -> Option<Self> {
        let (n_a, n_b) = (a.n() as f64, b.n() as f64);
        let degrees_of_freedom = n_a + n_b - 2.0;
        let squares = |of: &Logs| of.variance().unwrap_or_default() * (of.n() as f64 - 1.0);
        let variance = (squares(a) + squares(b)) / degrees_of_freedom * (1.0 / n_a + 1.0 / n_b);
        let difference = b.mean() - a.mean();
        (degrees_of_freedom > 0.0)
            .then(|| Self::new(difference, [(variance, degrees_of_freedom)], n_a * n_b / (n_a + n_b)))
    }

    /// The ratio from the differences of logarithms within pairs of runs; `None` for fewer than 2.
    ///
    /// Source: Student, "The Probable Error of a Mean", Biometrika 6 (1908): what is common to both runs of a pair cancels
    /// out. It assumes that the differences are normal.
    pub fn of_pairs(differences: &[f64]) -> Option<Self> {
        let moments = Moments::new(differences);
        let n = moments.n as f64;
        Some(Self::new(moments.mean, [(moments.variance()? / n, n - 1.0)], n))
    }

    /// The estimate of [`Estimate::of_pairs`] that so many differences with the same mean and spread would give, where their
    /// number depends on the results.
    pub(crate) fn with_pairs(self, count: usize) -> Self {
        let n = count as f64;
        let standard_error = self.standard_error * (self.size / n).sqrt();
        Self { standard_error, degrees_of_freedom: n - 1.0, size: n, ..self }.sequential()
    }

    /// With the parts of the variance of the logarithm's mean, each with its degrees of freedom.
    fn new<const N: usize>(difference: f64, parts: [(f64, f64); N], size: f64) -> Self {
        let (variance, degrees_of_freedom) = satterthwaite(parts);
        let mut estimate = Self {
            ratio: difference.exp(),
            standard_error: variance.sqrt(),
            degrees_of_freedom,
            p: 1.0,
            is_sequential: false,
            size,
            candidates: 1.0,
        };
        estimate.p = estimate.p(difference);
        estimate
    }

    /// The same ratio where the number of runs depends on the results: p and interval are valid for all numbers together
    /// (see `sequential.rs`).
    #[must_use]
    pub fn sequential(self) -> Self {
        let mut estimate = Self { is_sequential: true, ..self };
        estimate.p = estimate.p(self.ratio.ln());
        estimate
    }

    /// The same ratio where all runs of a side share their session, and with it something that these runs do not show.
    /// `variance` is the logarithm's as other sessions show it, an estimate with these degrees of freedom: it replaces that
    /// of the runs if it is larger. If it is smaller, the runs' variance has no more degrees of freedom than it, because few
    /// sessions seem alike by chance.
    #[must_use]
    pub fn widened(self, variance: f64, degrees_of_freedom: f64) -> Self {
        let of_runs = self.standard_error.powi(2);
        let mut estimate = if variance > of_runs {
            Self { standard_error: variance.sqrt(), degrees_of_freedom, ..self }
        } else {
            Self { degrees_of_freedom: self.degrees_of_freedom.min(degrees_of_freedom), ..self }
        };
        estimate.p = estimate.p(self.ratio.ln());
        estimate
    }

    /// The same ratio if it was chosen among so many because it is the most distant from 1: p and interval hold for all of
    /// them together, and so for the chosen one.
    ///
    /// Source: Bonferroni's inequality, as in Dunn, "Multiple Comparisons among Means", Journal of the American
    /// Statistical Association 56 (1961).
    #[must_use]
    pub fn chosen_among(self, candidates: usize) -> Self {
        let mut estimate = Self { candidates: candidates.max(1) as f64, ..self };
        estimate.p = estimate.p(self.ratio.ln());
        estimate
    }

    /// The p-value of the hypothesis that the ratio is within a margin, from its inverse to it: small only for a change that
    /// matters. Without meaning for sequential estimates.
    ///
    /// Source: McCarthy and Smyth, "Testing significance relative to a fold-change threshold is a TREAT", Bioinformatics 25
    /// (2009), with this estimate's own variance.
    pub fn p_beyond(&self, margin: f64) -> f64 {
        let (distance, margin) = (self.ratio.ln().abs(), margin.ln().abs());
        if self.standard_error == 0.0 {
            return if distance > margin { 0.0 } else { 1.0 };
        }
        let tail = |by: f64| student::upper_tail(by / self.standard_error, self.degrees_of_freedom);
        (tail(distance - margin) + tail(distance + margin)).min(1.0)
    }

    fn p(&self, difference: f64) -> f64 {
        if difference == 0.0 {
            return 1.0;
        }
        let t = difference.abs() / self.standard_error;
        let p = match self.is_sequential {
            true => sequential::p(t, self.degrees_of_freedom, self.size),
            false => 2.0 * student::upper_tail(t, self.degrees_of_freedom),
        };
        (p * self.candidates).min(1.0)
    }

    /// The confidence interval of the ratio at this level, such as 0.95; `None` if `level` is not between 0 and 1, and
    /// if the number of runs depends on the results and is so small that the interval is unbounded.
    pub fn confidence_interval(&self, level: f64) -> Option<Interval> {
        let alpha = is_probability(level).then_some((1.0 - level) / self.candidates)?;
        let t = match self.is_sequential {
            true => sequential::critical_t(alpha, self.degrees_of_freedom, self.size)?,
            false => student::upper_quantile(alpha / 2.0, self.degrees_of_freedom),
        };
        let factor = (t * self.standard_error).exp();
        Some(Interval { low: self.ratio / factor, high: self.ratio * factor })
    }
}

/// The sum of independent estimates of variances, and its approximate degrees of freedom; without any variance the
/// smallest of theirs.
pub(crate) fn satterthwaite<const N: usize>(parts: [(f64, f64); N]) -> (f64, f64) {
    let sum: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let degrees_of_freedom = match sum {
        0.0 => parts.iter().map(|(_, of)| *of).fold(f64::INFINITY, f64::min),
        sum => sum * sum / parts.iter().map(|(variance, of)| variance * variance / of).sum::<f64>(),
    };
    (sum, degrees_of_freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welch(a: &[f64], b: &[f64]) -> Option<Estimate> {
        Estimate::welch(&Logs::new(a.iter().copied()).unwrap(), &Logs::new(b.iter().copied()).unwrap())
    }

    #[test]
    fn a_side_of_one_value_cannot_be_compared() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(welch(&[1.0, 2.0], &[1.0]), None);
    }

    #[test]
    fn without_spread_equal_sides_are_equal_and_others_are_not() {
        let equal = welch(&[0.1; 3], &[0.1; 5]).unwrap();
        assert_eq!((equal.ratio, equal.p, equal.standard_error), (1.0, 1.0, 0.0));
        assert_eq!(equal.confidence_interval(0.95), Some(Interval { low: 1.0, high: 1.0 }));
        let other = welch(&[100.0; 3], &[101.0; 5]).unwrap();
        assert_eq!((other.p, other.degrees_of_freedom), (0.0, 2.0));
        assert_eq!(other.confidence_interval(0.95), Some(Interval { low: other.ratio, high: other.ratio }));
    }

    #[test]
    fn with_spread_on_one_side_that_side_counts() {
        let one = welch(&[100.0; 3], &[100.0, 101.0, 102.0, 103.0]).unwrap();
        assert_eq!(one.degrees_of_freedom, 3.0);
    }

    /// p = 0 would claim too much; the tail of t is computed down to about 1e-300.
    #[test]
    fn a_tiny_p_is_not_rounded_to_0() {
        let spread: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i) * 0.01).collect();
        let p = welch(&spread, &spread.iter().map(|value| value * 2.0).collect::<Vec<_>>()).unwrap().p;
        assert!(p > 0.0 && p < 1e-60, "{p}");
    }

    #[test]
    fn a_level_is_between_0_and_1() {
        let welch = welch(&[1.0, 2.0], &[1.0, 3.0]).unwrap();
        for level in [0.0, 1.0, 95.0, f64::NAN] {
            assert_eq!(welch.confidence_interval(level), None, "{level}");
        }
    }

    #[test]
    fn pairs_cancel_what_they_have_in_common() {
        let block = [0.0, 0.3, -0.2, 0.1, 0.25, -0.4];
        let own = [0.01, -0.01, 0.0, 0.02, -0.015, 0.005];
        let a: Vec<f64> = block.iter().map(|block: &f64| block.exp()).collect();
        let b: Vec<f64> = block.iter().zip(own).map(|(block, own)| 0.95 * (block + own).exp()).collect();
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (b / a).ln()).collect();
        let (pairs, samples) = (Estimate::of_pairs(&differences).unwrap(), welch(&a, &b).unwrap());
        assert!((pairs.ratio - samples.ratio).abs() < 1e-12);
        assert!(pairs.p < 0.001 && samples.p > 0.5, "{pairs:?} {samples:?}");
        assert_eq!(Estimate::of_pairs(&[0.1]), None);
    }

    #[test]
    fn a_sequential_interval_is_wider_and_its_p_larger() {
        let (a, b) = ([100.0, 101.0, 99.0, 100.5, 99.5], [94.0, 95.0, 93.0, 94.5, 95.5]);
        let fixed = welch(&a, &b).unwrap();
        let sequential = fixed.sequential();
        assert!(sequential.p > fixed.p && sequential.p < 0.05, "{sequential:?}");
        let width = |estimate: Estimate| estimate.confidence_interval(0.95).map(|of| of.high / of.low);
        assert!(width(sequential) > width(fixed));
        assert_eq!(width(welch(&a[..3], &b[..3]).unwrap().sequential()), None);
        let equal = welch(&[1.0; 3], &[2.0; 3]).unwrap().sequential();
        assert!(equal.p > 0.05 && equal.confidence_interval(0.95).is_none(), "{equal:?}");
    }

    #[test]
    fn a_variance_that_the_runs_do_not_show_widens() {
        let fixed = welch(&[100.0, 100.1, 99.9], &[97.0, 97.1, 96.9]).unwrap();
        let widened = fixed.widened(2.0 * 0.02_f64.powi(2), 4.0);
        assert!(fixed.p < 1e-4 && widened.p > 0.2, "{fixed:?} {widened:?}");
        assert_eq!(widened.degrees_of_freedom, 4.0);
        let alike = fixed.widened(1e-9, 2.0);
        assert_eq!((alike.standard_error, alike.degrees_of_freedom), (fixed.standard_error, 2.0));
        assert!(alike.p > fixed.p, "{alike:?}");
        assert!((fixed.widened(1e-9, 5.0).p / fixed.p - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_change_within_the_margin_is_none_that_matters() {
        let (a, b) = ([100.0, 101.0, 99.0, 100.5, 99.5], [103.0, 104.0, 102.0, 103.5, 102.5]);
        let three = welch(&a, &b).unwrap();
        assert!(three.p < 0.001 && three.p_beyond(1.05) > 0.9, "{three:?} {}", three.p_beyond(1.05));
        // Without a margin it is the usual test.
        assert!((three.p_beyond(1.0) / three.p - 1.0).abs() < 1e-9);
        let twenty = welch(&a, &b.map(|value| value * 1.2)).unwrap();
        assert!(twenty.p_beyond(1.05) < 1e-4 && twenty.p_beyond(1.05) > twenty.p);
        // At the margin, half.
        let edge = welch(&a, &a.map(|value| value * 1.05)).unwrap().p_beyond(1.05);
        assert!((edge - 0.5).abs() < 0.01, "{edge}");
        assert_eq!(welch(&[1.0; 3], &[1.2; 3]).unwrap().p_beyond(1.05), 0.0);
        assert_eq!(welch(&[1.0; 3], &[1.04; 3]).unwrap().p_beyond(1.05), 1.0);
    }

    #[test]
    fn a_chosen_ratio_has_a_wider_interval() {
        let (a, b) = ([100.0, 101.0, 99.0, 100.5, 99.5], [97.0, 98.0, 96.0, 97.5, 96.5]);
        let fixed = welch(&a, &b).unwrap();
        let chosen = fixed.chosen_among(20);
        assert!((chosen.p / fixed.p - 20.0).abs() < 1e-6);
        let ends = |of: Estimate, level| of.confidence_interval(level).map(|of| (of.low * 1e9).round());
        assert_eq!(ends(chosen, 0.95), ends(fixed, 0.9975));
        assert_eq!(welch(&a, &a).unwrap().chosen_among(20).p, 1.0);
    }
}
