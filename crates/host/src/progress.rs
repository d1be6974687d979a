//! Progress of long steps.

use crate::error::Error;

/// Receiver of progress. May be called from several threads.
pub trait Progress: Sync {
    /// Reports that `done` of `total` parts of the step `what` are done; none if the total is unknown.
    fn step(&self, what: &str, done: u64, total: Option<u64>);

    /// Whether the user wants to stop. Long steps check it and end with [`Error::Interrupted`].
    fn interrupted(&self) -> bool {
        false
    }

    /// Reports a message while the step continues, such as "offline: 18.1 is used as it is cached".
    fn notice(&self, text: &str) {
        tracing::warn!("{text}");
    }
}

/// Ignores progress, and never ends a step.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}
}

/// Ends a long step if the user wants to stop.
pub fn check_interrupted(progress: &dyn Progress) -> Result<(), Error> {
    if progress.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
}
