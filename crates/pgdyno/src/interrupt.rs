//! Ctrl-C: the first SIGINT or SIGTERM requests an orderly end, the second ends the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// Ends the process at once; servers and the driver end with it.
pub(crate) fn exit(_signal: i32) {
    signal_hook::low_level::exit(i32::from(Exit::Interrupted.code()));
}

/// Flag that the first signal sets; the second one ends the process.
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag set by the first.
        signal_hook::flag::register_conditional_shutdown(
            signal,
            i32::from(Exit::Interrupted.code()),
            Arc::clone(&interrupt),
        )
        .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupt)))
        .context("could not handle Ctrl-C")?;
    }
    Ok(interrupt)
}

/// Runs `first` on a thread of its own at the first signal, and `then` at each later one.
///
/// # Errors
/// The system refuses the handler or the thread.
pub(crate) fn on_first_signal(
    first: impl FnOnce(i32) + Send + 'static,
    then: impl Fn(i32) + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let mut first = Some(first);
    let watch = move || {
        for signal in signals.forever() {
            match first.take() {
                Some(first) => drop(thread::spawn(move || first(signal))),
                None => then(signal),
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(watch).map(drop)
}
