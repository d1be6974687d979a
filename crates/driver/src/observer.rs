//! What a load tells while it runs.

use std::time::Duration;

use model::record::ClockReading;

use crate::record::Record;

/// Observes a load as it runs, on the thread that called [`run`](crate::run).
pub trait Observer {
    /// Every client is connected, after this time; `background`: process ids of the backends of clients outside the
    /// main group.
    fn connected(&mut self, took: Duration, background: &[i32]);
    /// The load begins, now.
    fn started(&mut self, at: ClockReading);
    /// An interval is over, or the last one is cut short by the end of the load or of a phase.
    fn interval(&mut self, record: &Record);
    /// Something to say.
    fn on_message(&mut self, message: &DriverMessage);
}

/// Something that happened to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverMessage {
    /// When, in nanoseconds after the load's start; 0 before.
    pub at_ns: u64,
    /// The client, from 0.
    pub client: u32,
    /// The script that it runs, by its place in the load.
    pub script: usize,
    /// The line of the command that it executes; 0 where there is none.
    pub line: u32,
    /// What kind of message it is.
    pub level: Level,
    /// SQLSTATE, where the server said one.
    pub sqlstate: Option<String>,
    /// The message, in pgbench's words, without a level or program name.
    pub text: String,
    /// Whether the client is aborted by it.
    pub aborted: bool,
}

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Steps, with [`Verbosity::debug`](crate::Verbosity).
    Debug,
    /// Errors that do not end a client, with [`Verbosity::errors`](crate::Verbosity).
    Info,
    /// What ends a client, or the load.
    Error,
    /// Text to print as it is: the server's notices, the script's `debug()`.
    Plain,
}

/// What came of a load besides its records.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the start to the end of the last client's last transaction, in nanoseconds.
    pub elapsed_ns: u64,
    /// Length of the measured window as it was, in nanoseconds.
    pub window_ns: u64,
    /// Whether a stop, or the end of every client, ended it early.
    pub stopped_early: bool,
    /// Clients that were aborted.
    pub aborted: u32,
    /// Transactions of an open loop whose time had come and that were not begun before the end, since every client was
    /// busy.
    pub missed: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// CPU time of the driver process from the start to the end, user and system, in microseconds.
    pub cpu_us: u64,
    /// The event loop that ran, and why, where it was not the one asked for.
    pub engine: EngineUsed,
}

/// The event loop that a load ran on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineUsed {
    /// `epoll` or `io_uring`.
    pub name: &'static str,
    /// Why `auto` did not take io_uring.
    pub reason: Option<String>,
}
