//! Records of several threads, merged by interval.

use std::collections::BTreeMap;

use crate::record::Record;

/// Intervals that some threads have not yet completed.
pub(crate) struct Intervals {
    pending: BTreeMap<u64, Box<Record>>,
    /// By thread, the first interval that it may still report.
    next: Vec<u64>,
}

impl Intervals {
    pub(crate) fn new(threads: usize) -> Self {
        Self { pending: BTreeMap::new(), next: vec![0; threads] }
    }

    /// Adds a thread's record; returns the box if it is no longer needed.
    pub(crate) fn add(&mut self, thread: usize, record: Box<Record>) -> Option<Box<Record>> {
        self.next[thread] = record.number + 1;
        match self.pending.get_mut(&record.number) {
            Some(sum) => {
                sum.add(&record);
                Some(record)
            }
            None => {
                self.pending.insert(record.number, record);
                None
            }
        }
    }

    /// Marks the end of a thread, which reports nothing more.
    pub(crate) fn end(&mut self, thread: usize) {
        self.next[thread] = u64::MAX;
    }

    /// The next interval that all threads have completed.
    pub(crate) fn pop_complete(&mut self) -> Option<Box<Record>> {
        let entry = self.pending.first_entry()?;
        self.next.iter().all(|next| next > entry.key()).then(|| entry.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Shape;

    fn record(number: u64, latency_ns: u64) -> Box<Record> {
        let mut record =
            Record::new(&[Shape { is_main: true, commands: 0, service: false, is_open: false }]).unwrap();
        record.number = number;
        record.scripts[0].latency.saturating_record(latency_ns);
        Box::new(record)
    }

    #[test]
    fn an_interval_is_complete_when_every_thread_has_passed_it() {
        let mut intervals = Intervals::new(2);
        assert!(intervals.add(0, record(0, 5)).is_none());
        assert!(intervals.add(0, record(1, 6)).is_none());
        assert!(intervals.pop_complete().is_none());
        assert!(intervals.add(1, record(0, 7)).is_some(), "the box is returned for reuse");
        let first = intervals.pop_complete().unwrap();
        assert_eq!((first.number, first.scripts[0].latency.len()), (0, 2));
        assert!(intervals.pop_complete().is_none());
        intervals.end(1);
        assert_eq!(intervals.pop_complete().unwrap().number, 1);
        assert!(intervals.pop_complete().is_none());
    }
}
