//! Stalls: seconds with almost no throughput.

use std::collections::VecDeque;

use crate::Sample;

/// A second with less than this share of the baseline is a stall.
const STALL_SHARE: f64 = 0.2;
/// The baseline is the median of this many preceding seconds without a stall.
const BASELINE_SECONDS: usize = 60;
/// The fewest seconds for a baseline.
const MIN_SECONDS: usize = 10;

/// Consecutive seconds with almost no throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// Index of the first of them.
    pub from: usize,
    /// Number of seconds.
    pub seconds: usize,
    /// The baseline: the median of up to 60 preceding seconds.
    pub baseline: f64,
}

/// The stalls of a run with this many transactions in each second: seconds below 20% of the median of the last 60 that
/// were not stalls. The baseline of the first ten seconds is their median. `None` for fewer than 10 seconds, or if one
/// is NaN or infinite.
///
/// A median, as Tukey's running medians ("Exploratory Data Analysis" (1977), chapter 7), ignores changes in less than
/// half of its seconds; as stalls are excluded, neither a long one nor frequent ones become the baseline.
pub fn stalls(seconds: &[f64]) -> Option<Vec<Stall>> {
    let first = seconds.first_chunk::<MIN_SECONDS>()?;
    if seconds.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let first_median = Sample::new(first.iter().copied())?.median();
    let mut before: VecDeque<f64> = VecDeque::with_capacity(BASELINE_SECONDS);
    let mut stalls: Vec<Stall> = Vec::new();
    for (second, &value) in seconds.iter().enumerate() {
        let median = match before.len() {
            n if n < MIN_SECONDS => first_median,
            _ => Sample::new(before.iter().copied())?.median(),
        };
        if value < STALL_SHARE * median {
            match stalls.last_mut().filter(|stall| stall.from + stall.seconds == second) {
                Some(stall) => stall.seconds += 1,
                None => stalls.push(Stall { from: second, seconds: 1, baseline: median }),
            }
            continue;
        }
        if before.len() == BASELINE_SECONDS {
            before.pop_front();
        }
        before.push_back(value);
    }
    Some(stalls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stalled: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
        let seconds: Vec<f64> =
            (0..300).map(|i| if stalled(i) { 15.0 } else { 100.0 + (i % 7) as f64 }).collect();
        stalls(&seconds).unwrap().iter().map(|stall| (stall.from, stall.seconds)).collect()
    }

    #[test]
    fn seconds_with_almost_no_throughput_are_stalls() {
        assert_eq!(run(|_| false), []);
        assert_eq!(run(|i| (50..53).contains(&i) || i == 299), [(50, 3), (299, 1)]);
        assert_eq!(run(|i| i < 4), [(0, 4)]);
    }

    #[test]
    fn a_long_stall_stays_one() {
        assert_eq!(run(|i| i >= 100), [(100, 200)]);
    }

    #[test]
    fn slowly_falling_throughput_is_no_stall() {
        let down: Vec<f64> = (0..600).map(|i| 1000.0 * 0.99_f64.powi(i)).collect();
        assert_eq!(stalls(&down), Some(vec![]));
    }

    #[test]
    fn too_few_seconds_have_no_result() {
        assert_eq!(stalls(&[1.0; 9]), None);
        assert_eq!(stalls(&[f64::NAN; 20]), None);
        assert_eq!(stalls(&[0.0; 20]), Some(vec![]));
    }
}
