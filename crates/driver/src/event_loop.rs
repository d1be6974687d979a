//! The load of one thread: its clients, from connecting to closing.
//!
//! One round: wait, then advance each client that has an event until it must wait again. `connecting` connects clients,
//! `transaction` runs their scripts, `statement` sends statements and handles responses, `recovery` handles errors,
//! `turns` begins and ends slices, `messages` sends messages to the observer.

mod connecting;
mod messages;
mod recovery;
mod statement;
mod transaction;
mod turns;

use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use model::message::Phase;
use rustix::io::Errno;
use script::RandomState;
use wire::{TlsFlow, encode};

use crate::arrivals::SharedSlots;
use crate::client::{Client, State};
use crate::clock;
use crate::connect::Server;
use crate::error::LoadError;
use crate::event::{Event, ThreadEnd};
use crate::io::{Chunk, Io, IoEvent, Waker};
use crate::load::Load;
use crate::program::Program;
use crate::recorder::Recorder;
use crate::shell::ShellResult;
use crate::stop::Stop;
use crate::timers::Timers;
use crate::transaction_log::TransactionLog;
use crate::turns::Turns;

/// Time that the server has to close the connections of ended sessions.
const CLOSE_TIMEOUT_NS: u64 = 5_000_000_000;

/// The event loop over one thread's clients.
pub(crate) struct EventLoop<'a, I> {
    io: I,
    thread: usize,
    load: &'a Load,
    program: &'a Program,
    /// The server of each group.
    servers: &'a [Arc<Server>],
    recorder: Option<Recorder>,
    /// Intended starts of all threads.
    slots: Arc<SharedSlots>,
    /// The time that they are relative to: the load's start, plus the pauses between slices.
    slots_from_ns: u64,
    /// Only of a load in slices.
    turns: Option<Turns>,
    /// For the choice among several scripts.
    choose: RandomState,
    /// For pauses: think time, back-off.
    pauses: RandomState,
    log: Option<TransactionLog>,
    events: Sender<Event>,
    clients: Vec<Client>,
    timers: Timers,
    /// Time for which the timer is set.
    timer_ns: u64,
    /// Number of clients that are not finished.
    active: usize,
    /// Clients that let others run before they continue.
    yielding: Vec<usize>,
    /// Progress of connecting the clients.
    connecting: connecting::Progress,
    /// Stop requests of other threads.
    stop: Arc<Stop>,
    waker: Waker,
    shell_results: Receiver<ShellResult>,
    shell_sender: Sender<ShellResult>,
    /// Bytes of a TLS connection, before encryption and after decryption.
    plain_out: Vec<u8>,
    plain_in: Vec<u8>,
    /// Error that ends the load.
    broken: Option<LoadError>,
}

/// Parts of a thread's event loop, in addition to its sockets.
pub(crate) struct Parts<'a> {
    pub(crate) thread: usize,
    pub(crate) load: &'a Load,
    pub(crate) program: &'a Program,
    pub(crate) servers: &'a [Arc<Server>],
    pub(crate) slots: Arc<SharedSlots>,
    pub(crate) choose: RandomState,
    pub(crate) pauses: RandomState,
    pub(crate) events: Sender<Event>,
    pub(crate) clients: Vec<Client>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) waker: Waker,
}

impl<'a, I: Io> EventLoop<'a, I> {
    /// A loop over clients that are not connected yet.
    pub(crate) fn new(io: I, parts: Parts<'a>) -> Self {
        let (shell_sender, shell_results) = channel();
        let count = parts.clients.len();
        Self {
            io,
            thread: parts.thread,
            load: parts.load,
            program: parts.program,
            servers: parts.servers,
            recorder: None,
            slots: parts.slots,
            slots_from_ns: 0,
            turns: None,
            choose: parts.choose,
            pauses: parts.pauses,
            log: None,
            events: parts.events,
            clients: parts.clients,
            timers: Timers::new(count),
            timer_ns: 0,
            active: 0,
            yielding: Vec::with_capacity(count),
            connecting: connecting::Progress::default(),
            stop: parts.stop,
            waker: parts.waker,
            shell_results,
            shell_sender,
            plain_out: Vec::new(),
            plain_in: Vec::new(),
            broken: None,
        }
    }

