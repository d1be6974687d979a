//! Ctrl-C: the first one has the running load stop and be reported, the second one ends the process.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context;
use driver::{Control, Stopper};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// Whether the user has had enough.
#[derive(Clone, Default)]
pub(super) struct Interrupt(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    interrupted: bool,
    /// Stops the running load.
    stopper: Option<Stopper>,
}

impl Interrupt {
    /// Watches for signals, as long as the process lives.
    pub(super) fn watch() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("could not watch for Ctrl-C")?;
        let watcher = interrupt.clone();
        let heed = move || {
            for _ in signals.forever() {
                watcher.happened();
            }
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(heed)
            .context("could not watch for Ctrl-C")?;
        Ok(interrupt)
    }

    fn happened(&self) {
        let mut state = self.state();
        if state.interrupted {
            signal_hook::low_level::exit(i32::from(Exit::Interrupted.code()));
        }
        state.interrupted = true;
        if let Some(stopper) = &state.stopper {
            stopper.stop();
        }
    }

    /// What controls a load that Ctrl-C stops, or keeps from beginning.
    pub(super) fn control(&self) -> Control {
        let control = Control::default();
        let mut state = self.state();
        if state.interrupted {
            control.stopper().stop();
        }
        state.stopper = Some(control.stopper());
        control
    }

    /// What controls a load that has to run whatever has happened. Only the second Ctrl-C ends it, with the process.
    pub(super) fn uninterrupted(&self) -> Control {
        self.state().stopper = None;
        Control::default()
    }

    pub(super) fn happened_already(&self) -> bool {
        self.state().interrupted
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // There is nothing in it that a panic could leave half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
