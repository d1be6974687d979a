//! Counts of one thread, in the record of the current interval, which is handed over at the interval's end.

use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use model::message::Phase;

use crate::client::Failure;
use crate::clock;
use crate::error::LoadError;
use crate::event::Event;
use crate::load::{DEADLOCK_DETECTED, OnError, SERIALIZATION_FAILURE};
use crate::record::{Intended, Record, ScriptRecord, Shape, TransactionSpan};
use crate::schedule::Schedule;

/// Counts the events of one thread. Times are those of the monotonic clock and never decrease.
pub(crate) struct Recorder {
    thread: usize,
    schedule: Schedule,
    /// Start of the load.
    origin_ns: u64,
    /// End of the current interval.
    boundary_ns: u64,
    record: Box<Record>,
    shapes: Arc<[Shape]>,
    late_ns: u64,
    /// CPU time of the thread at the start of the current interval.
    cpu_ns: u64,
    /// Those that were to start in the window, by script of the main group; empty in a closed loop.
    intended: Vec<Intended>,
    /// Receives records for reuse.
    spare: Receiver<Box<Record>>,
    events: Sender<Event>,
}

/// A successful transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Success {
    pub(crate) script: usize,
    pub(crate) intended_ns: u64,
    /// From the intended start.
    pub(crate) latency_ns: u64,
    /// From the intended to the actual start.
    pub(crate) start_lag_ns: u64,
    pub(crate) rows: u64,
    pub(crate) tries: u32,
}

impl Recorder {
    /// `late_ns` is the latency beyond which a transaction is late; `open_scripts` the number of scripts of the main
    /// group if it is an open loop, else 0.
    #[expect(clippy::too_many_arguments, reason = "the parts of a thread")]
    pub(crate) fn new(
        thread: usize,
        schedule: Schedule,
        origin_ns: u64,
        shapes: Arc<[Shape]>,
        late_ns: Option<u64>,
        open_scripts: usize,
        events: Sender<Event>,
        spare: Receiver<Box<Record>>,
    ) -> Result<Self, LoadError> {
        let record = Box::new(Record::new(&shapes)?);
        let late_ns = late_ns.unwrap_or(u64::MAX);
        let intended = (0..open_scripts).map(|_| Intended::new()).collect::<Result<_, _>>()?;
        let mut recorder = Self {
            thread,
            schedule,
            origin_ns,
            boundary_ns: 0,
            record,
            shapes,
            late_ns,
            cpu_ns: clock::thread_cpu_ns(),
            intended,
            spare,
            events,
        };
        recorder.open(0);
        Ok(recorder)
    }

