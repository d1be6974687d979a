//! The load of one thread: its clients' transactions, from the start of the load until every connection is closed.

use std::sync::mpsc::Sender;

use model::message::{ClientDeath, Phase};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use wire::{Answer, TransactionStatus, encode};

use crate::client::{Client, State};
use crate::clock;
use crate::error::LoadError;
use crate::event::Event;
use crate::poll::{Happening, Interest, Poll};
use crate::program::Program;
use crate::recorder::Recorder;
use crate::schedule::DRAIN_LIMIT_NS;

/// How many bytes are received in one call.
const BUFFER: usize = 64 * 1024;

/// After how many full buffers in a row the other clients have their turn.
const FULL_BUFFERS: usize = 4;

/// How long the server may take to close the connections that were taken leave of.
const CLOSE_LIMIT_NS: u64 = 5_000_000_000;

/// There is one script; its place in records.
const SCRIPT: usize = 0;

/// One thread's clients, and what drives them.
pub(crate) struct EventLoop<'a> {
    poll: Poll,
    program: &'a Program,
    recorder: Recorder,
    events: Sender<Event>,
    clients: Vec<Client>,
    /// How many clients are in a transaction.
    busy: usize,
    /// Clients that may have more to read than was read.
    unread: Vec<usize>,
    unread_before: Vec<usize>,
    received: Box<[u8]>,
    outgoing: Vec<u8>,
}

/// Whether there was something to send.
#[derive(PartialEq, Eq)]
enum Sent {
    /// A statement, or an end of the client: what comes next is the server's, or nothing.
    Something,
    /// The script is at its end.
    Nothing,
}

/// Why a client cannot go on.
struct Death {
    sqlstate: Option<String>,
    message: String,
    /// Whether the connection is still good for a leave-taking.
    connected: bool,
}

impl<'a> EventLoop<'a> {
    /// A loop over clients whose sockets are in the poll set under their places in `clients`.
    pub(crate) fn new(
        poll: Poll,
        program: &'a Program,
        recorder: Recorder,
        events: Sender<Event>,
        clients: Vec<Client>,
    ) -> Self {
        Self {
            poll,
            program,
            recorder,
            events,
            clients,
            busy: 0,
            unread: Vec::new(),
            unread_before: Vec::new(),
            received: vec![0; BUFFER].into_boxed_slice(),
            outgoing: Vec::with_capacity(4096),
        }
    }

    /// Runs transactions until the load is over and the last one has ended. True if it ran to its planned end; false
    /// after a stop, or where no client is left.
    pub(crate) fn run(&mut self) -> Result<bool, LoadError> {
        for at in 0..self.clients.len() {
            self.begin(at, clock::now_ns())?;
        }
        let mut timer_ns = 0;
        let mut stopped = false;
        while self.busy > 0 {
            let draining = self.recorder.phase() == Phase::Drain;
            let cut_ns = self.recorder.drain_start_ns().saturating_add(DRAIN_LIMIT_NS);
            let alarm_ns = self.recorder.boundary_ns().min(if draining { cut_ns } else { u64::MAX });
            if alarm_ns != timer_ns {
                self.poll.set_timer(alarm_ns)?;
                timer_ns = alarm_ns;
            }
            let from_ns = clock::now_ns();
            let happenings = self.poll.wait(!self.unread.is_empty())?;
            let woken_ns = clock::now_ns();
            self.recorder.waited(from_ns, woken_ns)?;
            let woken = self.handle(happenings, woken_ns)?;
            if woken {
                stopped |= self.recorder.stop(clock::now_ns())?;
            }
            if draining && woken_ns >= cut_ns {
                self.cut_off();
            }
        }
        let reached_end = self.recorder.phase() == Phase::Drain && !stopped;
        self.recorder.finish(clock::now_ns())?;
        Ok(reached_end)
    }

    /// Takes leave of the server and waits until it has closed every connection, and so has counted everything.
    pub(crate) fn close(mut self) -> Result<(), LoadError> {
        for at in 0..self.clients.len() {
            if self.clients[at].state == State::Idle {
                self.leave(at);
            }
        }
        let deadline_ns = clock::now_ns() + CLOSE_LIMIT_NS;
        self.poll.set_timer(deadline_ns)?;
        while self.clients.iter().any(|client| client.state == State::Leaving) {
            let happenings = self.poll.wait(!self.unread.is_empty())?;
            let now_ns = clock::now_ns();
            self.handle(happenings, now_ns)?;
            if now_ns >= deadline_ns {
                break;
            }
        }
        Ok(())
    }

