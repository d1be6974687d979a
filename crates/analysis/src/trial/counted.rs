//! Values with counts: merged histograms.

/// Values with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Ascending and unique up to `sorted`, unordered after that.
    values: Vec<(u64, u64)>,
    sorted: usize,
}

/// Number of unsorted values that triggers sorting: small enough to limit memory, large enough that sorting is rare.
const AT_ONCE: usize = 65_536;

impl Counted {
    /// Adds the values of a histogram.
    pub fn add(&mut self, values: &[(u64, u64)]) {
        self.values.extend(values.iter().filter(|(_, count)| *count > 0));
        if self.values.len() > self.sorted + AT_ONCE {
            self.sort();
        }
    }

    /// All distinct values in ascending order, with their counts.
    pub fn sorted(&mut self) -> &[(u64, u64)] {
        self.sort();
        &self.values
    }

    fn sort(&mut self) {
        if self.sorted == self.values.len() {
            return;
        }
        self.values.sort_unstable_by_key(|(value, _)| *value);
        self.values.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                kept.1 += later.1;
            }
            is_same
        });
        self.sorted = self.values.len();
    }
}

/// The smallest value that a given share of sorted values does not exceed; `None` if there are no values.
///
/// Shares must be ascending from call to call: the values are traversed once.
pub struct Quantiles<'a> {
    values: &'a [(u64, u64)],
    at: usize,
    /// Number of values that do not exceed the one at `at`.
    up_to: u64,
    count: u64,
}

impl<'a> Quantiles<'a> {
    /// Quantiles of sorted values, each with its count.
    pub fn new(values: &'a [(u64, u64)]) -> Self {
        let count = values.iter().map(|(_, count)| count).sum();
        Self { values, at: 0, up_to: values.first().map_or(0, |(_, count)| *count), count }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value, and the share of all values that do not exceed it.
    pub fn next(&mut self, share: f64) -> Option<(u64, f64)> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        while self.up_to < rank && self.at + 1 < self.values.len() {
            self.at += 1;
            self.up_to += self.values[self.at].1;
        }
        let (value, _) = self.values.get(self.at)?;
        Some((*value, self.up_to as f64 / self.count as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_values_are_merged() {
        let mut counted = Counted::default();
        for _ in 0..AT_ONCE {
            counted.add(&[(7, 1), (3, 2)]);
        }
        counted.add(&[(5, 0), (4, 1)]);
        assert_eq!(counted.sorted(), [(3, 2 * AT_ONCE as u64), (4, 1), (7, AT_ONCE as u64)]);
        assert!(counted.values.capacity() < 4 * AT_ONCE, "{}", counted.values.capacity());
    }

    #[test]
    fn quantiles_are_the_smallest_value_that_a_share_does_not_exceed() {
        let values = [(10, 1), (20, 2), (30, 1)];
        let mut quantiles = Quantiles::new(&values);
        let found = [0.0, 0.25, 0.26, 0.75, 0.76, 1.0].map(|share| quantiles.next(share).unwrap().0);
        assert_eq!(found, [10, 10, 20, 20, 30, 30]);
        assert_eq!(Quantiles::new(&[]).next(0.5), None);
    }
}
