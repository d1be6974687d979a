//! Runs a load: starts the threads, merges their records, and notifies the observer.

use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use model::message::Phase;
use model::record::ClockReading;
use script::RandomState;

use crate::arrivals::{SharedSlots, Slots};
use crate::clock;
use crate::connect::Server;
use crate::control::Control;
use crate::error::LoadError;
use crate::event::Event;
use crate::intervals::Intervals;
use crate::io::Waker;
use crate::limits;
use crate::load::Load;
use crate::observer::{EngineUsed, Observer, Outcome};
use crate::program::Program;
use crate::record::{Intended, Record, Shape};
use crate::schedule::Schedule;
use crate::stop::Stop;
use crate::turns::{RunningSlice, Turn};
use crate::worker::Worker;

/// Runs a load to its end and notifies the observer.
///
/// # Errors
/// The load cannot be run or cannot continue. Its threads may then keep running until the process ends.
pub fn run(load: Load, control: Control, observer: &mut dyn Observer) -> Result<Outcome, LoadError> {
    check(&load)?;
    let threads = load.own_threads();
    limits::raise_file_limit(load.clients(), threads.len() as u32)?;
    let program = Arc::new(Program::new(&load)?);
    let mut random = RandomState::from_seed(clock::now_ns());
    let mut random_below = |bound: usize| random.range_i64(0, bound as i64 - 1) as usize;
    let server = Arc::new(Server::resolve(&load.connection, &mut random_below)?);
    let servers = load.groups().map(|group| match &group.connection {
        None => Ok(Arc::clone(&server)),
        Some(other) => Server::resolve(other, &mut random_below).map(Arc::new),
    });
    let servers: Arc<[Arc<Server>]> = servers.collect::<Result<_, _>>()?;
    let schedule = Schedule::new(&load);
    let shapes: Arc<[Shape]> = program.shapes(&load).into();
    let load = Arc::new(load);
    let intended = match load.main.arrivals.is_open() {
        true => load.main.scripts.iter().map(|_| Intended::new()).collect::<Result<_, _>>()?,
        false => Vec::new(),
    };
    let mut engine = Engine {
        events: control.events,
        observer,
        workers: Vec::new(),
        stop: Arc::new(Stop::default()),
        intervals: Intervals::new(threads.len()),
        progress: Progress { background_missed: vec![0; load.background.len()], ..Progress::default() },
        intended,
        engine_used: None,
        background: Vec::new(),
        window_start_ns: schedule.window_start_ns(),
        window_end_ns: 0,
        start_at_ns: None,
        start_ns: None,
        slice: None,
        in_slices: load.slice_guard.is_some(),
        awaits_start: load.awaits_start,
        is_open_loop: load.main.arrivals.is_open(),
    };
    let connect_from_ns = clock::now_ns();
    let slots = Arc::new(slots(&load)?);
    for (thread, clients) in distribute_clients(&program, threads.len()).into_iter().enumerate() {
        let (start_sender, start) = channel();
        let (turn_sender, turns) = channel();
        let (spare_sender, spare) = channel();
        let waker = Waker::new()?;
        engine.workers.push(WorkerHandle {
            stop: Arc::clone(&engine.stop),
            waker: waker.clone(),
            start: start_sender,
            turns: turn_sender,
            drained: false,
            spare: spare_sender,
        });
        let Some(mut seeds) = load.seeds.threads.get(threads.start as usize + thread).cloned() else {
            return Err(too_few_seeds());
        };
        // Pauses have a random state of their own, so that scripts draw the same numbers as in pgbench.
        let pauses = RandomState::from_seed(seeds.throttle.next_u64());
        spawn(Worker {
            thread,
            load: Arc::clone(&load),
            servers: Arc::clone(&servers),
            program: Arc::clone(&program),
            schedule,
            shapes: Arc::clone(&shapes),
            clients,
            slots: Arc::clone(&slots),
            choose: seeds.choose,
            sample: seeds.sample,
            pauses,
            stop: Arc::clone(&engine.stop),
            waker,
            start,
            turns,
            spare,
            events: control.sender.clone(),
        })?;
    }
    engine.run(connect_from_ns, &load)
}

