//! Interrupting work on a server that pgdyno does not own: the running statement is cancelled, as it may take hours and
//! hold locks.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use host::{Progress, check_interrupted};

use crate::control::{Control, Newest};
use crate::error::Error;

/// Interval between looks for an interrupt, and between cancel requests: one that arrives between two statements has no effect.
const INTERVAL: Duration = Duration::from_millis(100);

impl Control {
    /// Runs work in sessions of the control that it is given. If the user wants to stop, the statement of the session that was
    /// opened last is cancelled.
    ///
    /// # Errors
    /// Those of the work; the user wants to stop.
    pub(super) fn while_wanted(
        &self,
        progress: &dyn Progress,
        work: impl FnOnce(&Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        check_interrupted(progress)?;
        let newest = Newest::default();
        let control = self.keeping(Arc::clone(&newest));
        let outcome = thread::scope(|scope| {
            let (done, is_done) = mpsc::channel::<()>();
            scope.spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(INTERVAL) {
                    if !progress.interrupted() {
                        continue;
                    }
                    let canceller = newest.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    if let Some(Err(error)) = canceller.map(|canceller| canceller.cancel()) {
                        tracing::debug!("the request to cancel the running statement failed: {error}");
                    }
                }
            });
            let outcome = work(&control);
            drop(done);
            outcome
        });
        match outcome {
            Err(_) if progress.interrupted() => Err(host::Error::Interrupted.into()),
            outcome => outcome,
        }
    }
}
