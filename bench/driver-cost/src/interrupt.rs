//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Exit code after Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Whether the user has interrupted.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// The first Ctrl-C (or SIGTERM) requests an orderly end, the second ends at once; the server ends with this
    /// process either way, and the next start removes files that it left.
    pub(crate) fn on_signals() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds the flag set by the first.
            signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&flag))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
                .context("could not handle Ctrl-C")?;
        }
        Ok(Self(flag))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns an error once the user has interrupted.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() {
            bail!("interrupted");
        }
        Ok(())
    }
}
