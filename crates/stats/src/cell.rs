//! Figures of the runs of one cell: level, noise, and whether a mean represents them.

use std::fmt;

use crate::{Logs, Sample, Split, critical_split};

/// A standard deviation of logarithms above this is [noisy](Cell::is_noisy).
pub const NOISY: f64 = 0.02;
/// A standard deviation of logarithms above this is [wide](Cell::is_wide).
pub const WIDE: f64 = 0.05;
/// Modes with a ratio below this are not reported as [modes](Cell::has_modes).
pub const MODE_RATIO: f64 = 1.05;
/// The spreads, as standard deviations of logarithms, at which a cell is noisy and wide. Modes closer than the latter are
/// not reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Above it, a cell is [noisy](Cell::is_noisy).
    pub noisy: f64,
    /// Above it, a cell is [wide](Cell::is_wide).
    pub wide: f64,
}

impl Spread {
    /// Of throughputs, means and medians.
    pub const MEAN: Self = Self { noisy: NOISY, wide: WIDE };
    /// Of 95th percentiles. The sampling error of a quantile q is √(q(1 − q)) / f (Mosteller, "On Some Useful
    /// 'Inefficient' Statistics", Annals of Mathematical Statistics 17 (1946)), f being the density there. Relative to
    /// the quantile, that of q = 0.95 is 1.5 times that of the mean for exponential latencies, and 1.6 times for
    /// lognormal ones with σ = 1.
    pub const P95: Self = Self { noisy: 2.0 * NOISY, wide: 2.0 * WIDE };
    /// Of 99th percentiles: by the same rule, 2.2 and 2.8 times that of the mean.
    pub const P99: Self = Self { noisy: 3.0 * NOISY, wide: 3.0 * WIDE };
}

/// With fewer runs, a cell has no [class](Cell::class) and a comparison no verdict.
pub const MIN_RUNS: usize = 3;

/// The figures of a cell of n runs; `None` if there are too few runs for a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Number of runs, at least 1.
    pub n: usize,
    /// The smallest throughput.
    pub minimum: f64,
    /// The median throughput.
    pub median: f64,
    /// The largest throughput.
    pub maximum: f64,
    /// The geometric mean of the throughputs.
    pub geometric_mean: f64,
    /// The standard deviation of the throughputs' natural logarithms, n − 1 degrees of freedom: 0.02 is about 2%.
    /// `None` for one run.
    pub log_sd: Option<f64>,
    /// The best split of the logarithms in two; `None` for fewer than 3 runs.
    pub split: Option<Split>,
    /// The critical value of the split's t; `None` for fewer than 3 or more than 50 runs.
    pub critical: Option<f64>,
    /// The spreads at which it is noisy and wide.
    pub spread: Spread,
}

/// The class of a cell. A cell that is both wide and bimodal is classified by its modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// None of the following.
    Stable,
    /// Its runs spread by more than 2%: small differences require more runs.
    Noisy,
    /// Unstable: its runs spread by more than 5%.
    Wide,
    /// Unstable: its runs fall into two modes, and no mean or median represents either.
    Modes,
}

impl Cell {
    /// The figures of a cell with these throughputs, in any order; `None` if there is no value, or one of them is zero,
    /// negative, NaN or infinite and thus has no logarithm.
    pub fn new(throughputs: &[f64]) -> Option<Self> {
        let logs = Logs::new(throughputs.iter().copied())?;
        let sample = Sample::new(throughputs.iter().copied())?;
        Some(Self {
            n: sample.n(),
            minimum: sample.minimum(),
            median: sample.median(),
            maximum: sample.maximum(),
            geometric_mean: sample.geometric_mean()?,
            log_sd: logs.standard_deviation(),
            split: Split::from_ascending(logs.ascending()),
            critical: critical_split(sample.n()),
            spread: Spread::MEAN,
        })
    }

    /// The same cell, noisy and wide at other spreads than those of throughputs.
    pub fn with_spread(self, spread: Spread) -> Self {
        Self { spread, ..self }
    }

    /// The ratio of the geometric means of the upper and the lower mode, whether or not they are significant; `None`
    /// for fewer than 3 runs.
    pub fn mode_ratio(&self) -> Option<f64> {
        self.split.map(|split| split.distance.exp())
    }

