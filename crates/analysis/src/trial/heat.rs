//! Transactions by latency, over time.

use std::collections::BTreeMap;

use super::Heat;
use super::points::figure;

/// The largest number of columns: a screen can't show more.
pub(super) const COLUMNS: usize = 300;
/// Rows per power of ten: half an HdrHistogram's significant digit.
const ROWS_PER_DECADE: f64 = 8.0;

/// A heat map under construction, one interval after another.
pub(super) struct HeatBuilder {
    columns: Vec<Column>,
}

struct Column {
    start_us: i64,
    width_us: i64,
    rows: BTreeMap<i32, u64>,
}

impl HeatBuilder {
    /// A map with columns of these starts and lengths, in microseconds.
    pub(super) fn new(columns: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let column = |(start_us, width_us)| Column { start_us, width_us, rows: BTreeMap::new() };
        Self { columns: columns.into_iter().map(column).collect() }
    }

    /// Adds latencies in nanoseconds to a column.
    pub(super) fn add(&mut self, column: usize, values: &[(u64, u64)]) {
        let Some(column) = self.columns.get_mut(column) else { return };
        for (value_ns, count) in values.iter().filter(|(_, count)| *count > 0) {
            *column.rows.entry(row(*value_ns)).or_default() += count;
        }
    }

    /// The map; `None` if there were no latencies.
    pub(super) fn build(self) -> Option<Heat> {
        let rows = || self.columns.iter().flat_map(|column| column.rows.keys().copied());
        let (first, last) = (rows().min()?, rows().max()?);
        let edge = |row: i32| figure(10_f64.powf(f64::from(row) / ROWS_PER_DECADE));
        let counts =
            |column: &Column| (first..=last).map(|row| column.rows.get(&row).copied().unwrap_or(0)).collect();
        Some(Heat {
            edges_us: (first..=last + 1).map(edge).collect(),
            start_us: self.columns.iter().map(|column| column.start_us).collect(),
            width_us: self.columns.iter().map(|column| column.width_us).collect(),
            counts: self.columns.iter().map(counts).collect(),
        })
    }
}

fn row(value_ns: u64) -> i32 {
    // A nanosecond is the resolution of the clock.
    ((value_ns.max(1) as f64 / 1e3).log10() * ROWS_PER_DECADE).floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_row_between_its_edges() {
        for value_ns in [1_u64, 999, 1_000, 1_333, 1_334, 123_456_789, 60_000_000_000] {
            let row = f64::from(row(value_ns));
            let (low, high) = (10_f64.powf(row / 8.0), 10_f64.powf((row + 1.0) / 8.0));
            let us = value_ns as f64 / 1e3;
            assert!(low <= us * (1.0 + 1e-12) && us < high, "{low} {us} {high}");
        }
    }
}
