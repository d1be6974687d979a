//! Turns of a load in slices, and the counts of a slice.

use std::sync::mpsc::Receiver;

use model::message::Slice;

/// Start or end of a slice, sent to each thread; times are the same in all.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// A slice begins.
    Resume { at_ns: u64 },
    /// It ends: no further transaction begins.
    Pause { at_ns: u64 },
}

/// Counts of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SliceCounts {
    transactions: u64,
    failed: u64,
    guarded: u64,
    client_ns: u64,
    latency_ns: u64,
    service_ns: u64,
    end_ns: u64,
}

impl SliceCounts {
    fn add(&mut self, other: &Self) {
        self.transactions += other.transactions;
        self.failed += other.failed;
        self.guarded += other.guarded;
        self.client_ns += other.client_ns;
        self.latency_ns += other.latency_ns;
        self.service_ns += other.service_ns;
        self.end_ns = self.end_ns.max(other.end_ns);
    }
}

/// A transaction that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Its client's place in the thread.
    pub(crate) client: usize,
    pub(crate) is_main: bool,
    pub(crate) is_open_loop: bool,
    pub(crate) intended_ns: u64,
    pub(crate) begun_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) failed: bool,
}

/// The turns of one thread.
pub(crate) struct Turns {
    received: Receiver<Turn>,
    guard_ns: u64,
    /// Start of the last slice.
    start_ns: u64,
    /// Start of the pause; None in a slice. The time before the first slice is a pause too.
    paused_ns: Option<u64>,
    /// Whether transactions of the last slice may be running, also after its pause.
    in_slice: bool,
    /// The clients before this one are idle until the next slice; after the pause.
    pub(crate) idle: usize,
    counts: SliceCounts,
    /// By client, the end of its last counted transaction in the slice; 0 before.
    ends_ns: Vec<u64>,
}

impl Turns {
    pub(crate) fn new(received: Receiver<Turn>, guard_ns: u64, clients: usize, origin_ns: u64) -> Self {
        Self {
            received,
            guard_ns,
            start_ns: origin_ns,
            paused_ns: Some(origin_ns),
            in_slice: false,
            idle: 0,
            counts: SliceCounts::default(),
            ends_ns: vec![0; clients],
        }
    }

    /// The next turn that has arrived.
    pub(crate) fn next(&self) -> Option<Turn> {
        self.received.try_recv().ok()
    }

    /// Begins a slice. Returns the length of the pause before it.
    pub(crate) fn resume(&mut self, at_ns: u64) -> u64 {
        self.start_ns = at_ns;
        self.in_slice = true;
        self.counts = SliceCounts::default();
        self.ends_ns.fill(0);
        at_ns.saturating_sub(self.paused_ns.take().unwrap_or(at_ns))
    }

    /// Ends the slice, whose transactions may still run.
    pub(crate) fn pause(&mut self, at_ns: u64) {
        self.paused_ns = Some(at_ns);
        self.idle = 0;
    }

    /// Start of the pause; None in a slice.
    pub(crate) fn paused_ns(&self) -> Option<u64> {
        self.paused_ns
    }

    /// Start of the pause if transactions of the slice before it may still be running.
    pub(crate) fn pausing_since_ns(&self) -> Option<u64> {
        self.paused_ns.filter(|_| self.in_slice)
    }

    /// Counts a transaction that has ended.
    pub(crate) fn count(&mut self, ended: &Ended) {
        self.counts.end_ns = self.counts.end_ns.max(ended.end_ns);
        if !ended.is_main {
            return;
        }
        // In a closed loop a client begins with the connection, if each transaction has its own.
        let from_ns = if ended.is_open_loop { ended.begun_ns } else { ended.intended_ns };
        if from_ns < self.start_ns.saturating_add(self.guard_ns) {
            self.counts.guarded += 1;
            return;
        }
        let last_ns = &mut self.ends_ns[ended.client];
        let client_from_ns = if *last_ns == 0 { from_ns } else { *last_ns };
        self.counts.client_ns += ended.end_ns.saturating_sub(client_from_ns);
        *last_ns = ended.end_ns;
        if ended.failed {
            self.counts.failed += 1;
            return;
        }
        self.counts.transactions += 1;
        self.counts.latency_ns += ended.end_ns.saturating_sub(ended.intended_ns);
        self.counts.service_ns += ended.end_ns.saturating_sub(ended.begun_ns);
    }

    /// Takes the counts of the slice, whose transactions have ended; None if they have been taken.
    pub(crate) fn end_slice(&mut self) -> Option<SliceCounts> {
        self.in_slice.then(|| {
            self.in_slice = false;
            self.counts
        })
    }
}

