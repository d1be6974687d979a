//! Student's t distribution and the normal one, based on `statrs`.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The probability that t exceeds `t`, which must not be NaN.
pub(crate) fn upper_tail(t: f64, degrees_of_freedom: f64) -> f64 {
    // Not 1 − cdf, which has no digits left if the tail is small.
    StudentsT::new(0.0, 1.0, degrees_of_freedom).map_or(f64::NAN, |student| student.sf(t))
}

/// The value that t exceeds with probability `tail`, which must be above 0 and at most 1/2.
pub(crate) fn upper_quantile(tail: f64, degrees_of_freedom: f64) -> f64 {
    // By the lower tail and symmetry, for the same reason.
    StudentsT::new(0.0, 1.0, degrees_of_freedom).map_or(f64::NAN, |student| -student.inverse_cdf(tail))
}

/// The value that a standard normal variable exceeds with probability `tail`.
pub(crate) fn normal_quantile(tail: f64) -> f64 {
    -Normal::standard().inverse_cdf(tail)
}
