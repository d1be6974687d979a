//! One thread of a playback: its sessions and their cues.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use rustix::io::Errno;
use wire::{CopyKind, Event as WireEvent, Response, encode};

use super::link::Opening;
use super::progress::Progress;
use super::session::{Running, Session, State, Step};
use super::{Cue, CueAction, Execution, Hold, Order, PlaybackEvent, Played, PlayedEnd, Report};
use crate::clock;
use crate::connect::{REDIAL_INTERVAL_NS, Server};
use crate::error::LoadError;
use crate::io::{Chunk, Epoll, Io, IoEvent, Uring, Waker};
use crate::load::Engine;
use crate::observer::EngineUsed;
use crate::slice;
use crate::timers::Timers;

/// Longest wait of a statement for one of another session, which may itself wait for a lock of the waiting session.
const MAX_HOLD_NS: u64 = 10_000_000_000;
/// Time that running statements have after a stop.
const STOP_TIMEOUT_NS: u64 = 5_000_000_000;
/// SQLSTATE of an error without one.
const NO_SQLSTATE: &str = "XX000";

/// The inputs of a thread.
pub(super) struct Worker {
    /// Its number.
    pub(super) thread: usize,
    pub(super) progress: Arc<Progress>,
    pub(super) server: Arc<Server>,
    /// Most sessions at a time.
    pub(super) sessions: usize,
    pub(super) closed: bool,
    pub(super) engine: Engine,
    pub(super) origin_ns: u64,
    pub(super) orders: Receiver<Order>,
    pub(super) reports: Sender<Report>,
    pub(super) waker: Waker,
}

impl Worker {
    /// Runs the thread to its end, which it reports.
    pub(super) fn run(self) -> Result<(), LoadError> {
        // Without it the playback only costs more CPU time.
        let _ = slice::lengthen();
        let uring = || Uring::new(self.sessions, self.waker.clone());
        match self.engine {
            Engine::Epoll => self.run_epoll(None),
            Engine::Uring => {
                let io = uring().map_err(LoadError::Uring)?;
                self.run_on(io, EngineUsed { name: "io_uring", reason: None })
            }
            Engine::Auto => match uring() {
                Ok(io) => self.run_on(io, EngineUsed { name: "io_uring", reason: None }),
                Err(error) => self.run_epoll(Some(format!("io_uring cannot be used: {error}"))),
            },
        }
    }

    fn run_epoll(self, reason: Option<String>) -> Result<(), LoadError> {
        let io = Epoll::new(self.sessions, self.waker.clone())?;
        self.run_on(io, EngineUsed { name: "epoll", reason })
    }

    fn run_on(self, io: impl Io, engine: EngineUsed) -> Result<(), LoadError> {
        let count = self.sessions;
        let reports = self.reports.clone();
        let mut player = Player {
            io,
            worker: self,
            upcoming: VecDeque::new(),
            sessions: HashMap::new(),
            slots: vec![None; count],
            free: (0..count).rev().collect(),
            without_slot: VecDeque::new(),
            timers: Timers::new(count),
            timer_ns: 0,
            peak_sessions: 0,
            is_finishing: false,
            stopped_ns: None,
        };
        player.run()?;
        // Fails only if the playback has failed.
        let _ = reports.send(Report::Ended { peak_sessions: player.peak_sessions, engine });
        Ok(())
    }
}

/// What a response has.
#[derive(Clone, Copy, Default)]
struct Counts {
    rows: u64,
    commits: u64,
}

struct Player<I> {
    io: I,
    worker: Worker,
    /// Cues whose time has not come, in order.
    upcoming: VecDeque<Cue>,
    sessions: HashMap<u32, Session>,
    /// The session of each connection.
    slots: Vec<Option<u32>>,
    free: Vec<usize>,
    /// Sessions that wait for a connection's place, in order.
    without_slot: VecDeque<u32>,
    /// Of connections: when to try to connect again, or to wait no longer for the server or for another session.
    timers: Timers,
    /// Time for which the timer is set.
    timer_ns: u64,
    peak_sessions: u32,
    /// Whether no further cues will come.
    is_finishing: bool,
    /// When the playback was stopped.
    stopped_ns: Option<u64>,
}

