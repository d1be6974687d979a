//! What the threads of a load, and whoever asks it to stop, tell the main thread.

use crate::error::LoadError;
use crate::observer::{DriverMessage, EngineUsed};
use crate::record::Record;

/// Whatever the main thread has to know of.
pub(crate) enum Event {
    /// The load is to end: no further transaction is to begin.
    Stop,
    /// A load that was stopped is not to wait any longer.
    CutOff,
    /// The load is to end at once, and nobody wants to know what came of it.
    Abandon(LoadError),
    /// A thread has connected its clients.
    Connected { engine: EngineUsed, background: Vec<i32> },
    /// A thread's interval is over.
    Record { thread: usize, record: Box<Record> },
    /// Something happened to a client.
    Message(DriverMessage),
    /// A thread's last transaction is over.
    Drained {
        thread: usize,
        /// Whether it went on to the planned end.
        reached_end: bool,
        /// See [`Outcome::missed`](crate::Outcome::missed).
        missed: u64,
    },
    /// A thread has closed its connections and has ended.
    Closed,
    /// A thread cannot go on.
    Failed(LoadError),
}