    /// Runs transactions until the load is over and the last one has ended.
    pub(crate) fn run(
        &mut self,
        recorder: Recorder,
        log: Option<TransactionLog>,
        turns: Option<Turns>,
    ) -> Result<ThreadEnd, LoadError> {
        self.slots_from_ns = recorder.origin_ns();
        self.recorder = Some(recorder);
        self.log = log;
        self.turns = turns;
        let in_slices = self.turns.is_some();
        self.recorder()?.set_paused(in_slices);
        self.active = self.clients.len();
        let now_ns = clock::now_ns();
        for at in 0..self.clients.len() {
            self.begin_load(at, now_ns)?;
        }
        let mut stopped = false;
        let mut over = false;
        while self.active > 0 {
            let from_ns = clock::now_ns();
            self.arm_timer()?;
            self.io.wait(!self.yielding.is_empty())?;
            let woken_ns = clock::now_ns();
            self.recorder()?.waited(from_ns, woken_ns)?;
            self.handle(woken_ns)?;
            if self.stop.is_requested() && !stopped {
                stopped = true;
                self.recorder()?.stop(clock::now_ns())?;
            }
            if self.is_over() {
                if !over {
                    over = true;
                    self.release_waiting();
                }
                self.abort_overdue(woken_ns)?;
            } else if in_slices {
                self.end_slice_if_idle(woken_ns)?;
            }
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
        }
        self.end_slice();
        let groups = &self.program.groups;
        let is_done = |client: &Client| client.transactions >= groups[client.group as usize].transactions;
        let planned = match self.load.main.transactions {
            None => self.is_over(),
            Some(_) => self.clients.iter().all(is_done),
        };
        let now_ns = clock::now_ns();
        self.recorder()?.advance_to(now_ns)?;
        let (missed, background_missed) = self.missed(now_ns)?;
        self.recorder()?.finish(now_ns)?;
        if let Some(log) = self.log.take() {
            log.finish(clock::unix_us()).map_err(LoadError::Log)?;
        }
        // A load in slices is planned to end by a stop.
        Ok(ThreadEnd { reached_end: planned && (in_slices || !stopped), missed, background_missed })
    }

    /// Numbers of due slots that no thread has taken, whose transactions will not end: of the measured clients, and of each
    /// background group with a schedule. The last thread counts them.
    fn missed(&mut self, now_ns: u64) -> Result<(u64, Vec<u64>), LoadError> {
        let program = self.program;
        let background = program.groups.len().saturating_sub(1);
        if !self.slots.leave() || self.load.length.is_none() {
            return Ok((0, vec![0; background]));
        }
        // In a pause nothing becomes due.
        let now_ns = self.turns.as_ref().and_then(Turns::paused_ns).unwrap_or(now_ns);
        let end_ns = self.recorder()?.end_ns().min(now_ns);
        let mut all = Vec::with_capacity(program.groups.len());
        for (number, group) in program.groups.iter().enumerate() {
            let from_ns = self.slots_from_ns.saturating_add(group.first_begin_ns());
            let mut missed = 0;
            while let Some(slot_ns) = self.slots.next_ns(number) {
                let intended_ns = from_ns.saturating_add(slot_ns);
                if intended_ns >= end_ns {
                    break;
                }
                missed += 1;
                if number == 0 {
                    let script = self.choose_script(group) as usize;
                    self.recorder()?.unfinished(script, intended_ns, None, now_ns);
                }
            }
            all.push(missed);
        }
        let of_background = all.split_off(all.len().min(1));
        Ok((all.first().copied().unwrap_or_default(), of_background))
    }

