//! Mean and sum of squares in one pass.

/// Number, mean and sum of squared deviations of the values added so far.
///
/// Source: Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products", Technometrics 4 (1962).
/// It loses no digits if values are close together, and for equal values the sum of squares is exactly 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    pub(crate) n: usize,
    pub(crate) mean: f64,
    pub(crate) squares: f64,
}

impl Moments {
    pub(crate) fn add(&mut self, value: f64) {
        self.n += 1;
        let deviation = value - self.mean;
        self.mean += deviation / self.n as f64;
        self.squares += deviation * (value - self.mean);
    }

    pub(crate) fn new(values: &[f64]) -> Self {
        let mut moments = Self::default();
        values.iter().for_each(|&value| moments.add(value));
        moments
    }

    /// The variance with n − 1 degrees of freedom; `None` for fewer than 2 values.
    pub(crate) fn variance(&self) -> Option<f64> {
        (self.n >= 2).then(|| self.squares / (self.n - 1) as f64)
    }
}

/// The moments of `values[k..]` for each k.
pub(crate) fn suffixes(values: &[f64]) -> Vec<Moments> {
    let mut moments = Moments::default();
    let mut parts: Vec<Moments> = values
        .iter()
        .rev()
        .map(|&value| {
            moments.add(value);
            moments
        })
        .collect();
    parts.reverse();
    parts
}