/// The intended starts of each group, on this host of one schedule for all.
fn slots(load: &Load) -> Result<SharedSlots, LoadError> {
    let mut random = load.seeds.threads.first().ok_or_else(too_few_seeds)?.throttle.clone();
    let groups = load.groups().map(|group| {
        // Background workloads have a random state of their own, too.
        let theirs = RandomState::from_seed(random.clone().next_u64());
        Slots::new(&group.arrivals, mem::replace(&mut random, theirs))
            .sharing(load.part.arrivals_of_others(group.clients))
    });
    Ok(SharedSlots::new(groups.collect(), load.own_threads().len()))
}

/// Threads and stoppers hold senders: without any, no further event can arrive.
fn no_report() -> LoadError {
    LoadError::Internal("all threads ended without a report".to_owned())
}

fn too_few_seeds() -> LoadError {
    LoadError::Internal("there are fewer seeds than threads".to_owned())
}

fn check(load: &Load) -> Result<(), LoadError> {
    let invalid = |what: &str| Err(LoadError::Invalid(what.to_owned()));
    let clients = load.clients();
    match load {
        _ if load.groups().any(|group| group.clients == 0) => invalid("a group has no clients"),
        Load { threads: 0, .. } => invalid("there are no threads"),
        _ if load.part.clients(load.main.clients).is_empty() => invalid("there are more hosts than clients"),
        _ if load.own_threads().len() > clients as usize => invalid("there are more threads than clients"),
        Load { length: Some(Duration::ZERO), .. } => invalid("the measured window is empty"),
        Load { length: None, .. } if load.groups().any(|group| group.transactions.is_none()) => {
            invalid("it has neither a duration nor a number of transactions")
        }
        Load { interval: Duration::ZERO, .. } => invalid("the interval is 0"),
        _ if load.groups().any(|group| group.scripts.iter().all(|script| script.weight == 0)) => {
            invalid("no script has a weight above 0")
        }
        Load { seeds, .. } if seeds.clients.len() < load.clients_of_all_hosts() as usize => {
            invalid("there are fewer seeds than clients")
        }
        _ => Ok(()),
    }
}

/// Distributes the clients over the threads: the numbers of each thread's clients, by group.
fn distribute_clients(program: &Program, threads: usize) -> Vec<Vec<Range<u32>>> {
    let mut threads = vec![Vec::new(); threads];
    for group in &program.groups {
        // The first group as in pgbench; the others beginning with the threads that have the fewest.
        let Range { start: mut first, end } = group.numbers;
        let mut left = end - first;
        let mut order: Vec<usize> = (0..threads.len()).collect();
        let count = |clients: &[Range<u32>]| clients.iter().map(ExactSizeIterator::len).sum::<usize>();
        order.sort_by_key(|thread| count(&threads[*thread]));
        for (index, thread) in order.iter().enumerate() {
            let count = left.div_ceil((order.len() - index) as u32);
            threads[*thread].push(first..first + count);
            first += count;
            left -= count;
        }
    }
    threads
}

/// Starts a thread, which reports a failure even if it panics.
fn spawn(worker: Worker) -> Result<(), LoadError> {
    let events = worker.events.clone();
    let name = format!("driver-{}", worker.thread);
    let body = move || {
        let error = match catch_unwind(AssertUnwindSafe(|| worker.run())) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(_) => LoadError::Internal("a thread panicked, see its message above".to_owned()),
        };
        let _ = events.send(Event::Failed(error));
    };
    thread::Builder::new().name(name).spawn(body).map(drop).map_err(LoadError::Thread)
}

/// The main thread's handle of a worker, which stops when it is dropped.
struct WorkerHandle {
    stop: Arc<Stop>,
    waker: Waker,
    start: Sender<u64>,
    turns: Sender<Turn>,
    /// Whether its last transaction has ended.
    drained: bool,
    spare: Sender<Box<Record>>,
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.stop.request();
        self.waker.wake();
    }
}

struct Engine<'a> {
    events: Receiver<Event>,
    observer: &'a mut dyn Observer,
    workers: Vec<WorkerHandle>,
    stop: Arc<Stop>,
    intervals: Intervals,
    progress: Progress,
    /// See [`Outcome::intended`].
    intended: Vec<Intended>,
    engine_used: Option<EngineUsed>,
    /// Process ids of the backends of clients outside the main group.
    background: Vec<i32>,
    window_start_ns: u64,
    window_end_ns: u64,
    /// The instant at which a load that awaits its start is to begin, once known.
    start_at_ns: Option<u64>,
    /// Start of the load, once it has started.
    start_ns: Option<u64>,
    /// The slice whose transactions may be running.
    slice: Option<RunningSlice>,
    in_slices: bool,
    awaits_start: bool,
    is_open_loop: bool,
}