    /// Ends all sessions of a load that does not begin, without waiting for a server that may not answer.
    pub(crate) fn abandon(mut self) -> Result<(), LoadError> {
        self.leave_all()?;
        Ok(self.io.wait(true)?)
    }

    /// Ends all sessions and waits until the server has closed every connection, and so has counted everything.
    pub(crate) fn close(mut self) -> Result<(), LoadError> {
        self.leave_all()?;
        let deadline_ns = clock::now_ns() + CLOSE_TIMEOUT_NS;
        self.io.set_timer(deadline_ns)?;
        while self.clients.iter().any(|client| client.state == State::Leaving) {
            self.io.wait(false)?;
            while let Some(event) = self.io.next()? {
                match event {
                    IoEvent::Received { chunk, .. } => self.io.recycle(chunk),
                    IoEvent::Closed { number, .. } => {
                        self.io.close(number);
                        self.clients[number].state = State::Gone;
                    }
                    IoEvent::Timer | IoEvent::Woken => {}
                }
            }
            if clock::now_ns() >= deadline_ns {
                break;
            }
        }
        Ok(())
    }

    /// Handles the events of the last wait, which ended at `woken_ns`, and everything else that is due.
    fn handle(&mut self, woken_ns: u64) -> Result<(), LoadError> {
        let mut woken = false;
        while let Some(event) = self.io.next()? {
            match event {
                IoEvent::Received { number, chunk } => {
                    self.received(number, &chunk, woken_ns)?;
                    self.io.recycle(chunk);
                }
                IoEvent::Closed { number, error } => self.closed(number, error)?,
                IoEvent::Timer => {}
                IoEvent::Woken => {
                    woken = true;
                    self.take_turns()?;
                }
            }
        }
        if self.timers.next_ns().is_some_and(|at_ns| at_ns <= woken_ns) {
            let now_ns = clock::now_ns();
            while let Some(at) = self.timers.pop_due(now_ns) {
                self.alarm_expired(at, now_ns)?;
            }
        }
        if woken {
            while let Ok(result) = self.shell_results.try_recv() {
                self.shell_ended(result)?;
            }
        }
        if !self.yielding.is_empty() {
            let now_ns = clock::now_ns();
            let mut yielding = mem::take(&mut self.yielding);
            for at in yielding.drain(..) {
                if self.clients[at].state == State::Yielding {
                    self.next_transaction(at, now_ns)?;
                }
            }
            // Those that yield again are in the new list.
            yielding.append(&mut self.yielding);
            self.yielding = yielding;
        }
        Ok(())
    }

    /// Sets the timer to the next time at which anything is due.
    #[inline]
    fn arm_timer(&mut self) -> Result<(), LoadError> {
        let mut alarm_ns = self.timers.next_ns().unwrap_or(u64::MAX);
        if let Some(recorder) = &self.recorder {
            let next_ns = if recorder.admits() { recorder.boundary_ns() } else { self.deadline_ns(recorder) };
            alarm_ns = alarm_ns.min(next_ns);
        }
        if alarm_ns != self.timer_ns {
            self.io.set_timer(alarm_ns)?;
            self.timer_ns = alarm_ns;
        }
        Ok(())
    }

    /// The next time at which something is due when no transaction may begin, other than clients' alarms.
    #[cold]
    fn deadline_ns(&self, recorder: &Recorder) -> u64 {
        let from_ns = if recorder.phase() == Phase::Drain {
            recorder.end_ns()
        } else {
            match self.turns.as_ref().and_then(Turns::pausing_since_ns) {
                Some(paused_ns) => paused_ns,
                // Between slices, even intervals may wait.
                None => return u64::MAX,
            }
        };
        let limit_ns = self.load.drain.map_or(u64::MAX, |limit| limit.as_nanos() as u64);
        recorder.boundary_ns().min(from_ns.saturating_add(limit_ns))
    }

