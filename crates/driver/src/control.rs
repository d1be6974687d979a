//! Control of a running load from other threads.

use std::sync::mpsc::{Receiver, Sender, channel};

use crate::error::LoadError;
use crate::event::Event;

/// The control of a load.
pub struct Control {
    pub(crate) sender: Sender<Event>,
    pub(crate) events: Receiver<Event>,
}

/// Begins or stops a load, or begins and ends its slices, from any thread.
#[derive(Clone)]
pub struct Stopper(Sender<Event>);

impl Default for Control {
    fn default() -> Self {
        let (sender, events) = channel();
        Self { sender, events }
    }
}

impl Control {
    /// A handle that stops the load; stopped before its start, the load does not begin.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.sender.clone())
    }
}

impl Stopper {
    /// Ends the load: no further transaction begins, and those in flight complete.
    pub fn stop(&self) {
        // Fails only if the load has already ended.
        let _ = self.0.send(Event::Stop);
    }

    /// Aborts the clients of a stopped load that still have transactions in flight.
    pub fn abort(&self) {
        let _ = self.0.send(Event::Abort);
    }

    /// Begins a slice of a load in slices, after its start and after the end of the last slice.
    pub fn resume(&self) {
        let _ = self.0.send(Event::Resume);
    }

    /// Ends the slice: no further transaction begins, and those in flight complete.
    pub fn pause(&self) {
        let _ = self.0.send(Event::Pause);
    }

    /// Begins a load that awaits its start at this time, CLOCK_MONOTONIC in nanoseconds, or at once if it has passed. Times of
    /// the load count from then.
    pub fn start_at(&self, at_ns: u64) {
        let _ = self.0.send(Event::Start { at_ns });
    }

    /// Makes [`run`](crate::run) return an error at once.
    pub(crate) fn abandon(&self, error: LoadError) {
        let _ = self.0.send(Event::Abandon(error));
    }
}
