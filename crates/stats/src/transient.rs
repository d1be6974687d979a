//! Transients: windows in which a series leaves its level and returns to it.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::e_divisive::{MIN_SIDE, MIN_VALUES};
use crate::moments::Moments;
use crate::shuffle::{p_of_chance, shuffle};

/// p at or below this is a transient. The test is applied if no lasting change is found, and adds to the false alarms
/// of that test.
const ALPHA: f64 = 0.005;
/// The largest number of cells of the grid on which windows begin and end.
const MAX_CELLS: usize = 2000;
/// Steps between windows of one length, and between lengths, are the length divided by this.
const FINENESS: usize = 8;

/// A significant transient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transient {
    /// Number of values before it.
    pub(crate) from: usize,
    /// Number of values before its end.
    pub(crate) to: usize,
    /// The share of permutations with a window at least as good, as estimated.
    pub(crate) p: f64,
}

/// The window of these values that differs most from the values before and after it together, if p is at most 0.005;
/// `None` for fewer than 10 values.
///
/// A level that was left and resumed gives no split with very different parts. The statistic is the difference of means
/// in units of its standard error, estimated from all values together: the maximum over the windows is compared with
/// that of random permutations, and p [estimated from these](p_of_chance). Windows of up to 16 values are all tried,
/// longer ones at steps of an eighth of their length; for more than 2000 values, only those on a grid of 2000 cells.
///
/// Sources: Levin and Kline, "The CUSUM Test of Homogeneity with an Application in Spontaneous Abortion Epidemiology",
/// Statistics in Medicine 4 (1985); Olshen, Venkatraman, Lucito and Wigler, "Circular Binary Segmentation for the
/// Analysis of Array-Based DNA Copy Number Data", Biostatistics 5 (2004), with p by permutations and for each segment.
pub(crate) fn significant_transient(values: &[f64], seed: u64) -> Option<Transient> {
    let n = values.len();
    if n < MIN_VALUES {
        return None;
    }
    let mean = Moments::new(values).mean;
    let mut values: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let mut windows = Windows::new(n);
    let (at, observed) = windows.best(&values);
    let (from, to) = windows.lines[at];
    // The same values in another order have a slightly different sum, due to rounding.
    let as_good = observed * (1.0 - 1e-9);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let p = p_of_chance(ALPHA, n, || {
        shuffle(&mut values, &mut random);
        windows.best(&values).1 >= as_good
    })?;
    Some(Transient { from: windows.grid[from], to: windows.grid[to], p })
}

/// The windows tried.
struct Windows {
    /// Number of values before each line of the grid.
    grid: Vec<usize>,
    /// The grid lines at both ends of each window.
    lines: Vec<(usize, usize)>,
    /// For each window of m of n values, 1/m(n − m).
    weights: Vec<f64>,
    /// For each line, the sum of the values before it.
    sums: Vec<f64>,
}

impl Windows {
    /// For `n` values, at least [`MIN_VALUES`].
    fn new(n: usize) -> Self {
        let cell = n.div_ceil(MAX_CELLS);
        let grid: Vec<usize> =
            (MIN_SIDE.div_ceil(cell)..).map(|line| line * cell).take_while(|at| at + MIN_SIDE <= n).collect();
        let mut lines = Vec::new();
        let mut length = MIN_SIDE.div_ceil(cell);
        while length < grid.len() {
            let step = (length / FINENESS).max(1);
            lines.extend((0..grid.len() - length).step_by(step).map(|from| (from, from + length)));
            length += step;
        }
        let weight = |&(from, to): &(usize, usize)| {
            let m = grid[to] - grid[from];
            1.0 / (m * (n - m)) as f64
        };
        let (weights, sums) = (lines.iter().map(weight).collect(), vec![0.0; grid.len()]);
        Self { grid, lines, weights, sums }
    }

    /// The index of the window whose mean differs most from that of the others, and the square of that difference in
    /// units of its standard error, up to a factor; the first of equal ones. The mean of all values must be 0.
    fn best(&mut self, values: &[f64]) -> (usize, f64) {
        let (mut done, mut sum) = (0, 0.0);
        for (before, &at) in self.sums.iter_mut().zip(&self.grid) {
            sum += values[done..at].iter().sum::<f64>();
            (done, *before) = (at, sum);
        }
        let mut best = (0, f64::NEG_INFINITY);
        for (at, (&(from, to), weight)) in self.lines.iter().zip(&self.weights).enumerate() {
            let sum = self.sums[to] - self.sums[from];
            let far = sum * sum * weight;
            if far > best.1 {
                best = (at, far);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wobble(i: usize) -> f64 {
        ((i * 37 % 101) as f64 - 50.0) / 5000.0
    }

    #[test]
    fn a_level_that_returns_is_a_transient() {
        let values: Vec<f64> =
            (0..60).map(|i| wobble(i) - if (25..35).contains(&i) { 0.05 } else { 0.0 }).collect();
        assert_eq!(significant_transient(&values, 1), Some(Transient { from: 25, to: 35, p: 0.001 }));
        let turned: Vec<f64> = values.iter().map(|value| -value).collect();
        assert_eq!(significant_transient(&turned, 1), Some(Transient { from: 25, to: 35, p: 0.001 }));
    }

    #[test]
    fn equal_values_few_values_and_noise_have_none() {
        assert_eq!(significant_transient(&[0.1; 50], 1), None);
        assert_eq!(significant_transient(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0], 1), None);
        assert_eq!(significant_transient(&(0..90).map(wobble).collect::<Vec<_>>(), 1), None);
    }

    /// The mean of a window compared with that of the others, by the definition.
    #[test]
    fn the_best_window_is_that_of_the_definition() {
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0, 9.0, 7.0];
        let (n, mean) = (values.len(), values.iter().sum::<f64>() / 14.0);
        let mut windows = Windows::new(n);
        let (at, far) = windows.best(&values.map(|value| value - mean));
        let defined = |from: usize, to: usize| {
            let inner = &values[from..to];
            let outer = [&values[..from], &values[to..]].concat();
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let (m, k) = (inner.len() as f64, outer.len() as f64);
            (mean(inner) - mean(&outer)).powi(2) * m * k / n as f64
        };
        let all = (2..n).flat_map(|from| (from + 2..=n - 2).map(move |to| (from, to)));
        let best = all.map(|(from, to)| (defined(from, to), (from, to))).max_by(|a, b| a.0.total_cmp(&b.0));
        let (from, to) = windows.lines[at];
        assert_eq!(Some((windows.grid[from], windows.grid[to])), best.map(|(_, window)| window));
        assert!((far * n as f64 - best.unwrap().0).abs() < 1e-12, "{far}, {best:?}");
    }

    #[test]
    fn of_many_values_windows_are_on_a_grid() {
        let windows = Windows::new(10_000);
        assert!(windows.grid.len() <= MAX_CELLS && windows.lines.len() < 60_000, "{}", windows.lines.len());
        assert_eq!((windows.grid[0], windows.lines[0]), (5, (0, 1)));
        assert!(windows.grid.last().is_some_and(|last| *last <= 9998));
        let values: Vec<f64> =
            (0..10_000).map(|i| wobble(i) - if (4_102..4_222).contains(&i) { 0.05 } else { 0.0 }).collect();
        let found = significant_transient(&values, 1).unwrap();
        assert!(found.from.abs_diff(4102) <= 5 && found.to.abs_diff(4222) <= 5, "{found:?}");
    }
}