    /// Handles the alarm of a client.
    fn alarm_expired(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        // It may be set to the same time again.
        self.timer_ns = 0;
        match self.clients[at].state {
            State::Redialling => self.dial(at),
            State::Connecting => self.dial_timed_out(at),
            State::Throttled => {
                let late_ns = now_ns.saturating_sub(self.clients[at].intended_ns);
                let recorder = self.recorder()?;
                recorder.advance_to(now_ns)?;
                recorder.started_late(late_ns);
                self.start(at, now_ns)
            }
            State::Thinking => self.next_transaction(at, now_ns),
            State::BackingOff => self.advance(at, now_ns),
            State::Sleeping => self.command_done(at, now_ns),
            _ => Ok(()),
        }
    }

    /// Handles bytes received for a client.
    #[inline]
    fn received(&mut self, at: usize, chunk: &Chunk, woken_ns: u64) -> Result<(), LoadError> {
        if self.clients[at].attempt.is_some() {
            return self.received_in_login(at, chunk);
        }
        if self.clients[at].tls.is_some() {
            return self.received_encrypted(at, chunk, woken_ns);
        }
        let mut from = 0;
        while from < chunk.len() {
            let client = &mut self.clients[at];
            if !client.connected {
                return Ok(());
            }
            let taken = client.reader.next(&self.io.bytes(chunk)[from..]);
            from += self.handle_event(at, taken, woken_ns)?;
        }
        Ok(())
    }

    /// Handles encrypted bytes.
    fn received_encrypted(&mut self, at: usize, chunk: &Chunk, woken_ns: u64) -> Result<(), LoadError> {
        let mut plain = mem::take(&mut self.plain_in);
        plain.clear();
        if let Some(tls) = &mut self.clients[at].tls {
            match tls.decrypt(self.io.bytes(chunk), &mut plain) {
                // The end of the connection follows.
                Ok(TlsFlow::Open | TlsFlow::Closed) => {}
                Err(error) => {
                    self.plain_in = plain;
                    return self.lost(at, &error.to_string());
                }
            }
        }
        let result = self.received_plain(at, &plain, woken_ns);
        self.plain_in = plain;
        result
    }

    /// Handles decrypted bytes.
    fn received_plain(&mut self, at: usize, plain: &[u8], woken_ns: u64) -> Result<(), LoadError> {
        let mut from = 0;
        while from < plain.len() {
            let client = &mut self.clients[at];
            if !client.connected {
                return Ok(());
            }
            let taken = client.reader.next(&plain[from..]);
            from += self.handle_event(at, taken, woken_ns)?;
        }
        Ok(())
    }

