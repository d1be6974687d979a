//! Ctrl-C: the first signal asks for an orderly end, the second ends the process.

use std::io;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// Ends the process at once; servers and the driver end with it.
pub(crate) fn exit(_signal: i32) {
    signal_hook::low_level::exit(i32::from(Exit::Interrupted.code()));
}

/// Runs `first` on a thread of its own when SIGINT or SIGTERM arrives, and `further` at each one after it.
///
/// # Errors
/// The system refuses the handler or the thread.
pub(crate) fn on_first_signal(
    first: impl FnOnce(i32) + Send + 'static,
    further: impl Fn(i32) + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let mut first = Some(first);
    let watch = move || {
        for signal in signals.forever() {
            match first.take() {
                Some(first) => drop(thread::spawn(move || first(signal))),
                None => further(signal),
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(watch).map(drop)
}