    /// Phase of the current interval.
    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        self.record.phase
    }

    /// End of the current interval.
    #[inline]
    pub(crate) fn boundary_ns(&self) -> u64 {
        self.boundary_ns
    }

    /// End of the load: the planned one, or that of a stop.
    pub(crate) fn end_ns(&self) -> u64 {
        self.origin_ns.saturating_add(self.schedule.drain_start_ns())
    }

    /// Records a wait for sockets that has ended.
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

    /// Start of the load.
    pub(crate) fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Advances to `now_ns`: later counts belong to the interval that contains it.
    #[inline]
    pub(crate) fn advance_to(&mut self, now_ns: u64) -> Result<(), LoadError> {
        while now_ns >= self.boundary_ns {
            self.roll()?;
        }
        Ok(())
    }

    /// Records a response that was readable at `woken_ns` and has been handled.
    #[inline]
    pub(crate) fn handled(&mut self, woken_ns: u64, now_ns: u64, bytes: u64) -> Result<(), LoadError> {
        self.advance_to(now_ns)?;
        self.record.lag.add(now_ns.saturating_sub(woken_ns));
        self.record.bytes += bytes;
        Ok(())
    }

    /// Records commits reported by the server, and whether there may be more.
    #[inline]
    pub(crate) fn committed(&mut self, commits: u32, silent: bool) {
        self.record.commits += u64::from(commits);
        self.record.has_unreported_commits |= silent;
    }

    /// Records a due transaction that was begun this much later.
    #[inline]
    pub(crate) fn started_late(&mut self, ns: u64) {
        self.record.send_lag.add(ns);
    }

    /// Records a transaction that has just succeeded.
    #[inline]
    pub(crate) fn succeeded(&mut self, done: &Success) {
        let late = done.latency_ns > self.late_ns;
        let script = &mut self.record.scripts[done.script];
        script.latency.saturating_record(done.latency_ns);
        script.moments.add(done.latency_ns);
        if let Some(service) = &mut script.service {
            service.saturating_record(done.latency_ns - done.start_lag_ns);
            script.start_lag.add(done.start_lag_ns);
        }
        if let Some(intended) = self.intended.get_mut(done.script)
            && done.intended_ns >= self.origin_ns.saturating_add(self.schedule.window_start_ns())
        {
            intended.record(done.latency_ns, Some(done.latency_ns - done.start_lag_ns));
        }
        script.rows += done.rows;
        script.late += u64::from(late);
        script.count_tries(done.tries);
    }

    /// Records a transaction that will not end, if it was to start in the window of an open loop. `begun_ns`: its
    /// actual start; None if it has not started.
    pub(crate) fn unfinished(&mut self, script: usize, intended_ns: u64, begun_ns: Option<u64>, now_ns: u64) {
        if let Some(intended) = self.intended.get_mut(script)
            && intended_ns >= self.origin_ns.saturating_add(self.schedule.window_start_ns())
        {
            let service_ns = begun_ns.map(|begun_ns| now_ns.saturating_sub(begun_ns));
            intended.record(now_ns.saturating_sub(intended_ns), service_ns);
            intended.unfinished += 1;
        }
    }

    /// Takes the transactions that were to start in the window.
    pub(crate) fn take_intended(&mut self) -> Vec<Intended> {
        std::mem::take(&mut self.intended)
    }

    /// Records a failed transaction.
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
        script.count_tries(tries);
    }

    /// Records the span of a transaction that has just ended.
    #[cold]
    pub(crate) fn add_span(&mut self, script: usize, client: u32, from_ns: u64, to_ns: u64, failed: bool) {
        let start_ns = from_ns.saturating_sub(self.origin_ns);
        let end_ns = to_ns.saturating_sub(self.origin_ns).max(start_ns);
        self.record.spans.push(TransactionSpan { script, client, start_ns, end_ns, failed });
    }

    /// Records the retry of a transaction after an error.
    pub(crate) fn retried(&mut self, script: usize, error: &Failure) {
        self.record.scripts[script].error(&error.sqlstate, || error.text.clone()).retries += 1;
    }

    /// Records a transaction that was skipped because it was already late.
    pub(crate) fn skipped(&mut self, script: usize) {
        self.record.scripts[script].skipped += 1;
    }

    /// Records the latency of a command.
    #[inline]
    pub(crate) fn command(&mut self, script: usize, command: usize, ns: u64) {
        if let Some(command) = self.record.scripts[script].commands.get_mut(command) {
            command.latency.saturating_record(ns);
            command.moments.add(ns);
        }
    }

    /// Records an error of a command, after which its transaction is retried or has failed.
    pub(crate) fn command_error(&mut self, script: usize, command: usize, retry: bool) {
        if let Some(command) = self.record.scripts[script].commands.get_mut(command) {
            if retry {
                command.retries += 1;
            } else {
                command.failures += 1;
            }
        }
    }

    /// Records the time that a connection took to be ready.
    pub(crate) fn connected(&mut self, ns: u64) {
        self.record.connects.add(ns);
    }

    /// Begins the drain now. Returns false if it has already begun, as planned.
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

    /// Hands over the current interval, the last one.
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
        let mut record = mem::replace(&mut self.record, empty);
        record.end_ns = end_ns.max(record.start_ns);
        let width_ns = record.end_ns - record.start_ns;
        let cpu_ns = mem::replace(&mut self.cpu_ns, clock::thread_cpu_ns());
        record.busy = busy(width_ns, record.waited_ns, self.cpu_ns - cpu_ns);
        // Fails only if the process is about to end.
        let _ = self.events.send(Event::Record { thread: self.thread, record });
        Ok(())
    }
}

/// Share of an interval that a thread spent on work. io_uring sends in the wait for events: that is CPU time.
fn busy(width_ns: u64, waited_ns: u64, cpu_ns: u64) -> f64 {
    let worked_ns = width_ns.saturating_sub(waited_ns).max(cpu_ns).min(width_ns);
    worked_ns as f64 / width_ns.max(1) as f64
}

impl ScriptRecord {
    fn count_tries(&mut self, tries: u32) {
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

    /// A record as handed over: number, phase, start, end, transactions, and time spent waiting.
    type HandedOver = (u64, Phase, u64, u64, u64, u64);

    /// Records of a recorder with 20 ns of warm-up, a window of 30 ns and intervals of 10 ns, after `count`.
    fn handed_over(count: impl FnOnce(&mut Recorder)) -> Vec<HandedOver> {
        let (events, received) = channel();
        let schedule = Schedule::from_ns(20, 50, 10);
        let shapes = [Shape { commands: 0, service: false }].into();
        let mut recorder =
            Recorder::new(0, schedule, ORIGIN_NS, shapes, None, 0, events, channel().1).unwrap();
        count(&mut recorder);
        drop(recorder);
        received
            .iter()
            .map(|event| match event {
                Event::Record { record: r, .. } => {
                    let transactions = r.scripts[0].latency.len();
                    (r.number, r.phase, r.start_ns, r.end_ns, transactions, r.waited_ns)
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
                let done =
                    Success { script: 0, intended_ns: 0, latency_ns: 5, start_lag_ns: 0, rows: 0, tries: 1 };
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
    fn a_wait_is_divided_among_the_intervals_it_overlaps() {
        let records = handed_over(|recorder| {
            recorder.waited(ORIGIN_NS + 5, ORIGIN_NS + 22).unwrap();
            recorder.finish(ORIGIN_NS + 30).unwrap();
        });
        let waited: Vec<_> = records.iter().map(|r| (r.0, r.5)).collect();
        assert_eq!(waited, [(0, 5), (1, 10), (2, 2), (3, 0)]);
    }

    #[test]
    fn cpu_time_of_a_wait_is_work() {
        assert_eq!(busy(100, 80, 5), 0.2, "it waits for a CPU, too");
        assert_eq!(busy(100, 97, 70), 0.7, "the kernel sends in the wait");
        assert_eq!((busy(100, 0, 120), busy(0, 0, 3)), (1.0, 0.0));
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
