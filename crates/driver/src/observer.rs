//! Events of a running load.

use std::time::Duration;

use model::message::Slice;
use model::record::ClockReading;

use crate::record::{Intended, Record};

/// Observer of a running load, on the thread that called [`run`](crate::run).
pub trait Observer {
    /// All clients are connected, after this time; `background`: process ids of the backends of clients outside the
    /// main group.
    fn connected(&mut self, took: Duration, background: &[i32]);
    /// The load begins: its times count from `at`, and its threads get to know this much later.
    fn started(&mut self, at: ClockReading, late: Duration);
    /// An interval has ended; the end of the load or of a phase cuts the last one short.
    fn interval(&mut self, record: &Record);
    /// A slice of a load in slices has ended.
    fn paused(&mut self, _slice: &Slice) {}
    /// A message about a client.
    fn on_message(&mut self, message: &DriverMessage);
}

/// A message about a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverMessage {
    /// Time, in nanoseconds after the load's start; 0 before.
    pub at_ns: u64,
    /// The client, from 0.
    pub client: u32,
    /// Number of its script in the load's order.
    pub script: usize,
    /// Line of the command being executed; 0 if there is none.
    pub line: u32,
    /// Kind of the message.
    pub level: Level,
    /// SQLSTATE, if the server reported one.
    pub sqlstate: Option<String>,
    /// The message, in pgbench's words, without a level or program name.
    pub text: String,
    /// Whether the client is aborted.
    pub aborted: bool,
}

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Steps, with [`Verbosity::debug`](crate::Verbosity).
    Debug,
    /// Errors that do not end a client, with [`Verbosity::errors`](crate::Verbosity).
    Info,
    /// Errors that end a client or the load.
    Error,
    /// Text to print as it is: the server's notices, the script's `debug()`.
    Plain,
}

/// The outcome of a load, in addition to its records.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the start to the end of the last client's last transaction, in nanoseconds.
    pub elapsed_ns: u64,
    /// Actual length of the measured window, in nanoseconds.
    pub window_ns: u64,
    /// Whether a stop, or the end of every client, ended it early. A load in slices ends by a stop.
    pub stopped_early: bool,
    /// Clients that were aborted.
    pub aborted: u32,
    /// Transactions of an open loop that were due before the end but not begun, because every client was busy.
    pub missed: u64,
    /// The same of each background group, in their order.
    pub background_missed: Vec<u64>,
    /// Transactions of an open loop that were to start in the measured window, by script of the main group; empty in a
    /// closed loop.
    pub intended: Vec<Intended>,
    /// Connections opened.
    pub connections: u64,
    /// CPU time of the driver process from the start to the end, user and system, in microseconds.
    pub cpu_us: u64,
    /// The event loop that was used, and the reason if it is not the requested one.
    pub engine: EngineUsed,
}

/// The event loop that a load ran on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineUsed {
    /// `epoll` or `io_uring`.
    pub name: &'static str,
    /// Reason why `auto` could not choose io_uring.
    pub reason: Option<String>,
}
