//! Student's t distribution, of what `statrs` has of it.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The probability that t exceeds `t`, for a `t` that is a number.
pub(crate) fn upper_tail(t: f64, degrees_of_freedom: f64) -> f64 {
    // Not 1 − cdf, which has no digits left where the tail is small.
    StudentsT::new(0.0, 1.0, degrees_of_freedom).map_or(f64::NAN, |student| student.sf(t))
}

/// The value that t exceeds with probability `tail`, of more than 0 and at most 1/2.
pub(crate) fn upper_quantile(tail: f64, degrees_of_freedom: f64) -> f64 {
    // By the lower tail and symmetry, for the same reason.
    StudentsT::new(0.0, 1.0, degrees_of_freedom).map_or(f64::NAN, |student| -student.inverse_cdf(tail))
}