    /// Handles the next event of a client's reader. Returns the number of bytes that it took.
    #[inline]
    fn handle_event(
        &mut self,
        at: usize,
        taken: Result<(usize, Option<wire::Event>), wire::ProtocolError>,
        woken_ns: u64,
    ) -> Result<usize, LoadError> {
        let (taken, event) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                self.lost(at, &error.to_string())?;
                return Ok(0);
            }
        };
        if self.load.verbosity.notices {
            self.log_notices(at);
        }
        match event {
            Some(wire::Event::Ready(answer)) => self.answered(at, &answer, woken_ns)?,
            Some(wire::Event::Copy(_)) => {
                self.abort(at, None, "COPY is not supported in pgbench, aborting".to_owned())?;
            }
            // Reported in pipelines only, if asked for.
            Some(wire::Event::Result { .. } | wire::Event::Failed) | None => {}
        }
        Ok(taken)
    }

    /// Handles the end of a client's connection.
    #[cold]
    fn closed(&mut self, at: usize, error: Option<Errno>) -> Result<(), LoadError> {
        match self.clients[at].state {
            State::Connecting => self.dial_failed(at, error),
            State::Gone => Ok(()),
            _ => {
                let why = match error {
                    Some(error) => format!("the connection was lost: {}", std::io::Error::from(error)),
                    None => "perhaps the backend died while processing: the server closed the connection without an error message".to_owned(),
                };
                self.lost(at, &why)
            }
        }
    }

    /// Sends bytes to a client's server.
    #[inline]
    fn send_with(&mut self, at: usize, write: impl FnOnce(&Client, &mut Vec<u8>)) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        let out = self.io.outgoing(at);
        if let Some(mut tls) = client.tls.take() {
            self.plain_out.clear();
            write(client, &mut self.plain_out);
            let encrypted = tls.encrypt(&self.plain_out, out);
            client.tls = Some(tls);
            if let Err(error) = encrypted {
                return self.lost(at, &error.to_string());
            }
        } else {
            write(client, out);
        }
        self.io.send(at)?;
        Ok(())
    }

    fn leave_all(&mut self) -> Result<(), LoadError> {
        for at in 0..self.clients.len() {
            self.timers.cancel(at);
            self.leave(at)?;
        }
        Ok(())
    }

    /// Ends a client's session, after which the server closes the connection; a session with outstanding responses is
    /// just closed.
    fn leave(&mut self, at: usize) -> Result<(), LoadError> {
        if self.clients[at].connected && self.clients[at].due == 0 {
            self.send_with(at, |_, out| encode::terminate(out))?;
            self.clients[at].state = State::Leaving;
        } else {
            self.io.close(at);
            self.clients[at].state = State::Gone;
        }
        self.clients[at].connected = false;
        Ok(())
    }

    /// Whether the load has ended: no further transaction may begin.
    #[inline]
    fn is_over(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.phase() == Phase::Drain)
    }

    #[inline]
    fn recorder(&mut self) -> Result<&mut Recorder, LoadError> {
        self.recorder.as_mut().ok_or_else(|| LoadError::Internal("there is no load to record yet".to_owned()))
    }

    /// Marks a client as finished: it will begin no further transaction.
    fn finish(&mut self, at: usize) {
        self.clients[at].state = State::Finished;
        self.active -= 1;
    }

    /// At the end of the load, finishes clients that wait for their next transaction, and cuts background work short,
    /// because it may run for hours.
    fn release_waiting(&mut self) {
        for at in 0..self.clients.len() {
            let client = &self.clients[at];
            let is_background = client.group > 0;
            match client.state {
                State::Throttled | State::Thinking | State::Paused => {}
                State::Sleeping | State::BackingOff if is_background => {}
                State::Waiting(_) if is_background => {
                    // If that fails, it is aborted with the others.
                    let _ = client.cancel_key.as_ref().map(|key| self.server_of(at).cancel(key));
                    continue;
                }
                _ => continue,
            }
            self.timers.cancel(at);
            self.finish(at);
        }
    }

    /// Aborts the clients of transactions that run for too long after the end of the load or of their slice.
    fn abort_overdue(&mut self, now_ns: u64) -> Result<(), LoadError> {
        let over = self.is_over();
        let paused_ns = self.turns.as_ref().and_then(Turns::paused_ns).filter(|_| !over);
        let end_ns = match paused_ns {
            Some(paused_ns) => paused_ns,
            None => self.recorder()?.end_ns(),
        };
        let after = match self.load.drain {
            Some(limit) if now_ns >= end_ns.saturating_add(limit.as_nanos() as u64) => {
                let ended = if over { "load" } else { "slice" };
                format!("{} s after the end of the {ended}", limit.as_secs_f64())
            }
            _ if self.stop.is_abort_requested() => "after the load was stopped".to_owned(),
            _ => return Ok(()),
        };
        for at in 0..self.clients.len() {
            let state = self.clients[at].state;
            let waits = !over && state.is_idle();
            if !waits && !matches!(state, State::Finished | State::Gone | State::Leaving) {
                self.record_unfinished(at, now_ns)?;
                let text = format!("still running {after}");
                let text = self.command_failed(at, &text);
                self.abort(at, None, text)?;
            }
        }
        Ok(())
    }
}
