//! Plays sessions that were recorded: each connects, sends its statements and ends at given times.
//!
//! A second engine next to that of loads, over the same sockets, connections and clocks: a load's clients run scripts whose
//! transactions are alike, for as long as the load takes; recorded sessions are many, different and short, and what counts
//! is each statement. [`play`] hands [`Cue`]s to threads, a few seconds of statements ahead at most, so that recordings of any
//! length need little memory. A thread (`player`) holds its sessions (`session`), each with a connection (`link`).

mod link;
mod player;
mod progress;
mod session;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use wire::ConnectParams;

use crate::clock;
use crate::connect::Server;
use crate::error::LoadError;
use crate::io::Waker;
use crate::limits;
use crate::load::Engine;
use crate::observer::EngineUsed;
use player::Worker;
use progress::Progress;

/// Memory for statements that are handed out and not executed yet.
const AHEAD_BYTES: usize = 64 << 20;
/// Statements that are handed out and not executed yet.
const AHEAD_STATEMENTS: usize = 100_000;
/// Time until the first cue, for threads to be ready.
const LEAD_NS: u64 = 200_000_000;
/// Cues that are handed to a thread at once.
const BATCH: usize = 128;
/// Interval at which a stop is noticed.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// How sessions are played.
#[derive(Clone, Debug)]
pub struct Playback {
    /// Connection parameters of all sessions.
    pub connection: ConnectParams,
    /// Number of event-loop threads.
    pub threads: u32,
    /// Most sessions at a time; further ones wait.
    pub sessions: u32,
    /// Whether statements wait only for the one before in their session, not for their time.
    pub closed: bool,
    /// The event loop to use.
    pub engine: Engine,
}

/// Something to do. Cues come in the order of their times.
#[derive(Clone, Debug, PartialEq)]
pub struct Cue {
    /// When, in nanoseconds after the start.
    pub at_ns: u64,
    /// The session.
    pub session: u32,
    /// What.
    pub action: CueAction,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum CueAction {
    /// Connect. The session's other cues follow.
    Begin {
        /// Its `application_name`, if it is not the connection's.
        application: Option<Arc<str>>,
    },
    /// Execute a statement, after those before it in the session.
    Execute(Execution),
    /// Disconnect, after the session's statements.
    End,
}

/// A statement to execute.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// Returned in [`Played`].
    pub tag: u64,
    /// Its text.
    pub text: Arc<str>,
    /// The prepared statement; None: by the simple protocol.
    pub prepared: Option<Prepared>,
    /// Statements of other sessions that have to have ended before, handed out earlier. Those of sessions that have ended have.
    pub after: Vec<Awaited>,
}

/// A statement of another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The session.
    pub session: u32,
    /// Its number among the session's statements, from 0.
    pub number: u64,
}

/// An execution of a prepared statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Its name; empty: the unnamed one.
    pub name: Arc<str>,
    /// The values of its parameters, as text.
    pub values: Vec<Option<Arc<str>>>,
}

/// What became of a statement. Times are in nanoseconds after the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// Of the [`Execution`].
    pub tag: u64,
    /// The session.
    pub session: u32,
    /// When it was to begin; in a closed loop, when it could.
    pub intended_ns: u64,
    /// When its session could execute it: was connected, had the response to the statement before, and what it depends on
    /// had ended.
    pub ready_ns: u64,
    /// Whether it waited for a statement of another session.
    pub hold: Hold,
    /// When it was sent.
    pub begun_ns: u64,
    /// When its response was complete.
    pub ended_ns: u64,
    /// Rows received.
    pub rows: u64,
    /// Transactions that the server reported as committed.
    pub commits: u64,
    /// How it ended.
    pub end: PlayedEnd,
}

/// Whether a statement that was due waited for a statement of another session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// It did not.
    #[default]
    None,
    /// It waited until that had ended.
    Released,
    /// It waited, and began without it: that may itself wait for a lock of this session.
    Expired,
}

/// How a statement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlayedEnd {
    /// Without an error.
    Success,
    /// With an error of the server: its SQLSTATE.
    Failure(String),
    /// It was not executed, or its response did not come: its session could not connect or lost its connection, or the
    /// playback was stopped.
    NotExecuted,
}

/// Something that happened while sessions were played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaybackEvent {
    /// The playback begins at this time, CLOCK_MONOTONIC in nanoseconds: the origin of the others.
    Starts {
        /// The time, a little in the future.
        origin_ns: u64,
    },
    /// Nothing happened for a moment.
    Idle,
    /// A statement ended.
    Played(Played),
    /// A session connected, after this time in nanoseconds.
    Connected {
        /// The session.
        session: u32,
        /// Process id of its backend.
        pid: i32,
        /// From its first attempt to its session.
        took_ns: u64,
    },
    /// A session could not connect, or lost its connection: its other statements are not executed.
    Broken {
        /// The session.
        session: u32,
        /// The reason, in libpq's words.
        reason: String,
    },
}

