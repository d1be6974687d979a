//! Ctrl-C: a load ends, and what ran is reported; a statement of an initialization is cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::message::Fatal;

/// What a shell says of a program that a signal ended.
const SIGNALLED: i32 = 128;

/// Which signal came.
pub(super) struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// From now on the first signal has something done, on a thread of its own, and the second ends the program.
    pub(super) fn has(done: impl FnOnce() + Send + 'static) -> Result<Self, Fatal> {
        let refused = |error| Fatal::new(format_args!("could not watch for Ctrl-C: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(refused)?;
        let came = Arc::new(AtomicI32::new(0));
        let tell = Arc::clone(&came);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                let mut done = Some(done);
                for signal in signals.forever() {
                    tell.store(signal, Ordering::SeqCst);
                    match done.take() {
                        Some(done) => drop(thread::spawn(done)),
                        None => drop(emulate_default_handler(signal)),
                    }
                }
            })
            .map_err(refused)?;
        Ok(Self(came))
    }

    /// Whether a signal came.
    pub(super) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The exit code after a signal.
    pub(super) fn exit_code(&self) -> Option<u8> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            signal => u8::try_from(SIGNALLED + signal).ok(),
        }
    }
}
