//! The verdict of all pairs.

use std::fmt;

use stats::{Interval, Logs};

/// Largest change of throughput that collectors may cause.
const MARGIN: f64 = 0.01;

/// The geometric mean of the pairs' ratios, on over off, with its 95 % confidence interval.
pub(crate) struct Ratio {
    pub(crate) mean: f64,
    pub(crate) interval: Interval,
    logs: Logs,
}

impl Ratio {
    /// None with fewer than two ratios, or if one is not positive.
    pub(crate) fn new(ratios: impl IntoIterator<Item = f64>) -> Option<Self> {
        let logs = Logs::new(ratios)?;
        Some(Self { mean: logs.mean().exp(), interval: logs.confidence_interval(0.95)?, logs })
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let (min, max) = (1.0 - MARGIN, 1.0 + MARGIN);
        let Interval { low, high } = self.interval;
        if low >= min && high <= max {
            return Verdict::Met;
        }
        if high < min || low > max {
            return Verdict::Missed;
        }
        // An interval around the same mean that does not reach the nearer bound is on one side of it. One wider than
        // the margin hardly locates the mean: nothing follows from a mean that is far away by chance.
        let distance = [min, max].map(|bound| (bound.ln() - self.logs.mean()).abs());
        let half_width = distance[0].min(distance[1]).exp_m1().min(MARGIN);
        let needed = stats::runs_needed(&self.logs, half_width);
        // This interval is too wide: at least one more pair is needed, regardless of rounding.
        Verdict::NotDecided(needed.map(|needed| needed.saturating_sub(self.logs.n()).max(1)))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interval { low, high } = self.interval;
        write!(to, "{:.4} ({low:.4}-{high:.4})", self.mean)
    }
}

/// Whether collectors change throughput by less than the margin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// Number of further pairs that would decide; None if there would be too many.
    NotDecided(Option<usize>),
}

impl fmt::Display for Verdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Met => write!(to, "met"),
            Self::Missed => write!(to, "missed"),
            Self::NotDecided(Some(more)) => write!(to, "not decided: some {more} more pairs"),
            Self::NotDecided(None) => write!(to, "not decided, and not decidable with a million pairs"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ratios: &[f64]) -> Verdict {
        Ratio::new(ratios.iter().copied()).unwrap().verdict()
    }

    #[test]
    fn the_whole_interval_decides() {
        assert_eq!(verdict(&[0.999, 1.0, 1.001]), Verdict::Met);
        assert_eq!(verdict(&[0.979, 0.98, 0.981]), Verdict::Missed);
        assert_eq!(verdict(&[1.019, 1.02, 1.021]), Verdict::Missed);
        assert!(matches!(verdict(&[0.98, 1.0, 1.02]), Verdict::NotDecided(_)), "too wide");
        assert!(matches!(verdict(&[0.989, 0.99, 0.991]), Verdict::NotDecided(_)), "on the bound");
    }

    #[test]
    fn the_stated_number_of_pairs_would_decide() {
        let few = [0.99, 1.0, 1.01, 0.985, 1.015];
        let Verdict::NotDecided(Some(more)) = verdict(&few) else { panic!("it is decided") };
        let spread_alike: Vec<f64> = few.iter().copied().cycle().take(few.len() + more + 5).collect();
        assert_eq!(verdict(&spread_alike), Verdict::Met);
        assert!(more > 1);
    }

    /// The smallest n with t(n - 1, 0.975) * 0.11163 / sqrt(n) <= ln(1.01) is 486, with t by Fisher's expansion in
    /// CPython.
    #[test]
    fn a_wide_interval_needs_many_pairs() {
        assert_eq!(verdict(&[0.8, 0.9, 1.0]), Verdict::NotDecided(Some(486 - 3)));
    }

    #[test]
    fn a_mean_on_the_bound_is_never_decided() {
        let bound = 1.0 - MARGIN;
        assert_eq!(verdict(&[bound * 0.99, bound / 0.99]), Verdict::NotDecided(None));
    }
}
