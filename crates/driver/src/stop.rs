//! Stop requests, shared by the threads of a load.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether a load must end, and how.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicU8);

const REQUESTED: u8 = 1;
const ABORT_REQUESTED: u8 = 2;

impl Stop {
    /// Keeps further transactions from beginning.
    pub(crate) fn request(&self) {
        self.0.fetch_max(REQUESTED, Ordering::Relaxed);
    }

    /// Requests that running transactions be aborted, too.
    pub(crate) fn request_abort(&self) {
        self.0.fetch_max(ABORT_REQUESTED, Ordering::Relaxed);
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= REQUESTED
    }

    pub(crate) fn is_abort_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ABORT_REQUESTED
    }
}
