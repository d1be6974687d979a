//! How far a long step has come.

use crate::error::Error;

/// Who is told. May be called from several threads.
pub trait Progress: Sync {
    /// `done` of `total` parts of the step `what` are behind; none where the total is not known.
    fn step(&self, what: &str, done: u64, total: Option<u64>);

    /// Whether the user wants to stop. Long steps look at it and end with [`Error::Interrupted`].
    fn interrupted(&self) -> bool {
        false
    }

    /// Something the user should know though the step goes on, such as "offline: 18.1 is used as it is cached".
    fn notice(&self, text: &str) {
        tracing::warn!("{text}");
    }
}

/// Ends a long step where the user wants to stop.
pub fn unless_interrupted(progress: &dyn Progress) -> Result<(), Error> {
    if progress.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
}
