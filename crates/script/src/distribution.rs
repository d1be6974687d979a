//! The distributions of the random functions, each from `min` to `max`, both included.
//!
//! The formulas and the order of draws are pgbench's, to get identical numbers.

use std::f64::consts::PI;

use crate::RandomState;

/// Truncated exponential: the last value has a density of `exp(-parameter)` times the first one's.
pub(crate) fn exponential(random: &mut RandomState, min: i64, max: i64, parameter: f64) -> i64 {
    let cut = (-parameter).exp();
    let uniform = 1.0 - random.f64();
    at_fraction(min, max, -(cut + (1.0 - cut) * uniform).ln() / parameter)
}

/// Normal, truncated to `parameter` standard deviations on each side of the middle; by Box-Muller, taking the sine.
pub(crate) fn gaussian(random: &mut RandomState, min: i64, max: i64, parameter: f64) -> i64 {
    let deviation = loop {
        let u1 = 1.0 - random.f64();
        let u2 = 1.0 - random.f64();
        let deviation = (-2.0 * u1.ln()).sqrt() * (2.0 * PI * u2).sin();
        if deviation >= -parameter && deviation < parameter {
            break deviation;
        }
    };
    at_fraction(min, max, (deviation + parameter) / (parameter * 2.0))
}

/// Zipfian with exponent `parameter` > 1, by rejection: L. Devroye, "Non-Uniform Random Variate Generation", Springer
/// 1986, pages 550-551.
pub(crate) fn zipfian(random: &mut RandomState, min: i64, max: i64, parameter: f64) -> i64 {
    let count = max - min + 1;
    if count <= 1 {
        return min;
    }
    let b = 2_f64.powf(parameter - 1.0);
    loop {
        let u = random.f64();
        let v = random.f64();
        let x = u.powf(-1.0 / (parameter - 1.0)).floor();
        let t = (1.0 + 1.0 / x).powf(parameter - 1.0);
        if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= count as f64 {
            return min - 1 + x as i64;
        }
    }
}

/// The value at a fraction, in [0, 1), of the range.
fn at_fraction(min: i64, max: i64, fraction: f64) -> i64 {
    min.wrapping_add(((max - min + 1) as f64 * fraction) as i64)
}
