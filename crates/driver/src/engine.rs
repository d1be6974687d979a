//! Runs a load: starts the threads, puts together what they tell, and writes the replies.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use model::message::{Load, Outcome, Reply, Request};

use crate::clock;
use crate::connect::Server;
use crate::error::LoadError;
use crate::event::Event;
use crate::intervals::Intervals;
use crate::limits;
use crate::poll::Waker;
use crate::program::{self, Program};
use crate::record::Record;
use crate::replies::Replies;
use crate::schedule::Schedule;
use crate::summary::Summary;
use crate::worker::Worker;

/// Why a load has no outcome.
pub(crate) enum Interruption {
    /// It cannot be run.
    Failed(LoadError),
    /// Nobody is there to be told.
    RunnerGone,
}

impl<E: Into<LoadError>> From<E> for Interruption {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Runs a load and tells of it. `events` is also where requests come in.
pub(crate) fn run(
    load: &Load,
    sender: &Sender<Event>,
    events: &Receiver<Event>,
    replies: &mut Replies<impl Write>,
) -> Result<Outcome, Interruption> {
    check(load)?;
    limits::allow_files(load.clients, load.threads)?;
    let (random, default_seed) = program::seeds(load);
    let program = Arc::new(Program::new(load, default_seed)?);
    let server = Arc::new(Server::find(&load.connection)?);
    let schedule = Schedule::new(load);
    let mut engine = Engine {
        events,
        replies,
        workers: Vec::new(),
        intervals: Intervals::new(load.threads as usize),
        summary: Summary::new(vec![program.name], &schedule)?,
        progress: Progress::default(),
    };
    let connect_from_ns = clock::now_ns();
    let mut random = random.into_iter();
    let mut first = 0;
    for thread in 0..load.threads {
        // As pgbench deals them.
        let count = (load.clients - first).div_ceil(load.threads - thread);
        let (start_sender, start) = channel();
        let (spare_sender, spare) = channel();
        let waker = Waker::new()?;
        engine.workers.push(Handle { waker: waker.clone(), start: start_sender, spare: spare_sender });
        let worker = Worker {
            thread: thread as usize,
            server: Arc::clone(&server),
            program: Arc::clone(&program),
            schedule,
            clients: first..first + count,
            random: random.by_ref().take(count as usize).collect(),
            waker,
            start,
            spare,
            events: sender.clone(),
        };
        spawn(worker)?;
        first += count;
    }
    engine.run(connect_from_ns, u64::from(load.clients), program.commits_per_connection())
}

fn check(load: &Load) -> Result<(), LoadError> {
    let wrong = |what: &str| Err(LoadError::Invalid(what.to_owned()));
    match load {
        Load { clients: 0, .. } => wrong("there have to be clients"),
        Load { threads: 0, .. } => wrong("there have to be threads"),
        Load { threads, clients, .. } if threads > clients => wrong("there are more threads than clients"),
        Load { duration_us: 0, .. } => wrong("the measured window is empty"),
        Load { interval_us: 0, .. } => wrong("the intervals are empty"),
        _ => Ok(()),
    }
}

/// Starts a thread. It tells of its end even where it panics.
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

/// The main thread's ends of a worker. Dropped, they have the worker stop.
struct Handle {
    waker: Waker,
    start: Sender<u64>,
    spare: Sender<Box<Record>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.waker.wake();
    }
}

struct Engine<'a, W: Write> {
    events: &'a Receiver<Event>,
    replies: &'a mut Replies<W>,
    workers: Vec<Handle>,
    intervals: Intervals,
    summary: Summary,
    progress: Progress,
}

/// How far the threads are, and whether they are to stop.
#[derive(Default)]
struct Progress {
    connected: usize,
    drained: usize,
    closed: usize,
    /// Whether a thread went on to the planned end.
    reached_end: bool,
    /// Whether the runner has asked to stop.
    stop: bool,
}

impl<W: Write> Engine<'_, W> {
    fn run(
        mut self,
        connect_from_ns: u64,
        connections: u64,
        commits_per_connection: u64,
    ) -> Result<Outcome, Interruption> {
        let threads = self.workers.len();
        while self.progress.connected < threads && !self.progress.stop {
            self.next_event()?;
        }
        if self.progress.connected < threads {
            self.workers.clear();
            while self.progress.closed < threads {
                self.next_event()?;
            }
            return Ok(self.summary.outcome(true, 0, 0, 0));
        }
        let connect_us = (clock::now_ns() - connect_from_ns) / 1_000;
        self.reply(&Reply::Connected { connect_us })?;

        let cpu_from_us = clock::process_cpu_us();
        let unix_us = clock::unix_us();
        let origin_ns = clock::now_ns();
        for worker in &self.workers {
            // A thread that is gone tells why by an event.
            let _ = worker.start.send(origin_ns);
        }
        self.reply(&Reply::Started { unix_us })?;
        while self.progress.drained < threads {
            self.next_event()?;
        }
        let cpu_us = clock::process_cpu_us() - cpu_from_us;
        while self.progress.closed < threads {
            self.next_event()?;
        }
        let stopped_early = !self.progress.reached_end;
        Ok(self.summary.outcome(stopped_early, cpu_us, connections, connections * commits_per_connection))
    }

    /// Waits for the next event and does what it asks for.
    fn next_event(&mut self) -> Result<(), Interruption> {
        // This thread holds a sender itself, so that the channel is never closed.
        match self.events.recv().map_err(|_| Interruption::RunnerGone)? {
            Event::InputClosed => Err(Interruption::RunnerGone),
            Event::NoRequest(problem) => Err(LoadError::Request(problem).into()),
            Event::Request(Request::Run(_)) => {
                Err(LoadError::Request("a second load was asked for while the first runs".to_owned()).into())
            }
            Event::Request(Request::Stop) => {
                self.progress.stop = true;
                for worker in &self.workers {
                    worker.waker.wake();
                }
                Ok(())
            }
            Event::Connected => {
                self.progress.connected += 1;
                Ok(())
            }
            Event::Record { thread, record } => {
                if let Some(spare) = self.intervals.add(thread, record)? {
                    self.give_back(thread, spare);
                }
                self.tell_intervals(thread)
            }
            Event::Died(death) => self.reply(&Reply::ClientDied(death)),
            Event::Drained { thread, reached_end } => {
                self.progress.drained += 1;
                self.progress.reached_end |= reached_end;
                self.intervals.end(thread);
                self.tell_intervals(thread)
            }
            Event::Closed => {
                self.progress.closed += 1;
                Ok(())
            }
            Event::Failed(error) => Err(error.into()),
        }
    }

    /// Writes the intervals that every thread has passed; their records go back to `thread`.
    fn tell_intervals(&mut self, thread: usize) -> Result<(), Interruption> {
        while let Some(record) = self.intervals.pop_complete() {
            if !record.is_empty() {
                let interval = self.summary.interval(&record)?;
                self.reply(&Reply::Interval(interval))?;
            }
            self.give_back(thread, record);
        }
        Ok(())
    }

    fn give_back(&self, thread: usize, mut record: Box<Record>) {
        record.clear();
        if let Some(worker) = self.workers.get(thread) {
            // A thread that has ended needs none.
            let _ = worker.spare.send(record);
        }
    }

    fn reply(&mut self, reply: &Reply) -> Result<(), Interruption> {
        self.replies.write(reply).map_err(|_| Interruption::RunnerGone)
    }
}
