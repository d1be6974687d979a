//! The rate to try next: doubles until a rate does not hold, then bisects, until 5 % are left.

/// The search for the highest rate that holds.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    start: f64,
    /// Throughput without a schedule: doubling stops there once.
    capacity: f64,
    /// The highest rate that held.
    held: Option<f64>,
    /// The lowest rate that did not, above `held`.
    failed: Option<f64>,
}

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    Try(f64),
    /// The highest rate that holds, within [`PRECISION`].
    Found(f64),
    /// No rate holds, down to this one.
    NotFound(f64),
}

/// Largest distance of the lowest rate that does not hold from the highest that does.
pub(crate) const PRECISION: f64 = 0.05;

/// The lowest rate to try, as a share of the first one.
const MIN_RATE_SHARE: f64 = 1.0 / 16.0;

impl Search {
    /// A search that starts at an eighth of the throughput without a schedule.
    pub(crate) fn new(capacity: f64) -> Self {
        Self { start: capacity / 8.0, capacity, held: None, failed: None }
    }

    pub(crate) fn next(&self) -> Next {
        match (self.held, self.failed) {
            (None, None) => Next::Try(self.start),
            (Some(held), None) if held < self.capacity / 1.1 && held * 2.0 > self.capacity => {
                Next::Try(self.capacity)
            }
            (Some(held), None) => Next::Try(held * 2.0),
            (None, Some(failed)) if failed / 2.0 < self.start * MIN_RATE_SHARE => Next::NotFound(failed),
            (None, Some(failed)) => Next::Try(failed / 2.0),
            (Some(held), Some(failed)) if failed <= held * (1.0 + PRECISION) => Next::Found(held),
            (Some(held), Some(failed)) => Next::Try((held + failed) / 2.0),
        }
    }

    /// Records the outcome of a rate.
    pub(crate) fn record(&mut self, rate: f64, holds: bool) {
        if holds {
            self.held = Some(rate);
        } else {
            self.failed = Some(rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcome and number of steps of a search, on a server that holds everything up to `limit`.
    fn search(capacity: f64, limit: f64) -> (Next, u32) {
        let mut search = Search::new(capacity);
        for step in 0.. {
            match search.next() {
                Next::Try(rate) => search.record(rate, rate <= limit),
                end => return (end, step),
            }
        }
        unreachable!()
    }

    #[test]
    fn the_limit_is_found_within_the_precision() {
        for limit in [13.0, 100.0, 499.0, 800.0, 999.0, 1_000.0, 5_000.0] {
            let (Next::Found(rate), steps) = search(1_000.0, limit) else { panic!("{limit}") };
            assert!(rate <= limit && limit < rate * (1.0 + PRECISION), "{limit}: {rate}");
            assert!(steps <= 12, "{limit}: {steps} steps");
        }
    }

    #[test]
    fn the_search_ends_if_no_rate_holds() {
        let (end, steps) = search(1_000.0, 0.0);
        assert!(matches!(end, Next::NotFound(rate) if rate < 16.0), "{end:?}");
        assert!(steps <= 6, "{steps}");
    }
}
