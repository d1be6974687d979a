//! Ending a bench early, as by Ctrl-C.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use driver::Control;

use crate::error::RunError;

/// A request to end, from any thread; clones share it.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    requested: bool,
    /// Ends what is running.
    end: Option<Box<dyn FnOnce() + Send>>,
}

impl Interrupt {
    /// Ends what is running, and keeps everything but the teardown from starting.
    pub fn request(&self) {
        let mut state = self.state();
        state.requested = true;
        if let Some(end) = state.end.take() {
            end();
        }
    }

    /// Whether the end was requested.
    pub fn is_requested(&self) -> bool {
        self.state().requested
    }

    /// The error of an interrupt while something was done.
    ///
    /// # Errors
    /// There was an interrupt.
    pub(crate) fn check(&self, doing: impl FnOnce() -> String) -> Result<(), RunError> {
        if self.is_requested() { Err(RunError::Interrupted { doing: doing() }) } else { Ok(()) }
    }

    /// The control of a load that the interrupt stops, or keeps from starting.
    pub(crate) fn control(&self) -> Control {
        let control = Control::default();
        let stopper = control.stopper();
        self.on_request(move || stopper.stop());
        control
    }

    /// The control of a load that runs in any case.
    pub(crate) fn uninterruptible(&self) -> Control {
        self.state().end = None;
        Control::default()
    }

    /// Runs work that may block for ever on a thread of its own, and waits for its outcome. After an interrupt the thread
    /// is left alone; it ends with the process.
    ///
    /// # Errors
    /// The work fails; the user interrupts it; no thread can be started.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        doing: impl FnOnce() -> String,
        work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        let (sender, outcome) = channel();
        let interrupted = sender.clone();
        self.on_request(move || drop(interrupted.send(None)));
        thread::Builder::new().spawn(move || drop(sender.send(Some(work())))).map_err(RunError::Thread)?;
        match outcome.recv() {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => Err(RunError::Interrupted { doing: doing() }),
        }
    }

    fn on_request(&self, end: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if state.requested {
            end();
        } else {
            state.end = Some(Box::new(end));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves the state valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