    /// Whether the standard deviation of the logarithms is above [`Spread::noisy`].
    pub fn is_noisy(&self) -> bool {
        self.log_sd.is_some_and(|sd| sd > self.spread.noisy)
    }

    /// Whether the standard deviation of the logarithms is above [`Spread::wide`].
    pub fn is_wide(&self) -> bool {
        self.log_sd.is_some_and(|sd| sd > self.spread.wide)
    }

    /// Whether the runs fall into two modes: t reaches its critical value, and the modes' ratio
    /// [`MODE_RATIO`], or as much more as the cell's [`Spread`] is wider than that of throughputs.
    ///
    /// Never with more than 50 runs, for which there is no critical value.
    pub fn has_modes(&self) -> bool {
        let wider = self.spread.wide / WIDE;
        let apart = self.mode_ratio().is_some_and(|ratio| ratio - 1.0 >= (MODE_RATIO - 1.0) * wider);
        apart && self.split.zip(self.critical).is_some_and(|(split, critical)| split.t >= critical)
    }

    /// Whether no single figure represents the runs: wide or with modes.
    pub fn is_unstable(&self) -> bool {
        self.is_wide() || self.has_modes()
    }

    /// The class of the cell; `None` for fewer than [`MIN_RUNS`] runs.
    pub fn class(&self) -> Option<Class> {
        (self.n >= MIN_RUNS).then(|| match () {
            () if self.has_modes() => Class::Modes,
            () if self.is_wide() => Class::Wide,
            () if self.is_noisy() => Class::Noisy,
            () => Class::Stable,
        })
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stable => "STABLE",
            Self::Noisy => "NOISY",
            Self::Wide => "UNSTABLE-WIDE",
            Self::Modes => "UNSTABLE-MODES",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(throughputs: &[f64]) -> Cell {
        Cell::new(throughputs).unwrap()
    }

    #[test]
    fn values_without_a_logarithm_are_rejected() {
        assert_eq!(Cell::new(&[]), None);
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Cell::new(&[1.0, value, 2.0]), None, "{value}");
        }
    }

    #[test]
    fn too_few_runs_have_no_class() {
        let one = cell(&[100.0]);
        assert_eq!((one.n, one.median, one.log_sd, one.split, one.class()), (1, 100.0, None, None, None));
        let two = cell(&[100.0, 200.0]);
        assert_eq!((two.is_wide(), two.mode_ratio(), two.class()), (true, None, None));
    }

    #[test]
    fn equal_runs_are_stable() {
        let equal = cell(&[100.0; 4]);
        assert_eq!((equal.log_sd, equal.class()), (Some(0.0), Some(Class::Stable)));
    }

    #[test]
    fn two_speeds_are_modes_from_a_ratio_of_1_05() {
        assert_eq!(cell(&[100.0, 100.0, 100.0, 104.9, 104.9]).class(), Some(Class::Noisy));
        assert_eq!(cell(&[100.0, 100.0, 100.0, 105.1, 105.1]).class(), Some(Class::Modes));
    }

    #[test]
    fn percentiles_may_spread_more() {
        let runs = [100.0, 108.0, 92.0, 105.0, 95.0];
        let class = |spread| cell(&runs).with_spread(spread).class();
        let all = [Spread::MEAN, Spread::P95, Spread::P99].map(class);
        assert_eq!(all, [Some(Class::Wide), Some(Class::Noisy), Some(Class::Noisy)]);
        let modes = [100.0, 100.0, 100.0, 110.0, 110.0];
        assert!(cell(&modes).has_modes() && !cell(&modes).with_spread(Spread::P99).has_modes());
    }

    /// A cell that is also wide is classified by its modes.
    #[test]
    fn a_cell_can_be_wide_and_have_modes() {
        let both = cell(&[100.0, 101.0, 100.5, 150.0, 151.0]);
        assert!(both.is_noisy() && both.is_wide() && both.has_modes() && both.is_unstable());
        assert_eq!(both.class().unwrap().to_string(), "UNSTABLE-MODES");
    }

    #[test]
    fn more_than_50_runs_are_judged_by_spread_only() {
        let runs: Vec<f64> = (0..51).map(|i| if i < 25 { 100.0 } else { 108.0 }).collect();
        let many = cell(&runs);
        assert_eq!((many.critical, many.has_modes(), many.class()), (None, false, Some(Class::Noisy)));
        assert_eq!(cell(&runs[1..]).class(), Some(Class::Modes));
    }
}
