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
use crate::record::{Record, ScriptRecord, Shape, TransactionSpan};
use crate::schedule::{HUNDREDTHS, Schedule};

/// Counts the events of one thread. Times are those of the monotonic clock and never decrease.
pub(crate) struct Recorder {
    thread: usize,
    schedule: Schedule,
    /// Start of the load.
    origin_ns: u64,
    /// End of the current interval.
    boundary_ns: u64,
    /// End of the hundredth of an interval in which the last transaction of the main group succeeded.
    hundredth_end_ns: u64,
    record: Box<Record>,
    /// Whether a load in slices pauses.
    paused: bool,
    shapes: Arc<[Shape]>,
    late_ns: u64,
    /// CPU time of the thread at the start of the current interval.
    cpu_ns: u64,
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
        let mut recorder = Self {
            thread,
            schedule,
            origin_ns,
            boundary_ns: 0,
            hundredth_end_ns: 0,
            record,
            paused: false,
            shapes,
            late_ns,
            cpu_ns: clock::thread_cpu_ns(),
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

    /// Whether transactions may begin: neither after the end of the load nor in a pause.
    #[inline]
    pub(crate) fn admits(&self) -> bool {
        !self.paused && self.record.phase != Phase::Drain
    }

    /// Begins or ends a pause of a load in slices.
    pub(crate) fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
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

    /// Whether a transaction that was to start at this time counts in the window of an open loop.
    #[inline]
    fn is_of_window(&self, intended_ns: u64) -> bool {
        intended_ns >= self.origin_ns.saturating_add(self.schedule.window_start_ns())
    }

    /// Records a transaction that has just succeeded.
    #[inline]
    pub(crate) fn succeeded(&mut self, done: &Success) {
        let late = done.latency_ns > self.late_ns;
        let service_ns = done.latency_ns - done.start_lag_ns;
        let from_warmup = self.record.phase != Phase::Warmup && !self.is_of_window(done.intended_ns);
        let end_ns = done.intended_ns.saturating_add(done.latency_ns);
        if end_ns >= self.hundredth_end_ns && self.record.scripts[done.script].is_main {
            self.mark_hundredth(end_ns);
        }
        let script = &mut self.record.scripts[done.script];
        if from_warmup && script.is_open {
            script.add_from_warmup(done.latency_ns, service_ns);
        } else {
            script.latency.saturating_record(done.latency_ns);
            script.moments.add(done.latency_ns);
            if let Some(service) = &mut script.service {
                service.saturating_record(service_ns);
            }
        }
        if script.service.is_some() {
            script.start_lag.add(done.start_lag_ns);
        }
        script.rows += done.rows;
        script.late += u64::from(late);
        script.count_tries(done.tries);
    }

    /// Marks the hundredth of the current interval that contains the end of a transaction.
    fn mark_hundredth(&mut self, end_ns: u64) {
        let length_ns = self.schedule.hundredth_ns();
        let from_ns = self.origin_ns.saturating_add(self.record.start_ns);
        let hundredth = (end_ns.saturating_sub(from_ns) / length_ns).min(HUNDREDTHS - 1);
        self.record.hundredths |= 1 << hundredth;
        self.hundredth_end_ns = from_ns.saturating_add((hundredth + 1).saturating_mul(length_ns));
    }

    /// Records a transaction that will not end, if it was to start in the window of an open loop. `begun_ns`: its
    /// actual start; None if it has not started.
    pub(crate) fn unfinished(&mut self, script: usize, intended_ns: u64, begun_ns: Option<u64>, now_ns: u64) {
        let is_of_window = self.is_of_window(intended_ns);
        let script = &mut self.record.scripts[script];
        if is_of_window && script.is_open {
            let service_ns = begun_ns.map(|begun_ns| now_ns.saturating_sub(begun_ns));
            script.add_unfinished(now_ns.saturating_sub(intended_ns), service_ns);
        }
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
        self.hundredth_end_ns = 0;
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

    use hdrhistogram::Histogram;

    use super::*;
    use crate::record::Intended;

    const ORIGIN_NS: u64 = 1_000_000;

    /// A record as handed over: number, phase, start, end, transactions, and time spent waiting.
    type HandedOver = (u64, Phase, u64, u64, u64, u64);

    /// Records of a recorder with 20 ns of warm-up, a window of 30 ns and intervals of 10 ns, after `count`.
    fn handed_over(count: impl FnOnce(&mut Recorder)) -> Vec<HandedOver> {
        let (events, received) = channel();
        let schedule = Schedule::from_ns(20, 50, 10);
        let shapes = [Shape { is_main: true, commands: 0, service: false, is_open: false }].into();
        let mut recorder = Recorder::new(0, schedule, ORIGIN_NS, shapes, None, events, channel().1).unwrap();
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
    fn in_an_open_loop_a_latency_counts_in_the_phase_of_its_intended_start() {
        let (events, received) = channel();
        let shapes = [Shape { is_main: true, commands: 0, service: true, is_open: true }].into();
        let schedule = Schedule::from_ns(20, 40, 20);
        let mut recorder = Recorder::new(0, schedule, ORIGIN_NS, shapes, None, events, channel().1).unwrap();
        for (intended_ns, end_ns) in [(5, 15), (12, 25), (21, 30), (30, 47), (19, 48)] {
            recorder.advance_to(ORIGIN_NS + end_ns).unwrap();
            let intended_ns = ORIGIN_NS + intended_ns;
            let latency_ns = ORIGIN_NS + end_ns - intended_ns;
            recorder.succeeded(&Success {
                script: 0,
                intended_ns,
                latency_ns,
                start_lag_ns: 1,
                rows: 0,
                tries: 1,
            });
        }
        recorder.unfinished(0, ORIGIN_NS + 18, None, ORIGIN_NS + 50);
        recorder.unfinished(0, ORIGIN_NS + 33, None, ORIGIN_NS + 50);
        recorder.unfinished(0, ORIGIN_NS + 22, Some(ORIGIN_NS + 39), ORIGIN_NS + 50);
        recorder.finish(ORIGIN_NS + 50).unwrap();
        drop(recorder);
        let mut counted = Vec::new();
        let mut window = Intended::new().unwrap();
        for event in received {
            let Event::Record { record, .. } = event else { panic!("not a record") };
            let script = &record.scripts[0];
            for of_phase in script.by_phase(record.phase) {
                let values = |histogram: &Histogram<u64>| -> Vec<u64> {
                    let recorded = histogram.iter_recorded();
                    recorded
                        .flat_map(|at| vec![at.value_iterated_to(); at.count_at_value() as usize])
                        .collect()
                };
                let (latency, service) = (values(&of_phase.latency), values(&of_phase.service.unwrap()));
                counted.push((record.phase, of_phase.phase, latency, service));
            }
            assert_eq!(
                (script.succeeded(), script.unfinished()),
                match record.phase {
                    Phase::Warmup => (1, Some(0)),
                    Phase::Measure => (2, Some(0)),
                    Phase::Drain => (2, Some(2)),
                }
            );
            if record.phase != Phase::Warmup {
                window.add_interval(script);
            }
        }
        assert_eq!(
            counted,
            [
                (Phase::Warmup, Phase::Warmup, vec![10], vec![9]),
                (Phase::Measure, Phase::Measure, vec![9], vec![8]),
                (Phase::Measure, Phase::Warmup, vec![13], vec![12]),
                (Phase::Drain, Phase::Measure, vec![17, 17, 28], vec![11, 16]),
                (Phase::Drain, Phase::Warmup, vec![29], vec![28]),
            ]
        );
        assert_eq!((window.latency.len(), window.moments.max, window.unfinished), (4, 28, 2));
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
