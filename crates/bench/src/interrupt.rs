//! Ending a load early, as by Ctrl-C.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driver::{Control, Stopper};

/// A request to end, from any thread; clones share it.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    requested: bool,
    /// Stops the running load.
    stopper: Option<Stopper>,
}

impl Interrupt {
    /// Ends the running load, and keeps others but the teardown from starting.
    pub fn request(&self) {
        let mut state = self.state();
        state.requested = true;
        if let Some(stopper) = &state.stopper {
            stopper.stop();
        }
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.state().requested
    }

    /// The control of a load that the interrupt stops, or keeps from starting.
    pub(crate) fn control(&self) -> Control {
        let control = Control::default();
        let mut state = self.state();
        if state.requested {
            control.stopper().stop();
        }
        state.stopper = Some(control.stopper());
        control
    }

    /// The control of a load that runs in any case.
    pub(crate) fn uninterruptible(&self) -> Control {
        self.state().stopper = None;
        Control::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves the state valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
