//! One thread of a load: connect its clients, wait for the start, run the load, close.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use script::RandomState;

use crate::client::Client;
use crate::connect::{self, Server};
use crate::error::LoadError;
use crate::event::Event;
use crate::event_loop::EventLoop;
use crate::poll::{Poll, Waker};
use crate::program::Program;
use crate::record::Record;
use crate::recorder::Recorder;
use crate::schedule::Schedule;

/// What a thread needs to know.
pub(crate) struct Worker {
    pub(crate) thread: usize,
    pub(crate) server: Arc<Server>,
    pub(crate) program: Arc<Program>,
    pub(crate) schedule: Schedule,
    /// The numbers of its clients, and their random states.
    pub(crate) clients: Range<u32>,
    pub(crate) random: Vec<RandomState>,
    /// Interrupts it.
    pub(crate) waker: Waker,
    /// Brings the time of the load's start.
    pub(crate) start: Receiver<u64>,
    /// Brings records to be filled.
    pub(crate) spare: Receiver<Box<Record>>,
    pub(crate) events: Sender<Event>,
}

impl Worker {
    /// Does all of it, telling by events.
    pub(crate) fn run(self) -> Result<(), LoadError> {
        let events = self.events.clone();
        self.connect_and_run()?;
        // Nobody listens any more only where the process is about to end.
        let _ = events.send(Event::Closed);
        Ok(())
    }

    fn connect_and_run(self) -> Result<(), LoadError> {
        let program = &*self.program;
        let mut poll = Poll::new(self.waker)?;
        let count = self.clients.len();
        let Some(sockets) =
            connect::open(&mut poll, &self.server, count, program.name, &program.preparation)?
        else {
            return Ok(());
        };
        let clients = self
            .clients
            .zip(sockets)
            .zip(self.random)
            .map(|((number, socket), random)| Client::new(number, socket, program, random))
            .collect();
        let _ = self.events.send(Event::Connected);
        // Without a start there is no load.
        let Ok(origin_ns) = self.start.recv() else { return Ok(()) };
        let spare = self.spare;
        let recorder = Recorder::new(self.thread, self.schedule, origin_ns, 1, self.events.clone(), spare)?;
        let mut event_loop = EventLoop::new(poll, program, recorder, self.events.clone(), clients);
        let reached_end = event_loop.run()?;
        let _ = self.events.send(Event::Drained { thread: self.thread, reached_end });
        event_loop.close()
    }
}
