//! Stop requests, shared by the threads of a load.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether a load must end, and how.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicU8);

const ASKED: u8 = 1;
const CUT_OFF: u8 = 2;

impl Stop {
    /// Keeps further transactions from beginning.
    pub(crate) fn ask(&self) {
        self.0.fetch_max(ASKED, Ordering::Relaxed);
    }

    /// Requests that running transactions be aborted, too.
    pub(crate) fn cut_off(&self) {
        self.0.fetch_max(CUT_OFF, Ordering::Relaxed);
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ASKED
    }

    pub(crate) fn cuts_off(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= CUT_OFF
    }
}
