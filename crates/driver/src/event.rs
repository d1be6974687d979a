//! Events for the main thread, sent by the threads of a load and by `Stopper`s.

use crate::error::LoadError;
use crate::observer::{DriverMessage, EngineUsed};
use crate::record::Record;
use crate::turns::SliceCounts;

/// How the load of one thread ended.
pub(crate) struct ThreadEnd {
    /// Whether it ran to its planned end, not to a stop or until no client was left.
    pub(crate) reached_end: bool,
    /// See [`Outcome::missed`](crate::Outcome::missed).
    pub(crate) missed: u64,
    /// See [`Outcome::background_missed`](crate::Outcome::background_missed).
    pub(crate) background_missed: Vec<u64>,
}

/// An event for the main thread.
pub(crate) enum Event {
    /// End the load: no further transaction may begin.
    Stop,
    /// Abort the transactions in flight of a stopped load.
    Abort,
    /// Begin a slice.
    Resume,
    /// End the slice.
    Pause,
    /// Begin the load at this time, CLOCK_MONOTONIC.
    Start { at_ns: u64 },
    /// The transactions of a thread's slice have ended.
    SliceEnded { thread: usize, counts: SliceCounts },
    /// End the load at once with an error, without an outcome.
    Abandon(LoadError),
    /// A thread has connected its clients.
    Connected { engine: EngineUsed, background: Vec<i32> },
    /// A thread's interval has ended.
    Record { thread: usize, record: Box<Record> },
    /// A message about a client.
    Message(DriverMessage),
    /// A thread's last transaction has ended.
    Drained { thread: usize, ended: ThreadEnd },
    /// A thread has closed its connections and has ended.
    Closed,
    /// A thread failed.
    Failed(LoadError),
}
