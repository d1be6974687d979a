//! Ctrl-C: a load ends and is reported; a statement of an initialization is cancelled.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::message::Fatal;

/// Action on a signal; takes the signal's number.
pub type SignalAction = Box<dyn FnOnce(i32) + Send>;

/// Registers an action for the first SIGINT or SIGTERM from now on, which runs on its own thread. The second signal
/// ends the process.
pub type OnSignal<'a> = dyn Fn(SignalAction) -> io::Result<()> + 'a;

/// Offset that a shell adds to the number of the signal that ended a program.
const SIGNALLED: i32 = 128;

/// The signal that has interrupted this run, if any.
pub(crate) struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// Registers `action` for the first signal from now on.
    pub(crate) fn new(
        on_signal: &OnSignal<'_>,
        action: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Fatal> {
        let received = Arc::new(AtomicI32::new(0));
        let number = Arc::clone(&received);
        on_signal(Box::new(move |signal| {
            number.store(signal, Ordering::SeqCst);
            action();
        }))
        .map_err(|error| Fatal::new(format_args!("could not watch for Ctrl-C: {error}")))?;
        Ok(Self(received))
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The exit code after a signal.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            signal => u8::try_from(SIGNALLED + signal).ok(),
        }
    }
}