/// The outcome of a playback, in addition to its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaybackOutcome {
    /// From the start to the end of the last session, in nanoseconds.
    pub elapsed_ns: u64,
    /// Largest number of sessions at a time.
    pub peak_sessions: u32,
    /// CPU time of this process, user and system, in microseconds.
    pub cpu_us: u64,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// The event loop that was used.
    pub engine: EngineUsed,
}

/// What a thread does.
enum Order {
    Cues(Vec<Cue>),
    /// There are no further cues.
    Finish,
    /// Execute nothing more.
    Stop,
}

/// What a thread reports.
enum Report {
    Event(PlaybackEvent),
    Ended { peak_sessions: u32, engine: EngineUsed },
    Failed(LoadError),
}

/// Error of a playback.
#[derive(Debug)]
pub enum PlaybackError<E> {
    /// Of the driver.
    Driver(LoadError),
    /// Of the cues.
    Cues(E),
}

/// Plays cues to their end, or until `stop` is set: then running statements end, and no other begins. Reports everything
/// that happens to `on_event`.
///
/// # Errors
/// The server's name can't be resolved, the system lacks something, or a cue is an error.
pub fn play<E>(
    playback: &Playback,
    cues: impl Iterator<Item = Result<Cue, E>>,
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(PlaybackEvent),
) -> Result<PlaybackOutcome, PlaybackError<E>> {
    let mut stage = Stage::set(playback).map_err(PlaybackError::Driver)?;
    let from_cpu_us = clock::process_cpu_us();
    on_event(PlaybackEvent::Starts { origin_ns: stage.origin_ns });
    for cue in cues {
        let cue = cue.map_err(PlaybackError::Cues)?;
        if stage.hand_out(cue, stop, on_event).map_err(PlaybackError::Driver)? {
            break;
        }
    }
    stage.finish(stop, on_event).map_err(PlaybackError::Driver)?;
    Ok(PlaybackOutcome {
        elapsed_ns: clock::now_ns().saturating_sub(stage.origin_ns),
        peak_sessions: stage.peak_sessions,
        cpu_us: clock::process_cpu_us() - from_cpu_us,
        stopped: stage.is_stopped,
        engine: stage.engine.take().unwrap_or(EngineUsed { name: "none", reason: None }),
    })
}

/// The threads of a playback.
struct Stage {
    players: Vec<PlayerHandle>,
    progress: Arc<Progress>,
    /// The threads of the open sessions.
    threads: HashMap<u32, usize>,
    reports: Receiver<Report>,
    origin_ns: u64,
    /// Sizes of the statements that are handed out, by tag.
    ahead: HashMap<u64, usize>,
    ahead_bytes: usize,
    ended: usize,
    peak_sessions: u32,
    engine: Option<EngineUsed>,
    is_stopped: bool,
}

struct PlayerHandle {
    orders: Sender<Order>,
    waker: Waker,
    /// Its open sessions, by the cues.
    sessions: u32,
    /// Cues that are not handed out yet: each time costs a system call.
    batch: Vec<Cue>,
}

impl PlayerHandle {
    fn flush(&mut self) {
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.send(Order::Cues(batch));
        }
    }

    fn send(&self, order: Order) {
        // Fails only if the thread has ended, which it reports.
        let _ = self.orders.send(order);
        self.waker.wake();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for player in &self.players {
            player.send(Order::Stop);
        }
    }
}

impl Stage {
    fn set(playback: &Playback) -> Result<Self, LoadError> {
        let threads = playback.threads.max(1);
        limits::raise_file_limit(playback.sessions, threads)?;
        let server = Arc::new(Server::resolve(&playback.connection, |_| 0)?);
        let (sender, reports) = channel();
        // A closed loop begins at once.
        let origin_ns = clock::now_ns() + if playback.closed { 0 } else { LEAD_NS };
        let wakers: Vec<Waker> = (0..threads).map(|_| Waker::new()).collect::<Result<_, _>>()?;
        let progress = Arc::new(Progress::new(wakers.clone()));
        let mut stage = Self {
            players: Vec::new(),
            progress: Arc::clone(&progress),
            threads: HashMap::new(),
            reports,
            origin_ns,
            ahead: HashMap::new(),
            ahead_bytes: 0,
            ended: 0,
            peak_sessions: 0,
            engine: None,
            is_stopped: false,
        };
        for (thread, waker) in wakers.into_iter().enumerate() {
            let (orders, received) = channel();
            let worker = Worker {
                thread,
                progress: Arc::clone(&progress),
                server: Arc::clone(&server),
                sessions: playback.sessions.div_ceil(threads).max(1) as usize,
                closed: playback.closed,
                engine: playback.engine,
                origin_ns,
                orders: received,
                reports: sender.clone(),
                waker: waker.clone(),
            };
            spawn(thread, worker, sender.clone())?;
            stage.players.push(PlayerHandle { orders, waker, sessions: 0, batch: Vec::new() });
        }
        Ok(stage)
    }