impl<I: Io> Player<I> {
    fn run(&mut self) -> Result<(), LoadError> {
        loop {
            self.take_orders()?;
            let now_ns = clock::now_ns();
            self.apply_due(now_ns)?;
            while let Some(slot) = self.timers.pop_due(now_ns) {
                if let Some(session) = self.slots[slot] {
                    self.timed_out(session)?;
                }
            }
            if self.is_finishing && self.upcoming.is_empty() {
                self.end_idle()?;
                if self.sessions.is_empty() {
                    return Ok(());
                }
            }
            if self.resume_released()? {
                continue;
            }
            let stop_ns = self.stopped_ns.map_or(u64::MAX, |at_ns| at_ns + STOP_TIMEOUT_NS);
            if now_ns >= stop_ns {
                self.abandon();
                return Ok(());
            }
            let next_ns = self.upcoming.front().map_or(u64::MAX, |cue| self.due_ns(cue));
            let next_ns = next_ns.min(stop_ns).min(self.timers.next_ns().unwrap_or(u64::MAX));
            if next_ns != self.timer_ns {
                self.io.set_timer(next_ns)?;
                self.timer_ns = next_ns;
            }
            self.io.wait(false)?;
            while let Some(event) = self.io.next()? {
                match event {
                    IoEvent::Received { number, chunk } => {
                        self.received(number, &chunk)?;
                        self.io.recycle(chunk);
                    }
                    IoEvent::Closed { number, error } => self.closed(number, error)?,
                    // It may be set to the same time again.
                    IoEvent::Timer => self.timer_ns = 0,
                    IoEvent::Woken => {}
                }
            }
        }
    }

    fn due_ns(&self, cue: &Cue) -> u64 {
        if self.worker.closed { 0 } else { self.worker.origin_ns.saturating_add(cue.at_ns) }
    }

    fn take_orders(&mut self) -> Result<(), LoadError> {
        while let Ok(order) = self.worker.orders.try_recv() {
            match order {
                Order::Cues(cues) => self.upcoming.extend(cues),
                Order::Finish => self.is_finishing = true,
                Order::Stop => {
                    self.is_finishing = true;
                    self.stopped_ns.get_or_insert_with(clock::now_ns);
                    self.drop_queued();
                }
            }
        }
        Ok(())
    }

    /// Does what is due.
    fn apply_due(&mut self, now_ns: u64) -> Result<(), LoadError> {
        while let Some(cue) = self.upcoming.front() {
            let due_ns = self.due_ns(cue);
            if due_ns > now_ns {
                break;
            }
            let Some(Cue { session, action, .. }) = self.upcoming.pop_front() else { break };
            let intended_ns = if self.worker.closed { now_ns } else { due_ns };
            match action {
                CueAction::Begin { application } => {
                    self.sessions.insert(session, Session::new(application));
                    self.without_slot.push_back(session);
                    self.fill_slots()?;
                }
                CueAction::Execute(execution) => {
                    self.enqueue(session, intended_ns, Step::Execute(execution))?
                }
                CueAction::End => self.enqueue(session, intended_ns, Step::End)?,
            }
        }
        Ok(())
    }

