//! A load in slices, as one side of a session.

use std::mem;
use std::time::{Duration, Instant};

use driver::DriverError;
use model::message::{Request, Slice};
use model::paired::MeasuredSlice;

use crate::alternation::{AlternatingSide, Turn};
use crate::driver_handle::Driver;

/// A load that alternates with that of the other side of its session.
pub(crate) struct SlicedLoad<'a> {
    side: &'a AlternatingSide<'a>,
    server_counts: &'a mut dyn FnMut() -> ServerCounts,
    /// The counts at the last start or end of a slice.
    last: ServerCounts,
    slice: Option<RunningSlice>,
}

/// A slice that runs, or whose last transactions end.
#[derive(Clone, Copy)]
struct RunningSlice {
    until: Instant,
    is_warmup: bool,
    is_ending: bool,
    paused_cpu_us: Option<u64>,
}

/// What a server's processes have used since its start.
#[derive(Clone, Copy, Default)]
pub(crate) struct ServerCounts {
    /// CPU time, in microseconds; none if unknown.
    pub(crate) cpu_us: Option<f64>,
    /// Instructions of its programs; none where the CPU does not count them.
    pub(crate) instructions: Option<u64>,
}

/// The next step of a load in slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The other side has the load.
    Paused,
    /// A slice of this length has begun.
    Resumed(Duration),
    /// A slice runs; there is nothing to do for this long.
    Running(Duration),
    /// The last transactions of a slice end.
    Ending,
    /// All slices have ended.
    End,
    /// The other side has left.
    Alone,
}

impl<'a> SlicedLoad<'a> {
    /// A side's load, of which no slice has run.
    pub(crate) fn new(
        side: &'a AlternatingSide<'a>,
        server_counts: &'a mut dyn FnMut() -> ServerCounts,
    ) -> Self {
        Self { side, server_counts, last: ServerCounts::default(), slice: None }
    }

    /// Reports that the clients are connected.
    pub(crate) fn ready(&self) {
        self.side.ready();
    }

    /// Waits for the side's turn, no longer than `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) {
        self.side.turn(timeout);
    }

    /// Begins or ends a slice if its time has come.
    ///
    /// # Errors
    /// The driver has exited.
    pub(crate) fn step(&mut self, driver: &mut dyn Driver, now: Instant) -> Result<Step, DriverError> {
        let Some(slice) = &mut self.slice else { return self.begin(driver, now) };
        let left = slice.until.saturating_duration_since(now);
        if slice.is_ending {
            return Ok(Step::Ending);
        }
        if !left.is_zero() {
            return Ok(Step::Running(left));
        }
        slice.is_ending = true;
        driver.send(&Request::Pause)?;
        Ok(Step::Ending)
    }

    fn begin(&mut self, driver: &mut dyn Driver, now: Instant) -> Result<Step, DriverError> {
        let (length, is_warmup) = match self.side.turn(Duration::ZERO) {
            Turn::Wait => return Ok(Step::Paused),
            Turn::End => return Ok(Step::End),
            Turn::Alone => return Ok(Step::Alone),
            Turn::Run { length, is_warmup } => (length, is_warmup),
        };
        let (paused_cpu_us, _) = self.used();
        driver.send(&Request::Resume)?;
        self.slice = Some(RunningSlice { until: now + length, is_warmup, is_ending: false, paused_cpu_us });
        Ok(Step::Resumed(length))
    }

    /// Ends the slice, whose counts these are, and gives the other side its turn. Returns what was measured; none of a warm-up.
    pub(crate) fn end(&mut self, load: Slice) -> Option<MeasuredSlice> {
        let RunningSlice { is_warmup, paused_cpu_us, .. } = self.slice.take()?;
        let (server_cpu_us, server_instructions) = self.used();
        let slice = MeasuredSlice { load, server_cpu_us, paused_cpu_us, server_instructions };
        self.side.end_slice(slice.latency_us());
        (!is_warmup).then_some(slice)
    }

    /// CPU time in microseconds and instructions of the server since the last start or end of a slice.
    fn used(&mut self) -> (Option<u64>, Option<u64>) {
        let now = (self.server_counts)();
        let last = mem::replace(&mut self.last, now);
        let cpu_us = now.cpu_us.zip(last.cpu_us).map(|(now, last)| (now - last).max(0.0) as u64);
        (cpu_us, now.instructions.zip(last.instructions).map(|(now, last)| now.saturating_sub(last)))
    }
}
