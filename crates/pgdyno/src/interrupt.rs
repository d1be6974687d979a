//! Ctrl-C: the first SIGINT, SIGTERM or SIGHUP requests an orderly end, the second ends the process.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// Signals that request an orderly end. A terminal that is closed sends SIGHUP.
pub(crate) const END_SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Ends the process at once; servers and the driver end with it.
pub(crate) fn exit(_signal: i32) {
    signal_hook::low_level::exit(i32::from(Exit::Interrupted.code()));
}

/// Flag that the first signal sets; the second one ends the process.
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in handled(&END_SIGNALS) {
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

/// Calls `on_signal` at each of these signals, on a thread of its own.
///
/// # Errors
/// The system refuses the handler or the thread.
pub(crate) fn on_each_signal(signals: &[i32], on_signal: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(handled(signals))?;
    let watch = move || signals.forever().for_each(on_signal);
    thread::Builder::new().name("signals".to_owned()).spawn(watch).map(drop)
}

/// Runs `first` on a thread of its own at the first of these signals, and `then` at each later one.
///
/// # Errors
/// The system refuses the handler or the thread.
pub(crate) fn on_first_signal(
    signals: &[i32],
    first: impl FnOnce(i32) + Send + 'static,
    then: impl Fn(i32) + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new(handled(signals))?;
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

/// These signals, without a SIGHUP that nohup(1) has made this process ignore.
fn handled(signals: &[i32]) -> Vec<i32> {
    let keeps_running = is_ignored(SIGHUP);
    signals.iter().copied().filter(|signal| *signal != SIGHUP || !keeps_running).collect()
}

/// Whether this process ignores a signal. Source: proc(5), `SigIgn` in `/proc/self/status`.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (signal - 1)) != 0
}