/// The slice of all threads.
pub(crate) struct RunningSlice {
    start_ns: u64,
    pause_ns: Option<u64>,
    /// By thread, whether its transactions may be running.
    running: Vec<bool>,
    counts: SliceCounts,
}

impl RunningSlice {
    pub(crate) fn new(start_ns: u64, running: Vec<bool>) -> Self {
        Self { start_ns, pause_ns: None, running, counts: SliceCounts::default() }
    }

    /// Ends it now, if it has not been ended. Returns whether it had not.
    pub(crate) fn pause(&mut self, now_ns: u64) -> bool {
        let runs = self.pause_ns.is_none();
        self.pause_ns.get_or_insert(now_ns);
        runs
    }

    /// Adds the counts of a thread.
    pub(crate) fn add(&mut self, counts: &SliceCounts) {
        self.counts.add(counts);
    }

    /// Marks a thread as one whose transactions have ended.
    pub(crate) fn end(&mut self, thread: usize) {
        if let Some(running) = self.running.get_mut(thread) {
            *running = false;
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        !self.running.contains(&true)
    }

    /// Its figures, in a load that began at `origin_ns`.
    pub(crate) fn figures(&self, origin_ns: u64, is_open_loop: bool, now_ns: u64) -> Slice {
        let us = |ns: u64| ns.saturating_sub(origin_ns) / 1_000;
        let counts = &self.counts;
        Slice {
            start_us: us(self.start_ns),
            pause_us: us(self.pause_ns.unwrap_or(now_ns)),
            end_us: us(counts.end_ns.max(self.start_ns)),
            transactions: counts.transactions,
            failed: counts.failed,
            guarded: counts.guarded,
            client_us: counts.client_ns / 1_000,
            latency_us: counts.latency_ns / 1_000,
            service_us: is_open_loop.then_some(counts.service_ns / 1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn turns() -> Turns {
        Turns::new(channel().1, 10, 2, 1_000)
    }

    fn ended(client: usize, begun_ns: u64, end_ns: u64) -> Ended {
        Ended {
            client,
            is_main: true,
            is_open_loop: false,
            intended_ns: begun_ns,
            begun_ns,
            end_ns,
            failed: false,
        }
    }

    #[test]
    fn a_clients_time_is_from_its_first_begin_after_the_guard_to_its_last_end() {
        let mut turns = turns();
        assert_eq!(turns.resume(1_500), 500, "the pause since the load's start");
        for transaction in [ended(0, 1_500, 1_512), ended(0, 1_512, 1_520), ended(1, 1_509, 1_600)] {
            turns.count(&transaction);
        }
        turns.count(&Ended { failed: true, ..ended(0, 1_521, 1_530) });
        turns.count(&Ended { is_main: false, ..ended(1, 1_521, 1_700) });
        turns.pause(1_550);
        assert_eq!(turns.pausing_since_ns(), Some(1_550));
        let counts = turns.end_slice().unwrap();
        let expected = SliceCounts {
            transactions: 1,
            failed: 1,
            guarded: 2,
            client_ns: 18,
            latency_ns: 8,
            service_ns: 8,
            end_ns: 1_700,
        };
        assert_eq!(counts, expected);
        assert_eq!((turns.end_slice(), turns.pausing_since_ns()), (None, None));
        assert_eq!((turns.resume(1_800), turns.counts), (250, SliceCounts::default()));
    }

    #[test]
    fn an_open_loop_has_latencies_from_both_starts() {
        let mut turns = turns();
        turns.resume(2_000);
        // Was due before the pause, and began after the guard.
        turns.count(&Ended { intended_ns: 1_900, is_open_loop: true, ..ended(0, 2_020, 2_025) });
        let counts = turns.end_slice().unwrap();
        assert_eq!((counts.latency_ns, counts.service_ns, counts.client_ns), (125, 5, 5));
    }

    #[test]
    fn a_slice_has_ended_when_every_thread_has() {
        let mut slice = RunningSlice::new(5_000, vec![true, true]);
        assert!(slice.pause(9_000) && !slice.pause(9_500));
        slice.add(&SliceCounts { transactions: 1, end_ns: 9_200, ..SliceCounts::default() });
        slice.end(0);
        assert!(!slice.has_ended());
        slice.add(&SliceCounts { transactions: 2, end_ns: 9_100, ..SliceCounts::default() });
        slice.end(1);
        assert!(slice.has_ended());
        let figures = slice.figures(1_000, false, 0);
        assert_eq!((figures.start_us, figures.pause_us, figures.end_us), (4, 8, 8));
        assert_eq!((figures.transactions, figures.service_us), (3, None));
    }
}
