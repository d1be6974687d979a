//! Events for the main thread, sent by the threads of a load and by `Stopper`s.

use crate::error::LoadError;
use crate::observer::{DriverMessage, EngineUsed};
use crate::record::Record;

/// An event for the main thread.
pub(crate) enum Event {
    /// End the load: no further transaction may begin.
    Stop,
    /// Abort the transactions in flight of a stopped load.
    Abort,
    /// End the load at once with an error, without an outcome.
    Abandon(LoadError),
    /// A thread has connected its clients.
    Connected { engine: EngineUsed, background: Vec<i32> },
    /// A thread's interval has ended.
    Record { thread: usize, record: Box<Record> },
    /// A message about a client.
    Message(DriverMessage),
    /// A thread's last transaction has ended.
    Drained {
        thread: usize,
        /// Whether it ran to the planned end.
        reached_end: bool,
        /// See [`Outcome::missed`](crate::Outcome::missed).
        missed: u64,
    },
    /// A thread has closed its connections and has ended.
    Closed,
    /// A thread failed.
    Failed(LoadError),
}