    /// Handles what the last wait brought at `woken_ns`. True if another thread has woken this one.
    fn handle(&mut self, happenings: usize, woken_ns: u64) -> Result<bool, LoadError> {
        let mut woken = false;
        // Those that were left over by the last round, not by this one.
        std::mem::swap(&mut self.unread, &mut self.unread_before);
        for at in 0..happenings {
            match self.poll.happening(at) {
                Happening::Socket { number, writable, hangup } => {
                    if writable {
                        self.flush(number)?;
                    }
                    self.receive(number, hangup, woken_ns)?;
                }
                Happening::Timer => {}
                Happening::Woken => woken = true,
            }
        }
        while let Some(number) = self.unread_before.pop() {
            self.receive(number, true, woken_ns)?;
        }
        Ok(woken)
    }

    /// Reads what a client's socket has. One that has given less than it could have is empty, and its next bytes are an
    /// event; after a hangup there is none, so that it has to be read to its end.
    #[inline]
    fn receive(&mut self, at: usize, hangup: bool, woken_ns: u64) -> Result<(), LoadError> {
        for _ in 0..FULL_BUFFERS {
            let Some(socket) = &self.clients[at].socket else { return Ok(()) };
            let received = match recv(socket, &mut *self.received, RecvFlags::empty()) {
                Ok((_, 0)) => {
                    self.closed_by_server(at, None);
                    return Ok(());
                }
                Ok((_, received)) => received,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(error) => {
                    self.closed_by_server(at, Some(error));
                    return Ok(());
                }
            };
            self.take(at, received, woken_ns)?;
            if received < BUFFER && !hangup {
                return Ok(());
            }
        }
        self.unread.push(at);
        Ok(())
    }

    /// Takes in bytes of the buffer for a client.
    #[inline]
    fn take(&mut self, at: usize, received: usize, woken_ns: u64) -> Result<(), LoadError> {
        let mut from = 0;
        while from < received {
            let client = &mut self.clients[at];
            if client.state == State::Leaving || client.state == State::Gone {
                return Ok(());
            }
            match client.reader.feed(&self.received[from..received]) {
                Ok((taken, answer)) => {
                    from += taken;
                    if let Some(answer) = answer {
                        self.answered(at, answer, woken_ns)?;
                    }
                }
                Err(error) => self.die(at, Death::of_connection(None, error.to_string())),
            }
        }
        Ok(())
    }

    /// A client's statement is answered.
    #[inline]
    fn answered(&mut self, at: usize, answer: Answer, woken_ns: u64) -> Result<(), LoadError> {
        let now_ns = clock::now_ns();
        self.recorder.handled(woken_ns, now_ns)?;
        if self.clients[at].state != State::Busy {
            self.die(at, Death::of_connection(None, "the server answers what nobody asked".to_owned()));
            return Ok(());
        }
        if answer.failed {
            self.refused(at);
            return Ok(());
        }
        if self.send_next(at)? == Sent::Something {
            return Ok(());
        }
        if answer.status != TransactionStatus::Idle {
            let place = self.clients[at].place(self.program);
            self.die(at, Death::of_script(format!("{place} leaves a transaction block open")));
            return Ok(());
        }
        let client = &mut self.clients[at];
        self.recorder.succeeded(SCRIPT, now_ns.saturating_sub(client.intended_ns));
        self.busy -= 1;
        client.state = State::Idle;
        if self.recorder.phase() == Phase::Drain { Ok(()) } else { self.begin(at, now_ns) }
    }

    /// Begins a client's next transaction, which was to begin at `intended_ns`.
    #[inline]
    fn begin(&mut self, at: usize, intended_ns: u64) -> Result<(), LoadError> {
        self.busy += 1;
        self.clients[at].begin(intended_ns);
        // A program has at least one statement.
        self.send_next(at).map(drop)
    }