    /// Connects again, or begins the next statement without what it depends on.
    fn timed_out(&mut self, number: u32) -> Result<(), LoadError> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        if !matches!(session.state, State::Held) {
            if let (State::Connecting, Some(slot)) = (&session.state, session.slot) {
                self.io.close(slot);
            }
            return self.dial(number);
        }
        if let Some((_, Step::Execute(next))) = session.queue.front_mut() {
            next.after.clear();
        }
        session.hold = Hold::Expired;
        session.state = State::Idle;
        session.ready_ns = clock::now_ns();
        self.advance(number)
    }

    /// Goes on with the sessions that waited for statements of others. Returns whether there were any.
    fn resume_released(&mut self) -> Result<bool, LoadError> {
        let released = self.worker.progress.take_released(self.worker.thread);
        for number in &released {
            let Some(session) = self.sessions.get_mut(number) else { continue };
            if matches!(session.state, State::Held) {
                session.state = State::Idle;
                session.ready_ns = clock::now_ns();
                if let Some(slot) = session.slot {
                    self.timers.cancel(slot);
                }
                self.advance(*number)?;
            }
        }
        Ok(!released.is_empty())
    }

    fn enqueue(&mut self, number: u32, intended_ns: u64, step: Step) -> Result<(), LoadError> {
        match self.sessions.get_mut(&number) {
            Some(session) => {
                session.queue.push_back((intended_ns, step));
                self.advance(number)
            }
            // Its session has not begun, or is over.
            None => {
                if let Step::Execute(execution) = step {
                    self.not_executed(number, intended_ns, &execution);
                }
                Ok(())
            }
        }
    }

    /// Gives free places to the sessions that wait for one.
    fn fill_slots(&mut self) -> Result<(), LoadError> {
        while let Some(slot) = self.free.pop() {
            let Some(number) = self.without_slot.pop_front() else {
                self.free.push(slot);
                break;
            };
            let Some(session) = self.sessions.get_mut(&number) else {
                self.free.push(slot);
                continue;
            };
            session.slot = Some(slot);
            session.dialled_ns = clock::now_ns();
            self.slots[slot] = Some(number);
            let open = (self.slots.len() - self.free.len()) as u32;
            self.peak_sessions = self.peak_sessions.max(open);
            self.dial(number)?;
        }
        Ok(())
    }

    fn dial(&mut self, number: u32) -> Result<(), LoadError> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let Some(slot) = session.slot else { return Ok(()) };
        session.state = State::Connecting;
        let application = session.application.clone();
        let opening = session.link.dial(slot, application.as_deref(), &self.worker.server, &mut self.io)?;
        if opening == Opening::Waiting {
            self.timers.set(slot, session.link.deadline_ns());
        }
        self.opening(number, opening)
    }

    fn opening(&mut self, number: u32, opening: Opening) -> Result<(), LoadError> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let Some(slot) = session.slot else { return Ok(()) };
        match opening {
            Opening::Waiting => Ok(()),
            Opening::TryLater => {
                self.io.close(slot);
                session.state = State::Waiting;
                self.timers.set(slot, clock::now_ns() + REDIAL_INTERVAL_NS);
                Ok(())
            }
            Opening::Failed(reason) => self.broken(number, reason),
            Opening::Open => {
                self.timers.cancel(slot);
                let now_ns = clock::now_ns();
                session.ready_ns = now_ns;
                session.state = State::Idle;
                let took_ns = now_ns.saturating_sub(session.dialled_ns);
                let pid = session.link.pid;
                self.report(PlaybackEvent::Connected { session: number, pid, took_ns });
                self.advance(number)
            }
        }
    }

    /// Does the next step of an idle session.
    fn advance(&mut self, number: u32) -> Result<(), LoadError> {
        loop {
            let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
            match session.state {
                State::Idle => {}
                // Its statements are not executed.
                State::Broken => {
                    let Some((intended_ns, step)) = session.queue.pop_front() else { return Ok(()) };
                    match step {
                        Step::Execute(execution) => self.not_executed(number, intended_ns, &execution),
                        Step::End => drop(self.remove(number)),
                    }
                    continue;
                }
                _ => return Ok(()),
            }
            let progress = &self.worker.progress;
            if let Some((_, Step::Execute(next))) = session.queue.front()
                && !next.after.iter().all(|on| progress.is_ended(*on, number, self.worker.thread))
            {
                session.state = State::Held;
                session.hold = Hold::Released;
                if let Some(slot) = session.slot {
                    self.timers.set(slot, clock::now_ns() + MAX_HOLD_NS);
                }
                return Ok(());
            }
            let Some((intended_ns, step)) = session.queue.pop_front() else { return Ok(()) };
            let execution = match step {
                Step::End => return self.end(number),
                Step::Execute(execution) if execution.is_unsendable() => {
                    self.not_executed(number, intended_ns, &execution);
                    continue;
                }
                Step::Execute(execution) => execution,
            };
            let Some(slot) = session.slot else { return Ok(()) };
            let ready_ns = session.ready_ns;
            let intended_ns = if self.worker.closed { ready_ns.max(intended_ns) } else { intended_ns };
            let mut message = Vec::new();
            let parses = session.write(&execution, &mut message);
            let begun_ns = clock::now_ns();
            let sent = session.link.send(slot, &mut self.io, |out| out.extend_from_slice(&message))?;
            let hold = std::mem::take(&mut session.hold);
            session.state =
                State::Executing(Running::new(execution, intended_ns, ready_ns, begun_ns, hold, parses));
            return match sent {
                Ok(()) => Ok(()),
                Err(reason) => self.broken(number, reason),
            };
        }
    }

    fn received(&mut self, slot: usize, chunk: &Chunk) -> Result<(), LoadError> {
        let Some(number) = self.slots[slot] else { return Ok(()) };
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        if session.link.is_opening() {
            let opening = session.link.log_in(slot, chunk, &self.worker.server, &mut self.io)?;
            return self.opening(number, opening);
        }
        match session.link.decrypted(self.io.bytes(chunk)) {
            None => {
                let mut from = 0;
                while from < chunk.len() {
                    let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
                    if session.slot != Some(slot) {
                        return Ok(());
                    }
                    let taken = session.link.reader.next(&self.io.bytes(chunk)[from..]);
                    from += self.handle(number, taken)?;
                }
                Ok(())
            }
            Some(Err(reason)) => self.broken(number, reason),
            Some(Ok(plain)) => {
                let mut from = 0;
                while from < plain.len() {
                    let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
                    if session.slot != Some(slot) {
                        return Ok(());
                    }
                    let taken = session.link.reader.next(&plain[from..]);
                    from += self.handle(number, taken)?;
                }
                if let Some(session) = self.sessions.get_mut(&number) {
                    session.link.give_back(plain);
                }
                Ok(())
            }
        }
    }

    /// Handles what a session's reader found. Returns the number of bytes that it took.
    fn handle(
        &mut self,
        number: u32,
        taken: Result<(usize, Option<WireEvent>), wire::ProtocolError>,
    ) -> Result<usize, LoadError> {
        let (taken, event) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                self.broken(number, error.to_string())?;
                return Ok(0);
            }
        };
        match event {
            Some(WireEvent::Ready(response)) => self.answered(number, &response)?,
            Some(WireEvent::Copy(kind)) => self.refuse_copy(number, kind)?,
            Some(WireEvent::Result { .. } | WireEvent::Failed) | None => {}
        }
        Ok(taken)
    }

    fn answered(&mut self, number: u32, response: &Response) -> Result<(), LoadError> {
        let now_ns = clock::now_ns();
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let error = session.link.reader.take_error();
        let State::Executing(running) = std::mem::replace(&mut session.state, State::Idle) else {
            return self.broken(number, "the server sent an unexpected response".to_owned());
        };
        session.ended(&running, response.failed);
        session.ready_ns = now_ns;
        let end = match error {
            _ if !response.failed => PlayedEnd::Success,
            Some(error) => PlayedEnd::Failure(error.code().unwrap_or(NO_SQLSTATE).to_owned()),
            None => PlayedEnd::Failure(NO_SQLSTATE.to_owned()),
        };
        self.played(
            number,
            &running,
            now_ns,
            Counts { rows: response.rows, commits: response.commits.into() },
            end,
        );
        self.advance(number)
    }

    /// A COPY within several statements: its data are not recorded.
    fn refuse_copy(&mut self, number: u32, kind: CopyKind) -> Result<(), LoadError> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let (Some(slot), CopyKind::In) = (session.slot, kind) else { return Ok(()) };
        let is_extended =
            matches!(&session.state, State::Executing(running) if running.execution.prepared.is_some());
        let sent = session.link.send(slot, &mut self.io, |out| {
            encode::copy_fail("its data are not recorded", out);
            if is_extended {
                encode::sync(out);
            }
        })?;
        sent.or_else(|reason| self.broken(number, reason))
    }

    /// Handles the end of a connection.
    fn closed(&mut self, slot: usize, error: Option<Errno>) -> Result<(), LoadError> {
        let Some(number) = self.slots[slot] else {
            self.io.close(slot);
            return Ok(());
        };
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        if matches!(session.state, State::Connecting) {
            let opening = session.link.closed_in_login(error, &self.worker.server);
            return self.opening(number, opening);
        }
        let reason = match (session.link.reader.take_error(), error) {
            (Some(error), _) => error.to_string(),
            (None, Some(error)) => format!("the connection was lost: {}", std::io::Error::from(error)),
            (None, None) => "the server closed the connection".to_owned(),
        };
        self.broken(number, reason)
    }

    /// Gives up a session: what it has not executed is reported.
    fn broken(&mut self, number: u32, reason: String) -> Result<(), LoadError> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let state = std::mem::replace(&mut session.state, State::Broken);
        let slot = session.slot.take();
        if let State::Executing(running) = state {
            let now_ns = clock::now_ns();
            self.played(number, &running, now_ns, Counts::default(), PlayedEnd::NotExecuted);
        }
        self.report(PlaybackEvent::Broken { session: number, reason });
        if let Some(slot) = slot {
            self.release(slot)?;
        }
        self.advance(number)
    }

    /// Ends an idle session.
    fn end(&mut self, number: u32) -> Result<(), LoadError> {
        let Some(mut session) = self.remove(number) else { return Ok(()) };
        let Some(slot) = session.slot else { return Ok(()) };
        // The connection is closed at once: if that fails, it is lost, which is as good.
        let _ = session.link.send(slot, &mut self.io, encode::terminate)?;
        self.release(slot)
    }

    fn remove(&mut self, number: u32) -> Option<Session> {
        self.worker.progress.end(number, self.worker.thread);
        self.sessions.remove(&number)
    }

    fn release(&mut self, slot: usize) -> Result<(), LoadError> {
        self.io.close(slot);
        self.timers.cancel(slot);
        self.slots[slot] = None;
        self.free.push(slot);
        self.fill_slots()
    }

    /// Ends sessions that have nothing more to do.
    fn end_idle(&mut self) -> Result<(), LoadError> {
        let is_done = |session: &Session| {
            session.queue.is_empty() && matches!(session.state, State::Idle | State::Broken)
        };
        let stopped = self.stopped_ns.is_some();
        let done: Vec<u32> = self
            .sessions
            .iter()
            .filter(|(_, session)| {
                is_done(session) || (stopped && !matches!(session.state, State::Executing(_)))
            })
            .map(|(number, _)| *number)
            .collect();
        for number in done {
            self.end(number)?;
        }
        Ok(())
    }

    /// After a stop: reports what will not be executed.
    fn drop_queued(&mut self) {
        for Cue { at_ns, session, action } in std::mem::take(&mut self.upcoming) {
            if let CueAction::Execute(execution) = action {
                self.not_executed(session, self.worker.origin_ns.saturating_add(at_ns), &execution);
            }
        }
        let numbers: Vec<u32> = self.sessions.keys().copied().collect();
        for number in numbers {
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            for (intended_ns, step) in std::mem::take(&mut session.queue) {
                if let Step::Execute(execution) = step {
                    self.not_executed(number, intended_ns, &execution);
                }
            }
        }
        self.without_slot.clear();
    }

    /// Gives up the statements that still run after a stop.
    fn abandon(&mut self) {
        let now_ns = clock::now_ns();
        for (number, session) in std::mem::take(&mut self.sessions) {
            if let State::Executing(running) = session.state {
                self.played(number, &running, now_ns, Counts::default(), PlayedEnd::NotExecuted);
            }
        }
    }

    fn not_executed(&self, number: u32, intended_ns: u64, execution: &Execution) {
        let now_ns = clock::now_ns();
        let running = Running::new(execution.clone(), intended_ns, now_ns, now_ns, Hold::None, false);
        self.played(number, &running, now_ns, Counts::default(), PlayedEnd::NotExecuted);
    }

    fn played(&self, session: u32, running: &Running, ended_ns: u64, counts: Counts, end: PlayedEnd) {
        self.worker.progress.advance(session, self.worker.thread);
        let after_start = |at_ns: u64| at_ns.saturating_sub(self.worker.origin_ns);
        self.report(PlaybackEvent::Played(Played {
            tag: running.execution.tag,
            session,
            intended_ns: after_start(running.intended_ns),
            ready_ns: after_start(running.ready_ns),
            hold: running.hold,
            begun_ns: after_start(running.begun_ns),
            ended_ns: after_start(ended_ns),
            rows: counts.rows,
            commits: counts.commits,
            end,
        }));
    }

    fn report(&self, event: PlaybackEvent) {
        // Fails only if the playback has failed.
        let _ = self.worker.reports.send(Report::Event(event));
    }
}
