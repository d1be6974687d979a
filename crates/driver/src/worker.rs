//! One thread of a load: connect its clients, wait for the start, run the load, close.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use script::RandomState;

use crate::arrivals::SharedSlots;
use crate::client::Client;
use crate::clock;
use crate::connect::Server;
use crate::error::LoadError;
use crate::event::Event;
use crate::event_loop::{EventLoop, Parts};
use crate::io::{Epoll, Io, Uring, Waker};
use crate::load::{Engine, Load};
use crate::observer::EngineUsed;
use crate::program::Program;
use crate::record::{Record, Shape};
use crate::recorder::Recorder;
use crate::schedule::Schedule;
use crate::slice;
use crate::stop::Stop;
use crate::transaction_log::TransactionLog;
use crate::turns::{Turn, Turns};

/// The inputs of a thread.
pub(crate) struct Worker {
    pub(crate) thread: usize,
    pub(crate) load: Arc<Load>,
    /// The server of each group.
    pub(crate) servers: Arc<[Arc<Server>]>,
    pub(crate) program: Arc<Program>,
    pub(crate) schedule: Schedule,
    pub(crate) shapes: Arc<[Shape]>,
    /// The numbers of its clients, by group.
    pub(crate) clients: Vec<Range<u32>>,
    /// Intended starts of all threads' transactions.
    pub(crate) slots: Arc<SharedSlots>,
    pub(crate) choose: RandomState,
    pub(crate) sample: RandomState,
    pub(crate) pauses: RandomState,
    /// Set when the load must end, before the thread is woken.
    pub(crate) stop: Arc<Stop>,
    pub(crate) waker: Waker,
    /// Receives the time of the load's start.
    pub(crate) start: Receiver<u64>,
    /// Receives the turns of a load in slices.
    pub(crate) turns: Receiver<Turn>,
    /// Receives records to fill.
    pub(crate) spare: Receiver<Box<Record>>,
    pub(crate) events: Sender<Event>,
}

impl Worker {
    /// Runs the thread to its end, which it reports by events.
    pub(crate) fn run(self) -> Result<(), LoadError> {
        let events = self.events.clone();
        let count = self.count();
        // Without it the load only costs more CPU time.
        let _ = slice::lengthen();
        let uring = |waker: &Waker| Uring::new(count, waker.clone());
        match self.load.engine {
            Engine::Epoll => self.run_epoll(None)?,
            Engine::Uring => {
                let io = uring(&self.waker).map_err(LoadError::Uring)?;
                self.run_on(io, EngineUsed { name: "io_uring", reason: None })?;
            }
            // All threads have the same, also where one of several has one client.
            Engine::Auto if self.load.clients() as usize <= self.load.own_threads().len() => {
                self.run_epoll(None)?
            }
            Engine::Auto => match uring(&self.waker) {
                Ok(io) => self.run_on(io, EngineUsed { name: "io_uring", reason: None })?,
                Err(error) => self.run_epoll(Some(format!("io_uring cannot be used: {error}")))?,
            },
        }
        // Fails only if the process is about to end.
        let _ = events.send(Event::Closed);
        Ok(())
    }

    /// Number of its clients.
    fn count(&self) -> usize {
        self.clients.iter().map(ExactSizeIterator::len).sum()
    }

    fn run_epoll(self, reason: Option<String>) -> Result<(), LoadError> {
        let io = Epoll::new(self.count(), self.waker.clone())?;
        self.run_on(io, EngineUsed { name: "epoll", reason })
    }

    fn run_on(self, io: impl Io, engine_used: EngineUsed) -> Result<(), LoadError> {
        let load = &*self.load;
        let mut clients = Vec::with_capacity(self.count());
        for (group, numbers) in self.clients.into_iter().enumerate() {
            for number in numbers {
                let random = load.seeds.clients[number as usize].clone();
                clients.push(Client::new(number, group as u32, &self.program, random));
            }
        }
        let parts = Parts {
            thread: self.thread,
            load,
            program: &self.program,
            servers: &self.servers,
            slots: self.slots,
            choose: self.choose,
            pauses: self.pauses,
            events: self.events.clone(),
            clients,
            stop: self.stop,
            waker: self.waker,
        };
        let mut event_loop = EventLoop::new(io, parts);
        if !event_loop.connect_all()? {
            return event_loop.abandon();
        }
        let background = event_loop.background();
        let _ = self.events.send(Event::Connected { engine: engine_used, background });
        // No start: the load was cancelled.
        let Ok(origin_ns) = self.start.recv() else { return event_loop.close() };
        let late_ns = load.latency_limit.map(|limit| limit.as_nanos() as u64);
        let recorder = Recorder::new(
            self.thread,
            self.schedule,
            origin_ns,
            self.shapes,
            late_ns,
            self.events.clone(),
            self.spare,
        )?;
        let log = match &load.log {
            None => None,
            Some(options) => {
                let (lag, skipped) = (load.main.arrivals.is_open(), load.latency_limit.is_some());
                let start_us = clock::unix_us();
                let log = TransactionLog::open(options, self.thread, self.sample, start_us, lag, skipped);
                Some(log.map_err(LoadError::Log)?)
            }
        };
        let turns = load
            .slice_guard
            .map(|guard| Turns::new(self.turns, guard.as_nanos() as u64, event_loop.clients(), origin_ns));
        let ended = event_loop.run(recorder, log, turns)?;
        let _ = self.events.send(Event::Drained { thread: self.thread, ended });
        event_loop.close()
    }
}
