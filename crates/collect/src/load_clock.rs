//! Start, times and end of a load, for the threads that collect during it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::now;

/// Start of a load, and its measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// `CLOCK_MONOTONIC` at the load's start, in microseconds: the origin of all times.
    pub origin_us: i64,
    /// Start of the measured window, in microseconds after the origin.
    pub from_us: i64,
    /// Its end.
    pub to_us: i64,
}

/// The load as seen by collectors' threads: they wait for its start, for a time during it, for its end.
#[derive(Debug, Default)]
pub(crate) struct LoadClock {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    window: Option<Window>,
    has_ended: bool,
    is_paused: bool,
}

/// Result of a wait.
pub(crate) enum Tick {
    /// The time has come.
    Due,
    /// The load ended before.
    Ended,
}

impl LoadClock {
    /// Reports the load's start.
    pub(crate) fn start(&self, window: Window) {
        self.change(|state| state.window = Some(window));
    }

    /// Reports that the load has ended, or that there will be none.
    pub(crate) fn end(&self) {
        self.change(|state| state.has_ended = true);
    }

    /// Reports that the load pauses or goes on.
    pub(crate) fn set_paused(&self, is_paused: bool) {
        self.change(|state| state.is_paused = is_paused);
    }

    /// Whether the load pauses.
    pub(crate) fn is_paused(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_paused
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits for the load's start; none without a load.
    pub(crate) fn wait_for_start(&self) -> Option<Window> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.window.is_none() && !state.has_ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.window
    }

    /// Waits for the load's end.
    pub(crate) fn wait_for_end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.has_ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until a time after the load's start, or for its end.
    pub(crate) fn wait_until(&self, window: Window, due_us: i64) -> Tick {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.has_ended {
                return Tick::Ended;
            }
            let left_us = window.origin_us + due_us - now().monotonic_us;
            let Ok(left_us @ 1..) = u64::try_from(left_us) else { return Tick::Due };
            let waited = self.changed.wait_timeout(state, Duration::from_micros(left_us));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
