//! One thread's counting: into the record of the running interval, which is handed over at the interval's end.

use std::sync::mpsc::{Receiver, Sender};

use model::message::Phase;

use crate::error::LoadError;
use crate::event::Event;
use crate::record::Record;
use crate::schedule::Schedule;

/// Counts what happens in one thread. Times are those of the monotonic clock, and never go back.
pub(crate) struct Recorder {
    thread: usize,
    schedule: Schedule,
    /// When the load began.
    origin_ns: u64,
    /// When the running interval ends.
    boundary_ns: u64,
    record: Box<Record>,
    scripts: usize,
    /// Brings back records that have been read.
    spare: Receiver<Box<Record>>,
    events: Sender<Event>,
}

impl Recorder {
    pub(crate) fn new(
        thread: usize,
        schedule: Schedule,
        origin_ns: u64,
        scripts: usize,
        events: Sender<Event>,
        spare: Receiver<Box<Record>>,
    ) -> Result<Self, LoadError> {
        let record = Box::new(Record::new(scripts)?);
        let mut recorder =
            Self { thread, schedule, origin_ns, boundary_ns: 0, record, scripts, spare, events };
        recorder.open(0);
        Ok(recorder)
    }

    /// The phase of the running interval.
    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        self.record.phase
    }

    /// When the running interval ends.
    #[inline]
    pub(crate) fn boundary_ns(&self) -> u64 {
        self.boundary_ns
    }

    /// When the drain began, or is planned to.
    pub(crate) fn drain_start_ns(&self) -> u64 {
        self.origin_ns + self.schedule.drain_start_ns()
    }

    /// Time after the load's start, in microseconds.
    pub(crate) fn since_start_us(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.origin_ns) / 1_000
    }

    /// A wait for sockets is over.
    #[inline]
    pub(crate) fn waited(&mut self, from_ns: u64, now_ns: u64) -> Result<(), LoadError> {
        let mut from_ns = from_ns;
        while now_ns >= self.boundary_ns {
            self.record.waited_ns += self.boundary_ns.saturating_sub(from_ns);
            from_ns = from_ns.max(self.boundary_ns);
            self.roll()?;
        }
        self.record.waited_ns += now_ns - from_ns;
        Ok(())
    }

    /// A response was handled that had been announced at `woken_ns`.
    #[inline]
    pub(crate) fn handled(&mut self, woken_ns: u64, now_ns: u64) -> Result<(), LoadError> {
        while now_ns >= self.boundary_ns {
            self.roll()?;
        }
        self.record.lag.add(now_ns.saturating_sub(woken_ns));
        Ok(())
    }

    /// A transaction has succeeded just now, that is, at the last [`handled`](Self::handled).
    #[inline]
    pub(crate) fn succeeded(&mut self, script: usize, latency_ns: u64) {
        self.record.scripts[script].latency.saturating_record(latency_ns);
    }

    /// A transaction has failed.
    pub(crate) fn failed(&mut self, script: usize) {
        self.record.scripts[script].failed += 1;
    }

    /// Begins the drain now. False if it has begun already, as planned.
    pub(crate) fn stop(&mut self, now_ns: u64) -> Result<bool, LoadError> {
        while now_ns >= self.boundary_ns {
            self.roll()?;
        }
        if self.record.phase == Phase::Drain {
            return Ok(false);
        }
        let end_ns = now_ns.saturating_sub(self.origin_ns);
        self.schedule.stop_at(end_ns);
        self.hand_over(end_ns)?;
        self.open(self.schedule.first_of_drain());
        Ok(true)
    }

    /// Hands over the running interval: nothing more will happen.
    pub(crate) fn finish(&mut self, now_ns: u64) -> Result<(), LoadError> {
        while now_ns >= self.boundary_ns {
            self.roll()?;
        }
        self.hand_over(now_ns.saturating_sub(self.origin_ns))
    }

    fn roll(&mut self) -> Result<(), LoadError> {
        let next = self.record.number + 1;
        self.hand_over(self.boundary_ns - self.origin_ns)?;
        self.open(next);
        Ok(())
    }

    fn open(&mut self, number: u64) {
        let interval = self.schedule.interval(number);
        self.record.number = number;
        self.record.phase = interval.phase;
        self.record.start_ns = interval.start_ns;
        self.boundary_ns = self.origin_ns.saturating_add(interval.end_ns);
    }

    #[cold]
    fn hand_over(&mut self, end_ns: u64) -> Result<(), LoadError> {
        let empty = match self.spare.try_recv() {
            Ok(record) => record,
            Err(_) => Box::new(Record::new(self.scripts)?),
        };
        let mut record = std::mem::replace(&mut self.record, empty);
        record.end_ns = end_ns.max(record.start_ns);
        let width_ns = record.end_ns - record.start_ns;
        if width_ns > 0 {
            record.busy = (1.0 - record.waited_ns as f64 / width_ns as f64).clamp(0.0, 1.0);
        }
        // Nobody listens any more only where the process is about to end.
        let _ = self.events.send(Event::Record { thread: self.thread, record });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const ORIGIN_NS: u64 = 1_000_000;

    /// What a recorder hands over: number, phase, span, transactions, and busy share in percent.
    type HandedOver = (u64, Phase, u64, u64, u64, i32);

    /// Has a recorder of 20 ns warm-up and 30 ns window, by intervals of 10 ns, count something.
    fn handed_over(count: impl FnOnce(&mut Recorder)) -> Vec<HandedOver> {
        let (events, heard) = channel();
        let schedule = Schedule::of_ns(20, 50, 10);
        let mut recorder = Recorder::new(0, schedule, ORIGIN_NS, 1, events, channel().1).unwrap();
        count(&mut recorder);
        drop(recorder);
        heard
            .iter()
            .map(|event| match event {
                Event::Record { record: r, .. } => {
                    let transactions = r.scripts[0].latency.len();
                    (r.number, r.phase, r.start_ns, r.end_ns, transactions, (r.busy * 100.0).round() as i32)
                }
                _ => panic!("not a record"),
            })
            .collect()
    }

    #[test]
    fn a_transaction_belongs_to_the_interval_in_which_it_ended() {
        let records = handed_over(|recorder| {
            for end_ns in [9, 10, 19, 20, 49, 50] {
                recorder.handled(ORIGIN_NS, ORIGIN_NS + end_ns).unwrap();
                recorder.succeeded(0, 5);
            }
            assert_eq!(recorder.phase(), Phase::Drain);
            recorder.finish(ORIGIN_NS + 53).unwrap();
        });
        let transactions: Vec<_> = records.iter().map(|r| (r.0, r.1, r.2, r.3, r.4)).collect();
        assert_eq!(
            transactions,
            [
                (0, Phase::Warmup, 0, 10, 1),
                (1, Phase::Warmup, 10, 20, 2),
                (2, Phase::Measure, 20, 30, 1),
                (3, Phase::Measure, 30, 40, 0),
                (4, Phase::Measure, 40, 50, 1),
                (5, Phase::Drain, 50, 53, 1),
            ]
        );
    }

    #[test]
    fn a_wait_is_shared_out_among_the_intervals_it_touches() {
        let records = handed_over(|recorder| {
            recorder.waited(ORIGIN_NS + 5, ORIGIN_NS + 22).unwrap();
            recorder.finish(ORIGIN_NS + 30).unwrap();
        });
        let busy: Vec<_> = records.iter().map(|r| (r.0, r.5)).collect();
        assert_eq!(busy, [(0, 50), (1, 0), (2, 80), (3, 0)]);
    }

    #[test]
    fn a_stop_ends_the_interval_and_begins_the_drain() {
        let records = handed_over(|recorder| {
            assert!(recorder.stop(ORIGIN_NS + 13).unwrap());
            assert_eq!(recorder.drain_start_ns(), ORIGIN_NS + 13);
            assert!(!recorder.stop(ORIGIN_NS + 14).unwrap());
            recorder.finish(ORIGIN_NS + 15).unwrap();
        });
        let spans: Vec<_> = records.iter().map(|r| (r.0, r.1, r.2, r.3)).collect();
        assert_eq!(spans, [(0, Phase::Warmup, 0, 10), (1, Phase::Warmup, 10, 13), (5, Phase::Drain, 13, 15)]);
    }
}