    /// Sends a client's next statement, unless the script is at its end.
    #[inline]
    fn send_next(&mut self, at: usize) -> Result<Sent, LoadError> {
        let client = &mut self.clients[at];
        self.outgoing.clear();
        match client.next_statement(self.program, &mut self.outgoing) {
            Ok(false) => return Ok(Sent::Nothing),
            Ok(true) => {}
            Err(error) => {
                let message = format!("{} cannot be evaluated: {error}", client.place(self.program));
                self.die(at, Death::of_script(message));
                return Ok(Sent::Something);
            }
        }
        let Some(socket) = &client.socket else { return Ok(Sent::Something) };
        let sent = if client.unsent.is_empty() {
            match send(socket, &self.outgoing, SendFlags::NOSIGNAL) {
                Ok(sent) => sent,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                // What the server has to say about it is still to be read, and its end is an event.
                Err(_) => return Ok(Sent::Something),
            }
        } else {
            0
        };
        if sent < self.outgoing.len() {
            client.unsent.extend_from_slice(&self.outgoing[sent..]);
            self.poll.change(socket, at, Interest::ReadWrite)?;
        }
        Ok(Sent::Something)
    }

    /// Sends what a client's socket had no room for.
    #[cold]
    fn flush(&mut self, at: usize) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        let Some(socket) = &client.socket else { return Ok(()) };
        while !client.unsent.is_empty() {
            match send(socket, &client.unsent, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(client.unsent.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                // As in `send_next`.
                Err(_) => client.unsent.clear(),
            }
        }
        self.poll.change(socket, at, Interest::Read)?;
        Ok(())
    }

    /// The server has refused a client's statement.
    #[cold]
    fn refused(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let error = client.reader.take_error().unwrap_or_default();
        let message = format!("{} failed: {error}", client.place(self.program));
        self.die(at, Death { sqlstate: error.code().map(str::to_owned), message, connected: true });
    }

    /// The server has closed a client's connection, or it is broken.
    #[cold]
    fn closed_by_server(&mut self, at: usize, error: Option<Errno>) {
        let client = &mut self.clients[at];
        if client.state != State::Busy {
            client.forget();
            return;
        }
        let place = client.place(self.program);
        let last_words = client.reader.take_error();
        let sqlstate = last_words.as_ref().and_then(|words| words.code().map(str::to_owned));
        let message = match (last_words, error) {
            (Some(words), _) => format!("the server closed the connection in {place}: {words}"),
            (None, Some(error)) => format!("the connection broke in {place}: {error}"),
            (None, None) => format!(
                "the server closed the connection in {place} without a word: it has crashed or was killed, its log may \
                 say more"
            ),
        };
        self.die(at, Death::of_connection(sqlstate, message));
    }

    /// Ends a client for good, and with it its transaction.
    #[cold]
    fn die(&mut self, at: usize, death: Death) {
        let client = &mut self.clients[at];
        if client.state == State::Busy {
            self.busy -= 1;
            self.recorder.failed(SCRIPT);
        }
        client.state = State::Idle;
        let death_told = ClientDeath {
            at_us: self.recorder.since_start_us(clock::now_ns()),
            client: client.number,
            sqlstate: death.sqlstate,
            message: death.message,
        };
        // Nobody listens any more only where the process is about to end.
        let _ = self.events.send(Event::Died(death_told));
        if death.connected {
            self.leave(at);
        } else {
            client.forget();
        }
    }

    /// Cuts the transactions off that are still running.
    #[cold]
    fn cut_off(&mut self) {
        for at in 0..self.clients.len() {
            if self.clients[at].state == State::Busy {
                let place = self.clients[at].place(self.program);
                let seconds = DRAIN_LIMIT_NS / 1_000_000_000;
                let message =
                    format!("{place} still ran {seconds} s after the end of the load, and was cut off");
                self.die(at, Death::of_connection(None, message));
            }
        }
    }

    /// Tells the server that a client leaves. What it still says is of no interest, only its end.
    fn leave(&mut self, at: usize) {
        self.outgoing.clear();
        encode::terminate(&mut self.outgoing);
        let client = &mut self.clients[at];
        let Some(socket) = &client.socket else { return };
        let unsent = !client.unsent.is_empty();
        match send(socket, &self.outgoing, SendFlags::NOSIGNAL) {
            Ok(sent) if sent == self.outgoing.len() && !unsent => client.state = State::Leaving,
            _ => client.forget(),
        }
    }
}

impl Death {
    /// The script is to blame; the connection is not.
    fn of_script(message: String) -> Self {
        Self { sqlstate: None, message, connected: true }
    }

    fn of_connection(sqlstate: Option<String>, message: String) -> Self {
        Self { sqlstate, message, connected: false }
    }
}