/// Progress of the threads.
#[derive(Default)]
struct Progress {
    connected: usize,
    drained: usize,
    closed: usize,
    /// Whether a thread ran to the planned end.
    reached_end: bool,
    missed: u64,
    background_missed: Vec<u64>,
    aborted: u32,
    /// Connections after the first of each client.
    reconnected: u64,
}

impl Engine<'_> {
    fn run(mut self, connect_from_ns: u64, load: &Load) -> Result<Outcome, LoadError> {
        let threads = self.workers.len();
        while self.progress.connected < threads && !self.stop.is_requested() {
            self.next_event()?;
        }
        if self.progress.connected < threads {
            self.workers.clear();
            while self.progress.closed < threads {
                self.next_event()?;
            }
            return Ok(self.outcome(0, 0, 0));
        }
        self.observer.connected(Duration::from_nanos(clock::now_ns() - connect_from_ns), &self.background);

        let start = if load.awaits_start { self.await_start()? } else { Some(clock::now_ns()) };
        let Some(origin_ns) = start else {
            self.workers.clear();
            while self.progress.closed < threads {
                self.next_event()?;
            }
            return Ok(self.outcome(0, 0, u64::from(load.clients())));
        };
        let cpu_from_us = clock::process_cpu_us();
        // Before its threads know: they may take this one's CPU.
        let late = Duration::from_nanos(clock::now_ns().saturating_sub(origin_ns));
        let started = ClockReading {
            monotonic_us: (origin_ns / 1_000) as i64,
            unix_us: clock::unix_us() - late.as_micros() as i64,
        };
        for worker in &self.workers {
            // A thread that has ended reports the reason by an event.
            let _ = worker.start.send(origin_ns);
        }
        self.start_ns = Some(origin_ns);
        self.observer.started(started, late);
        while self.progress.drained < threads {
            self.next_event()?;
        }
        let elapsed_ns = clock::now_ns() - origin_ns;
        let cpu_us = clock::process_cpu_us() - cpu_from_us;
        while self.progress.closed < threads {
            self.next_event()?;
        }
        let connections = u64::from(load.clients_of_server()) + self.progress.reconnected;
        Ok(self.outcome(elapsed_ns, cpu_us, connections))
    }

    /// Waits for the instant at which the load is to begin, which it returns; None if the load is stopped before.
    fn await_start(&mut self) -> Result<Option<u64>, LoadError> {
        while !self.stop.is_requested() {
            let Some(at_ns) = self.start_at_ns else {
                self.next_event()?;
                continue;
            };
            let left_ns = at_ns.saturating_sub(clock::now_ns());
            if left_ns == 0 {
                return Ok(Some(at_ns));
            }
            match self.events.recv_timeout(Duration::from_nanos(left_ns)) {
                Ok(event) => self.handle(event)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(no_report()),
            }
        }
        Ok(None)
    }

    fn outcome(&mut self, elapsed_ns: u64, cpu_us: u64, connections: u64) -> Outcome {
        let unknown = || EngineUsed { name: "none", reason: None };
        Outcome {
            elapsed_ns,
            window_ns: self.window_end_ns.saturating_sub(self.window_start_ns),
            stopped_early: !self.progress.reached_end,
            aborted: self.progress.aborted,
            missed: self.progress.missed,
            background_missed: mem::take(&mut self.progress.background_missed),
            intended: mem::take(&mut self.intended),
            connections,
            cpu_us,
            engine: self.engine_used.take().unwrap_or_else(unknown),
        }
    }

    /// Waits for the next event and handles it.
    fn next_event(&mut self) -> Result<(), LoadError> {
        let event = self.events.recv().map_err(|_| no_report())?;
        self.handle(event)
    }

    fn handle(&mut self, event: Event) -> Result<(), LoadError> {
        match event {
            Event::Abandon(error) | Event::Failed(error) => return Err(error),
            event @ (Event::Stop | Event::Abort) => {
                match event {
                    Event::Abort => self.stop.request_abort(),
                    _ => self.stop.request(),
                }
                if let Some(slice) = &mut self.slice {
                    slice.pause(clock::now_ns());
                }
                for worker in &self.workers {
                    worker.waker.wake();
                }
            }
            Event::Resume => self.resume()?,
            Event::Pause => self.pause(),
            Event::Start { at_ns } => self.start_at(at_ns)?,
            Event::SliceEnded { thread, counts } => {
                if let Some(slice) = &mut self.slice {
                    slice.add(&counts);
                }
                self.end_slice_of(thread);
            }
            Event::Connected { engine, mut background } => {
                self.engine_used = Some(engine);
                self.background.append(&mut background);
                self.progress.connected += 1;
            }
            Event::Record { thread, record } => {
                if let Some(spare) = self.intervals.add(thread, record) {
                    self.recycle(thread, spare);
                }
                self.report_intervals(thread);
            }
            Event::Message(message) => {
                self.progress.aborted += u32::from(message.aborted);
                self.observer.on_message(&message);
            }
            Event::Drained { thread, ended } => {
                if let Some(worker) = self.workers.get_mut(thread) {
                    worker.drained = true;
                }
                self.end_slice_of(thread);
                self.progress.missed += ended.missed;
                let sums = self.progress.background_missed.iter_mut();
                sums.zip(&ended.background_missed).for_each(|(sum, missed)| *sum += missed);
                self.progress.drained += 1;
                self.progress.reached_end |= ended.reached_end;
                self.intervals.end(thread);
                self.report_intervals(thread);
            }
            Event::Closed => self.progress.closed += 1,
        }
        Ok(())
    }

    /// Sets the instant at which the load is to begin.
    fn start_at(&mut self, at_ns: u64) -> Result<(), LoadError> {
        // The request may cross a stop.
        if self.stop.is_requested() {
            return Ok(());
        }
        if !self.awaits_start || self.start_at_ns.is_some() {
            let problem = "a start of a load that begins by itself, or has one already";
            return Err(LoadError::Request(problem.to_owned()));
        }
        self.start_at_ns = Some(at_ns);
        Ok(())
    }

    /// Begins a slice.
    fn resume(&mut self) -> Result<(), LoadError> {
        let problem = match (&self.start_ns, &self.slice) {
            _ if !self.in_slices => "a slice of a load in one piece",
            (None, _) => "a slice before the start of the load",
            (_, Some(_)) => "a slice before the end of the last one",
            (Some(_), None) => {
                let running: Vec<bool> = self.workers.iter().map(|worker| !worker.drained).collect();
                // The request may cross the end of the load.
                if !self.stop.is_requested() && running.contains(&true) {
                    let at_ns = clock::now_ns();
                    self.slice = Some(RunningSlice::new(at_ns, running));
                    self.send_turn(Turn::Resume { at_ns });
                }
                return Ok(());
            }
        };
        Err(LoadError::Request(problem.to_owned()))
    }

    /// Ends the slice.
    fn pause(&mut self) {
        let at_ns = clock::now_ns();
        if self.slice.as_mut().is_some_and(|slice| slice.pause(at_ns)) {
            self.send_turn(Turn::Pause { at_ns });
        }
    }

    fn send_turn(&self, turn: Turn) {
        for worker in &self.workers {
            // Fails only if the thread has ended.
            let _ = worker.turns.send(turn);
            worker.waker.wake();
        }
    }

    /// Marks the transactions of a thread's slice as ended, and reports the slice after the last thread.
    fn end_slice_of(&mut self, thread: usize) {
        if let Some(slice) = &mut self.slice {
            slice.end(thread);
        }
        if let Some(slice) = self.slice.take_if(|slice| slice.has_ended())
            && let Some(origin_ns) = self.start_ns
        {
            self.observer.paused(&slice.figures(origin_ns, self.is_open_loop, clock::now_ns()));
        }
    }

    /// Reports the intervals that all threads have completed, and returns their records to `thread`.
    fn report_intervals(&mut self, thread: usize) {
        while let Some(record) = self.intervals.pop_complete() {
            self.progress.reconnected += record.connects.count;
            if record.phase == Phase::Measure {
                self.window_end_ns = self.window_end_ns.max(record.end_ns);
            }
            if record.phase != Phase::Warmup {
                // The scripts of the main group come first.
                self.intended
                    .iter_mut()
                    .zip(&record.scripts)
                    .for_each(|(sum, script)| sum.add_interval(script));
            }
            if !record.is_empty() {
                self.observer.interval(&record);
            }
            self.recycle(thread, record);
        }
    }

    fn recycle(&self, thread: usize, mut record: Box<Record>) {
        record.clear();
        if let Some(worker) = self.workers.get(thread) {
            // Fails only if the thread has ended.
            let _ = worker.spare.send(record);
        }
    }
}