    /// Hands out a cue, once there is room. Returns whether the playback was stopped instead.
    fn hand_out(
        &mut self,
        cue: Cue,
        stop: &AtomicBool,
        on_event: &mut dyn FnMut(PlaybackEvent),
    ) -> Result<bool, LoadError> {
        while self.ahead_bytes >= AHEAD_BYTES || self.ahead.len() >= AHEAD_STATEMENTS {
            if self.wait(stop, on_event)? {
                return Ok(true);
            }
        }
        loop {
            match self.reports.try_recv() {
                Ok(report) => self.take(report, on_event)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(no_report()),
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(true);
        }
        if let CueAction::Execute(execution) = &cue.action {
            let size = execution.size();
            self.ahead_bytes += size;
            self.ahead.insert(execution.tag, size);
        }
        let number = self.thread_of(&cue);
        let player = &mut self.players[number];
        player.batch.push(cue);
        if player.batch.len() >= BATCH {
            player.flush();
        }
        Ok(false)
    }

    /// The thread that a cue is for: a session's is that with the fewest open sessions at its beginning. So no thread ever has
    /// more than its part of the recorded peak, which its connections suffice for.
    fn thread_of(&mut self, cue: &Cue) -> usize {
        match cue.action {
            CueAction::Begin { .. } => {
                let fewest = self.players.iter_mut().enumerate().min_by_key(|(_, player)| player.sessions);
                let Some((number, player)) = fewest else { return 0 };
                player.sessions += 1;
                self.threads.insert(cue.session, number);
                self.progress.begin(cue.session);
                number
            }
            CueAction::Execute(_) => self.threads.get(&cue.session).copied().unwrap_or(0),
            CueAction::End => {
                let number = self.threads.remove(&cue.session).unwrap_or(0);
                self.players[number].sessions = self.players[number].sessions.saturating_sub(1);
                number
            }
        }
    }

    /// Waits until all threads have ended.
    fn finish(
        &mut self,
        stop: &AtomicBool,
        on_event: &mut dyn FnMut(PlaybackEvent),
    ) -> Result<(), LoadError> {
        for player in &mut self.players {
            player.flush();
            player.send(Order::Finish);
        }
        while self.ended < self.players.len() {
            self.wait(stop, on_event)?;
        }
        Ok(())
    }

    /// Waits for a report or a stop. Returns whether the playback is stopped.
    fn wait(
        &mut self,
        stop: &AtomicBool,
        on_event: &mut dyn FnMut(PlaybackEvent),
    ) -> Result<bool, LoadError> {
        self.players.iter_mut().for_each(PlayerHandle::flush);
        if stop.load(Ordering::Relaxed) && !self.is_stopped {
            self.is_stopped = true;
            for player in &self.players {
                player.send(Order::Stop);
            }
        }
        match self.reports.recv_timeout(STOP_INTERVAL) {
            Ok(report) => self.take(report, on_event)?,
            Err(RecvTimeoutError::Timeout) => on_event(PlaybackEvent::Idle),
            Err(RecvTimeoutError::Disconnected) => return Err(no_report()),
        }
        Ok(self.is_stopped)
    }

    fn take(&mut self, report: Report, on_event: &mut dyn FnMut(PlaybackEvent)) -> Result<(), LoadError> {
        match report {
            Report::Failed(error) => return Err(error),
            Report::Ended { peak_sessions, engine } => {
                self.ended += 1;
                self.peak_sessions += peak_sessions;
                self.engine = Some(engine);
            }
            Report::Event(event) => {
                if let PlaybackEvent::Played(played) = &event {
                    self.ahead_bytes -= self.ahead.remove(&played.tag).unwrap_or(0);
                }
                on_event(event);
            }
        }
        Ok(())
    }
}

impl Execution {
    /// Memory that it needs, in bytes, about.
    fn size(&self) -> usize {
        let values = self.prepared.iter().flat_map(|prepared| &prepared.values);
        self.text.len()
            + values.map(|value| value.as_ref().map_or(16, |value| value.len() + 16)).sum::<usize>()
            + 64
    }
}

fn no_report() -> LoadError {
    LoadError::Internal("all threads ended without a report".to_owned())
}

/// Starts a thread, which reports a failure even if it panics.
fn spawn(thread: usize, worker: Worker, reports: Sender<Report>) -> Result<(), LoadError> {
    let body = move || {
        let error = match catch_unwind(AssertUnwindSafe(|| worker.run())) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(_) => LoadError::Internal("a thread panicked, see its message above".to_owned()),
        };
        let _ = reports.send(Report::Failed(error));
    };
    thread::Builder::new().name(format!("player-{thread}")).spawn(body).map(drop).map_err(LoadError::Thread)
}
