//! Spread between sessions: what all runs of one session have in common, and other sessions have not.

use crate::moments::Moments;

/// The variance of a session's mean, from sessions that should have the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionSpread {
    /// The variance of the mean of a session's logarithms.
    pub variance: f64,
    /// Its degrees of freedom.
    pub degrees_of_freedom: usize,
}

impl SessionSpread {
    /// From the means of logarithms of sessions, in groups that each should have one mean; `None` if no group has two.
    ///
    /// Source: Fisher, "Statistical Methods for Research Workers" (1925), chapter VII: where runs come in groups, the groups
    /// are the replicates, and the variance between their means, pooled over sets of them, is the error.
    pub fn new<G: AsRef<[f64]>>(groups: &[G]) -> Option<Self> {
        let moments = groups.iter().map(|means| Moments::new(means.as_ref())).filter(|moments| moments.n > 1);
        let (squares, degrees_of_freedom) =
            moments.fold((0.0, 0), |(squares, n), moments| (squares + moments.squares, n + moments.n - 1));
        let variance = squares / degrees_of_freedom as f64;
        (degrees_of_freedom > 0).then_some(Self { variance, degrees_of_freedom })
    }

    /// The variance of the difference of two sides with so many sessions each.
    pub fn of_difference(self, a: usize, b: usize) -> f64 {
        self.variance * (1.0 / a as f64 + 1.0 / b as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_pooled_about_their_own_means() {
        let spread = SessionSpread::new(&[vec![1.0, 1.2], vec![5.0], vec![2.0, 2.1, 2.2]]).unwrap();
        assert_eq!(spread.degrees_of_freedom, 3);
        assert!((spread.variance - (0.02 + 0.02) / 3.0).abs() < 1e-12);
        assert!((spread.of_difference(1, 2) - 1.5 * spread.variance).abs() < 1e-12);
    }

    #[test]
    fn single_sessions_show_no_spread() {
        assert_eq!(SessionSpread::new(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(SessionSpread::new::<Vec<f64>>(&[]), None);
    }
}
