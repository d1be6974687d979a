//! How the end of a load is asked for, across its threads.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether a load is to end, and how.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicU8);

const ASKED: u8 = 1;
const CUT_OFF: u8 = 2;

impl Stop {
    /// Has no further transaction begin.
    pub(crate) fn ask(&self) {
        self.0.fetch_max(ASKED, Ordering::Relaxed);
    }

    /// Has those that run not come to their ends.
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
