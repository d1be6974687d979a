//! The slices of a load that runs in turns: their start, their end, their counts.

use super::EventLoop;
use crate::client::State;
use crate::clock;
use crate::error::LoadError;
use crate::event::Event;
use crate::io::Io;
use crate::turns::{Ended, Turn, Turns};

impl<I: Io> EventLoop<'_, I> {
    /// Number of clients.
    pub(crate) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Whether transactions may begin: neither after the end of the load nor in a pause.
    #[inline]
    pub(super) fn admits(&self) -> bool {
        self.recorder.as_ref().is_none_or(|recorder| recorder.admits())
    }

    /// Sets the alarm of a client between two transactions, which stands still in a pause.
    #[inline]
    pub(super) fn set_alarm(&mut self, at: usize, at_ns: u64) {
        self.clients[at].intended_ns = at_ns;
        if self.turns.as_ref().and_then(Turns::paused_ns).is_none() {
            self.timers.set(at, at_ns);
        }
    }

    /// Handles a client that may not begin its next transaction: now, or at all.
    #[cold]
    pub(super) fn finish_or_pause(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let limit = self.program.groups[client.group as usize].transactions;
        if client.transactions >= limit || self.is_over() {
            self.finish(at);
        } else {
            self.clients[at].state = State::Paused;
        }
    }

    /// Begins and ends slices as the main thread has requested.
    #[cold]
    pub(super) fn take_turns(&mut self) -> Result<(), LoadError> {
        while let Some(turn) = self.turns.as_ref().and_then(Turns::next) {
            match turn {
                Turn::Resume { at_ns } => self.resume(at_ns)?,
                Turn::Pause { at_ns } => self.pause(at_ns)?,
            }
        }
        Ok(())
    }

    fn resume(&mut self, at_ns: u64) -> Result<(), LoadError> {
        let Some(turns) = &mut self.turns else { return Ok(()) };
        let pause_ns = turns.resume(at_ns);
        self.slots_from_ns = self.slots_from_ns.saturating_add(pause_ns);
        self.recorder()?.set_paused(false);
        let now_ns = clock::now_ns();
        for at in 0..self.clients.len() {
            let client = &self.clients[at];
            match client.state {
                State::Paused => self.next_transaction(at, now_ns)?,
                State::Throttled | State::Thinking => {
                    self.set_alarm(at, client.intended_ns.saturating_add(pause_ns));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn pause(&mut self, at_ns: u64) -> Result<(), LoadError> {
        let Some(turns) = &mut self.turns else { return Ok(()) };
        turns.pause(at_ns);
        self.recorder()?.set_paused(true);
        for at in 0..self.clients.len() {
            if matches!(self.clients[at].state, State::Throttled | State::Thinking) {
                self.timers.cancel(at);
            }
        }
        Ok(())
    }

    /// Counts a transaction that has ended in its slice.
    #[cold]
    pub(super) fn count_in_slice(&mut self, at: usize, now_ns: u64, failed: bool) {
        let client = &self.clients[at];
        let ended = Ended {
            client: at,
            is_main: client.group == 0,
            is_open_loop: self.program.groups[client.group as usize].arrivals.is_open(),
            intended_ns: client.intended_ns,
            begun_ns: client.begun_ns,
            end_ns: now_ns,
            failed,
        };
        if let Some(turns) = &mut self.turns {
            turns.count(&ended);
        }
    }

    /// After a pause, ends the slice if its last transaction has ended.
    pub(super) fn end_slice_if_idle(&mut self, now_ns: u64) -> Result<(), LoadError> {
        let Some(turns) = &mut self.turns else { return Ok(()) };
        if turns.pausing_since_ns().is_none() {
            return Ok(());
        }
        while self.clients.get(turns.idle).is_some_and(|client| client.state.is_idle()) {
            turns.idle += 1;
        }
        if turns.idle < self.clients.len() {
            return self.abort_overdue(now_ns);
        }
        self.end_slice();
        Ok(())
    }

    /// Reports the slice, all of whose transactions have ended.
    pub(super) fn end_slice(&mut self) {
        if let Some(counts) = self.turns.as_mut().and_then(Turns::end_slice) {
            // Fails only if the process is about to end.
            let _ = self.events.send(Event::SliceEnded { thread: self.thread, counts });
        }
    }
}
