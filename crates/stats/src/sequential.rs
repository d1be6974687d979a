//! Tests that may be looked at after each run.
//!
//! A sequence of experiments of growing size is tested by a Bayes factor: of "the mean is not 0", with a normal prior of
//! the effect in standard deviations (mean 0, variance [`PRIOR_VARIANCE`]), against "it is 0", with the right Haar prior
//! of the standard deviation on both sides. It depends on the values only by t (Gönen, Johnson, Lu and Westfall, "The
//! Bayesian Two-Sample t Test", The American Statistician 59 (2005)). With this prior it is a test martingale (Hendriksen,
//! de Heide and Grünwald, "Optional Stopping with Bayes Factors", Bayesian Analysis 16 (2021)), so that by Ville's
//! inequality it ever reaches 1/α with a probability of at most α: whatever decides about the next run.

/// Variance of the effect's prior in units of the values' variance. It decides at which number of runs the interval is
/// narrowest, and which number is the first with a bounded one: with 2, 4 runs a side at a level of 95%, and at most 9 in
/// the mean for a change of 2.5 times the noise; between 1 and 5 these hardly differ.
const PRIOR_VARIANCE: f64 = 2.0;

/// The p-value of `t` with these degrees of freedom, valid at all sizes together: the inverse of the Bayes factor.
///
/// `size` is the number of independent values: of pairs, or for two samples n₁·n₂/(n₁ + n₂). A `t` of two samples with
/// different spreads is Welch's, for which this is an approximation.
pub(crate) fn p(t: f64, degrees_of_freedom: f64, size: f64) -> f64 {
    let r = 1.0 + size * PRIOR_VARIANCE;
    let x = t * t / degrees_of_freedom;
    // For an infinite t, the limit.
    let growth = if x.is_finite() { (1.0 + x) / (1.0 + x / r) } else { r };
    (r.sqrt() * growth.powf(-(degrees_of_freedom + 1.0) / 2.0)).min(1.0)
}

/// The t at which [`p`] is `alpha`: half the width of an interval in standard errors that is valid at all sizes
/// together. `None` while the interval is unbounded.
///
/// p is `alpha` where (1 + x) / (1 + x/r) = c with c = (√r/`alpha`)^(2/(ν + 1)): at x = (c − 1) / (1 − c/r).
pub(crate) fn critical_t(alpha: f64, degrees_of_freedom: f64, size: f64) -> Option<f64> {
    let r = 1.0 + size * PRIOR_VARIANCE;
    let c = (r.sqrt() / alpha).powf(2.0 / (degrees_of_freedom + 1.0));
    (c < r).then(|| (degrees_of_freedom * (c - 1.0) / (1.0 - c / r)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_at_the_critical_t_is_alpha() {
        for (alpha, degrees_of_freedom, size) in [(0.01, 9.0, 10.0), (0.05, 7.3, 2.5), (0.05, 38.0, 10.0)] {
            let t = critical_t(alpha, degrees_of_freedom, size).unwrap();
            assert!((p(t, degrees_of_freedom, size) - alpha).abs() < 1e-9);
            assert!(p(t + 0.1, degrees_of_freedom, size) < alpha);
        }
    }

    /// The Bayes factor of Gönen et al., by their formula (5) for two samples of 10 with t = 3: marginal likelihoods of a
    /// scaled t against a t.
    #[test]
    fn p_is_the_inverse_of_the_bayes_factor() {
        use statrs::distribution::{Continuous, StudentsT};
        let (t, nu, size) = (3.0, 18.0, 5.0);
        let scale = f64::sqrt(1.0 + size * PRIOR_VARIANCE);
        let density = |scale: f64| StudentsT::new(0.0, scale, nu).unwrap().pdf(t);
        assert!((p(t, nu, size) - density(1.0) / density(scale)).abs() < 1e-9);
    }

    #[test]
    fn few_runs_have_no_interval_and_no_small_p() {
        assert_eq!(critical_t(0.05, 4.0, 1.5), None);
        assert_eq!(p(0.0, 4.0, 1.5), 1.0);
        assert!(p(f64::INFINITY, 4.0, 1.5) > 0.05);
        // A normal quantile is smaller, Student's as well.
        assert!(critical_t(0.05, 38.0, 10.0).unwrap() > 2.02);
    }
}
