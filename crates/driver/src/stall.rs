//! The longest time in the window without the end of a successful transaction, from the hundredths of its intervals.

use crate::record::Record;

/// The longest stall so far.
pub(crate) struct Stall {
    /// Length of a hundredth of an interval.
    hundredth_ns: u64,
    /// Time since which no transaction has ended; none before the window.
    since_ns: Option<u64>,
    /// End of the last interval.
    until_ns: u64,
    longest_ns: u64,
}

impl Stall {
    pub(crate) fn new(hundredth_ns: u64) -> Self {
        Self { hundredth_ns, since_ns: None, until_ns: 0, longest_ns: 0 }
    }

    /// Adds the next interval of the window, of all threads. Without any transaction, an interval may be missing.
    pub(crate) fn add(&mut self, record: &Record) {
        let mut since_ns = *self.since_ns.get_or_insert(record.start_ns);
        for hundredth in (0..u128::BITS).filter(|bit| record.hundredths >> bit & 1 == 1) {
            let start_ns = record.start_ns + u64::from(hundredth) * self.hundredth_ns;
            self.longest_ns = self.longest_ns.max(start_ns.saturating_sub(since_ns));
            since_ns = (start_ns + self.hundredth_ns).min(record.end_ns);
        }
        self.since_ns = Some(since_ns);
        self.until_ns = self.until_ns.max(record.end_ns);
    }

    /// Its length in microseconds; none if there was no window.
    pub(crate) fn longest_us(&self) -> Option<u64> {
        let last_ns = self.until_ns.saturating_sub(self.since_ns?);
        Some(self.longest_ns.max(last_ns) / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(records: &[(u64, u64, u128)]) -> Option<u64> {
        let mut stall = Stall::new(10_000_000);
        for (start_ms, end_ms, hundredths) in records {
            let mut record = Record::new(&[]).unwrap();
            (record.start_ns, record.end_ns) = (start_ms * 1_000_000, end_ms * 1_000_000);
            record.hundredths = *hundredths;
            stall.add(&record);
        }
        stall.longest_us()
    }

    #[test]
    fn a_stall_may_span_intervals_and_touch_the_ends_of_the_window() {
        let all = (1 << 100) - 1;
        assert_eq!(longest(&[]), None);
        assert_eq!(longest(&[(0, 1000, all), (1000, 2000, all)]), Some(0));
        // From 0.5 s of the first interval to 0.25 s of the third, whatever is between.
        let halves = [(0, 1000, (1 << 50) - 1), (1000, 2000, 0), (2000, 3000, all & !((1 << 25) - 1))];
        assert_eq!(longest(&halves), Some(1_750_000));
        assert_eq!(longest(&[halves[0], halves[2]]), Some(1_750_000), "an empty interval is not reported");
        assert_eq!(longest(&[(500, 1500, 1 << 99)]), Some(990_000), "from the start of the window");
        assert_eq!(longest(&[(500, 1500, 1), (1500, 1700, 0)]), Some(1_190_000), "to its end");
    }
}
