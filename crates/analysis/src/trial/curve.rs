//! The distribution of latencies by quantiles.

use super::Curve;
use super::counted::{Counted, Quantiles};
use super::points::figure;

/// Steps while the distance from 1 halves.
const STEPS: u32 = 8;

/// The curve of values in nanoseconds; `None` if there are none.
///
/// Source of the steps: HdrHistogram, `PercentileIterator`.
pub(crate) fn curve(counted: &mut Counted) -> Option<Curve> {
    let mut quantiles = Quantiles::new(counted.sorted());
    let mut curve = Curve { q: Vec::new(), us: Vec::new(), count: quantiles.count() };
    let mut share: f64 = 0.0;
    loop {
        let (value_ns, up_to) = quantiles.next(share)?;
        curve.q.push(share);
        curve.us.push(figure(value_ns as f64 / 1e3));
        if share >= 1.0 {
            return Some(curve);
        }
        // If all values are covered, only 1 remains.
        let halvings = (1.0 / (1.0 - share)).log2().floor() as i32 + 1;
        let next = share + 1.0 / (f64::from(STEPS) * 2_f64.powi(halvings));
        share = if up_to >= 1.0 { 1.0 } else { next.min(1.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_the_smallest_to_the_largest_and_is_dense_towards_1() {
        let values: Vec<(u64, u64)> = (1..=100_000).map(|n| (n * 1000, 1)).collect();
        let mut counted = Counted::default();
        counted.add(&values);
        let curve = curve(&mut counted).unwrap();
        assert_eq!((curve.count, curve.us[0], curve.us.last()), (100_000, 1.0, Some(&100_000.0)));
        assert!(curve.q.is_sorted_by(|a, b| a < b) && curve.us.is_sorted());
        assert!(curve.q.len() < 200, "{}", curve.q.len());
        assert!(curve.q.iter().filter(|q| **q > 0.999).count() > 20, "{:?}", curve.q);
        for (q, us) in curve.q.iter().zip(&curve.us).skip(1) {
            let exact = (q * 100_000.0).ceil();
            assert!((us - exact).abs() <= exact * 1e-4, "{q}: {us}, not {exact}");
        }
    }

    #[test]
    fn without_values_there_is_no_curve() {
        assert_eq!(curve(&mut Counted::default()), None);
    }
}
