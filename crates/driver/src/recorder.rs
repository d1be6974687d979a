//! One thread's counting: into the record of the running interval, which is handed over at the interval's end.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use model::message::Phase;

use crate::client::Failure;
use crate::error::LoadError;
use crate::event::Event;
use crate::load::{DEADLOCK_DETECTED, OnError, SERIALIZATION_FAILURE};
use crate::record::{Record, ScriptRecord, Shape, TransactionSpan};
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
    shapes: Arc<[Shape]>,
    late_ns: u64,
    /// Brings back records that have been read.
    spare: Receiver<Box<Record>>,
    events: Sender<Event>,
}

/// A transaction that has succeeded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Succeeded {
    pub(crate) script: usize,
    /// From the intended start.
    pub(crate) latency_ns: u64,
    /// From the intended start to the start as it was.
    pub(crate) start_lag_ns: u64,
    pub(crate) rows: u64,
    pub(crate) tries: u32,
}

impl Recorder {
    /// `late_ns` is the latency beyond which a transaction is late.
    pub(crate) fn new(
        thread: usize,
        schedule: Schedule,
        origin_ns: u64,
        shapes: Arc<[Shape]>,
        late_ns: Option<u64>,
        events: Sender<Event>,
        spare: Receiver<Box<Record>>,
    ) -> Result<Self, LoadError> {
        let record = Box::new(Record::new(&shapes)?);
        let late_ns = late_ns.unwrap_or(u64::MAX);
        let mut recorder =
            Self { thread, schedule, origin_ns, boundary_ns: 0, record, shapes, late_ns, spare, events };
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

    /// The end of the load as planned, or as it came.
    pub(crate) fn end_ns(&self) -> u64 {
        self.origin_ns.saturating_add(self.schedule.drain_start_ns())
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

    /// When the load began.
    pub(crate) fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Time has gone on: what is counted from now on belongs to this time.
    #[inline]
    pub(crate) fn reach(&mut self, now_ns: u64) -> Result<(), LoadError> {
        while now_ns >= self.boundary_ns {
            self.roll()?;
        }
        Ok(())
    }

    /// A response was handled that had been announced at `woken_ns`.
    #[inline]
    pub(crate) fn handled(&mut self, woken_ns: u64, now_ns: u64, bytes: u64) -> Result<(), LoadError> {
        self.reach(now_ns)?;
        self.record.lag.add(now_ns.saturating_sub(woken_ns));
        self.record.bytes += bytes;
        Ok(())
    }

    /// The server has told of commits, and whether there may have been more.
    #[inline]
    pub(crate) fn committed(&mut self, commits: u32, silent: bool) {
        self.record.commits += u64::from(commits);
        self.record.silent_commits |= silent;
    }

    /// A transaction whose time had come was begun so much later.
    #[inline]
    pub(crate) fn begun_late(&mut self, ns: u64) {
        self.record.send_lag.add(ns);
    }

    /// A transaction has succeeded just now.
    #[inline]
    pub(crate) fn succeeded(&mut self, done: &Succeeded) {
        let late = done.latency_ns > self.late_ns;
        let script = &mut self.record.scripts[done.script];
        script.latency.saturating_record(done.latency_ns);
        script.moments.add(done.latency_ns);
        if let Some(service) = &mut script.service {
            service.saturating_record(done.latency_ns - done.start_lag_ns);
            script.start_lag.add(done.start_lag_ns);
        }
        script.rows += done.rows;
        script.late += u64::from(late);
        script.tried(done.tries);
    }

    /// A transaction has failed.
    pub(crate) fn failed(&mut self, script: usize, error: &Failure, tries: u32) {
        let sqlstate = error.sqlstate.as_str();
        let script = &mut self.record.scripts[script];
        script.error(sqlstate, || error.text.clone()).failed += 1;
        match sqlstate {
            _ if error.action == OnError::Abort => script.failures.other += 1,
            SERIALIZATION_FAILURE => script.failures.serialization += 1,
            DEADLOCK_DETECTED => script.failures.deadlock += 1,
            _ => script.failures.other += 1,
        }
        script.tried(tries);
    }

    /// A transaction whose span is asked for has ended just now.
    #[cold]
    pub(crate) fn spanned(&mut self, script: usize, client: u32, from_ns: u64, to_ns: u64, failed: bool) {
        let start_ns = from_ns.saturating_sub(self.origin_ns);
        let end_ns = to_ns.saturating_sub(self.origin_ns).max(start_ns);
        self.record.spans.push(TransactionSpan { script, client, start_ns, end_ns, failed });
    }

    /// A transaction is begun anew after an error.
    pub(crate) fn retried(&mut self, script: usize, error: &Failure) {
        self.record.scripts[script].error(&error.sqlstate, || error.text.clone()).retries += 1;
    }

    /// A transaction was not begun, since it was late already.
    pub(crate) fn skipped(&mut self, script: usize) {
        self.record.scripts[script].skipped += 1;
    }

    /// A command is over.
    #[inline]
    pub(crate) fn command(&mut self, script: usize, command: usize, ns: u64) {
        if let Some(command) = self.record.scripts[script].commands.get_mut(command) {
            command.latency.saturating_record(ns);
            command.moments.add(ns);
        }
    }

    /// A command had an error, and its transaction is begun anew, or has failed.
    pub(crate) fn command_error(&mut self, script: usize, command: usize, retry: bool) {
        if let Some(command) = self.record.scripts[script].commands.get_mut(command) {
            if retry {
                command.retries += 1;
            } else {
                command.failures += 1;
            }
        }
    }

    /// A connection is ready, so long after it was asked for.
    pub(crate) fn connected(&mut self, ns: u64) {
        self.record.connects.add(ns);
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
            Err(_) => Box::new(Record::new(&self.shapes)?),
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

impl ScriptRecord {
    fn tried(&mut self, tries: u32) {
        if tries > 1 {
            self.retried += 1;
            self.retries += u64::from(tries - 1);
        }
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
        let schedule = Schedule::from_ns(20, 50, 10);
        let shapes = [Shape { commands: 0, service: false }].into();
        let mut recorder = Recorder::new(0, schedule, ORIGIN_NS, shapes, None, events, channel().1).unwrap();
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
                recorder.handled(ORIGIN_NS, ORIGIN_NS + end_ns, 0).unwrap();
                let done = Succeeded { script: 0, latency_ns: 5, start_lag_ns: 0, rows: 0, tries: 1 };
                recorder.succeeded(&done);
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
            assert_eq!(recorder.end_ns(), ORIGIN_NS + 13);
            assert!(!recorder.stop(ORIGIN_NS + 14).unwrap());
            recorder.finish(ORIGIN_NS + 15).unwrap();
        });
        let spans: Vec<_> = records.iter().map(|r| (r.0, r.1, r.2, r.3)).collect();
        assert_eq!(spans, [(0, Phase::Warmup, 0, 10), (1, Phase::Warmup, 10, 13), (5, Phase::Drain, 13, 15)]);
    }
}
