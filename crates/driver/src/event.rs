//! What the threads of a load, and the runner, tell the main thread.

use model::message::{ClientDeath, Request};

use crate::error::LoadError;
use crate::record::Record;

/// Whatever the main thread has to know of.
pub(crate) enum Event {
    /// The runner asks for something.
    Request(Request),
    /// The runner wrote something else than a request.
    NoRequest(String),
    /// The runner is gone.
    InputClosed,
    /// A thread has connected its clients.
    Connected,
    /// A thread's interval is over.
    Record { thread: usize, record: Box<Record> },
    /// A client is dead.
    Died(ClientDeath),
    /// A thread's last transaction is over; whether it went on to the planned end.
    Drained { thread: usize, reached_end: bool },
    /// A thread has closed its connections and has ended.
    Closed,
    /// A thread cannot go on.
    Failed(LoadError),
}
