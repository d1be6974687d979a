//! The rate to try next: doubles until a rate does not hold, bisects until 5 % are left, and repeats both ends.

/// The search for the highest rate that holds.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    start: f64,
    /// Throughput without a schedule: doubling stops there once.
    capacity: f64,
    runs: Vec<Run>,
}

/// A run at a rate.
#[derive(Clone, Copy, Debug)]
struct Run {
    rate: f64,
    holds: bool,
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

/// Runs of each of these two rates.
const RUNS_OF_AN_END: usize = 3;

/// Runs after which a search whose runs keep contradicting each other ends.
const MAX_RUNS: usize = 40;

impl Search {
    /// A search that starts at an eighth of the throughput without a schedule.
    pub(crate) fn new(capacity: f64) -> Self {
        Self { start: capacity / 8.0, capacity, runs: Vec::new() }
    }

    pub(crate) fn next(&self) -> Next {
        let (held, failed) = self.bracket();
        let is_last = self.runs.len() >= MAX_RUNS;
        match (held, failed) {
            (None, None) => Next::Try(self.start),
            (Some(held), _) if is_last => Next::Found(held),
            (Some(held), None) if held < self.capacity / 1.1 && held * 2.0 > self.capacity => {
                Next::Try(self.capacity)
            }
            (Some(held), None) => Next::Try(held * 2.0),
            (None, Some(failed)) if is_last || failed / 2.0 < self.start * MIN_RATE_SHARE => {
                Next::NotFound(failed)
            }
            (None, Some(failed)) => Next::Try(failed / 2.0),
            (Some(held), Some(failed)) if failed > held * (1.0 + PRECISION) => {
                Next::Try((held + failed) / 2.0)
            }
            (Some(held), Some(failed)) => {
                let repeat = [failed, held].into_iter().find(|rate| self.needs_repeat(*rate));
                repeat.map_or(Next::Found(held), Next::Try)
            }
        }
    }

    /// Records the outcome of a run.
    pub(crate) fn record(&mut self, rate: f64, holds: bool) {
        self.runs.push(Run { rate, holds });
    }

    /// Between which rates the highest one lies that holds: up to the first all runs held, and from the second on all
    /// failed. The closer to each other, the fewer runs contradict each other.
    pub(crate) fn interval(&self) -> (Option<f64>, Option<f64>) {
        let rates = |holds: bool| self.runs.iter().filter(move |run| run.holds == holds).map(|run| run.rate);
        let lowest_failed = rates(false).fold(f64::INFINITY, f64::min);
        let highest_held = rates(true).fold(0.0, f64::max);
        let low = rates(true).filter(|rate| *rate < lowest_failed).reduce(f64::max);
        let high = rates(false).filter(|rate| *rate > highest_held).reduce(f64::min);
        (low, high)
    }

    /// The highest rate that held below the lowest that did not, each by the majority of its runs; undecided ones did
    /// not.
    fn bracket(&self) -> (Option<f64>, Option<f64>) {
        let rates =
            |holds: bool| self.runs.iter().map(|run| run.rate).filter(move |rate| self.holds(*rate) == holds);
        let failed = rates(false).reduce(f64::min);
        let held = rates(true).filter(|rate| failed.is_none_or(|failed| *rate < failed)).reduce(f64::max);
        (held, failed)
    }

    fn holds(&self, rate: f64) -> bool {
        let (held, failed) = self.counts(rate);
        held > failed
    }

    fn needs_repeat(&self, rate: f64) -> bool {
        let (held, failed) = self.counts(rate);
        held + failed < RUNS_OF_AN_END
    }

    /// Runs of a rate that held, and that failed.
    fn counts(&self, rate: f64) -> (usize, usize) {
        let held = self.runs.iter().filter(|run| run.rate == rate && run.holds).count();
        (held, self.runs.iter().filter(|run| run.rate == rate).count() - held)
    }
}

#[cfg(test)]
mod tests {
    use script::RandomState;

    use super::*;

    /// Outcome and number of steps of a search on a server that holds a rate if `holds`.
    fn search(capacity: f64, mut holds: impl FnMut(f64) -> bool) -> (Search, Next, usize) {
        let mut search = Search::new(capacity);
        loop {
            match search.next() {
                Next::Try(rate) => search.record(rate, holds(rate)),
                end => {
                    let steps = search.runs.len();
                    return (search, end, steps);
                }
            }
        }
    }

    #[test]
    fn the_limit_is_found_within_the_precision() {
        for limit in [13.0, 100.0, 499.0, 800.0, 999.0, 1_000.0, 5_000.0] {
            let (search, end, steps) = search(1_000.0, |rate| rate <= limit);
            let Next::Found(rate) = end else { panic!("{limit}: {end:?}") };
            assert!(rate <= limit && limit < rate * (1.0 + PRECISION), "{limit}: {rate}");
            let (low, high) = search.interval();
            assert_eq!(low, Some(rate));
            assert!(high.is_some_and(|high| limit < high && high <= rate * (1.0 + PRECISION)), "{high:?}");
            assert!(steps <= 16, "{limit}: {steps} steps");
        }
    }

    #[test]
    fn the_search_ends_if_no_rate_holds() {
        let (_, end, steps) = search(1_000.0, |_| false);
        assert!(matches!(end, Next::NotFound(rate) if rate < 16.0), "{end:?}");
        assert!(steps <= 6, "{steps}");
    }

    #[test]
    fn one_disturbed_run_does_not_decide() {
        // Each of the runs fails once, whatever its rate.
        for disturbed in 4..12 {
            let mut run = 0;
            let (search, end, _) = search(1_000.0, |rate| {
                run += 1;
                rate <= 800.0 && run != disturbed
            });
            let Next::Found(rate) = end else { panic!("{disturbed}: {end:?}") };
            let (low, high) = search.interval();
            assert!(rate <= 800.0 && high.is_none_or(|high| high > 800.0), "{disturbed}: {rate} {high:?}");
            assert!(low.is_none_or(|low| low <= 800.0), "{disturbed}: {low:?}");
        }
    }

    /// The nearer a rate is to the limit, the more its runs are a matter of chance.
    #[test]
    fn the_interval_of_a_noisy_server_contains_its_limit() {
        const SEED: u64 = 5;
        eprintln!("seed {SEED}");
        let mut random = RandomState::from_seed(SEED);
        for (noise, least) in [(0.02, 980), (0.05, 930), (0.1, 840)] {
            let (mut contained, mut near) = (0, 0);
            for _ in 0..1_000 {
                let mut limit = || 800.0 * (1.0 - noise + 2.0 * noise * random.f64());
                let (search, end, _) = search(1_000.0, |rate| rate <= limit());
                let (low, high) = search.interval();
                contained += u32::from(low.unwrap_or(0.0) <= 800.0 && high.unwrap_or(f64::INFINITY) >= 800.0);
                near += u32::from(matches!(end, Next::Found(rate) if (720.0..=880.0).contains(&rate)));
            }
            assert!(contained >= least && near >= 900, "{noise}: {contained} {near}");
        }
    }
}
