//! Start and end of a load's phases and intervals, in nanoseconds after the load's start.

use std::time::Duration;

use model::message::Phase;

use crate::load::Load;

/// Number of hundredths of an interval.
pub(crate) const HUNDREDTHS: u64 = 100;

/// The planned phases of a load; the same in every thread, so that their intervals are the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    warmup_ns: u64,
    end_ns: u64,
    interval_ns: u64,
    drain_start_ns: u64,
}

/// An interval, which lies in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) phase: Phase,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

impl Schedule {
    pub(crate) fn new(load: &Load) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let warmup_ns = ns(load.warmup);
        let end_ns = load.length.map_or(u64::MAX, |time| warmup_ns.saturating_add(ns(time)));
        Self::from_ns(warmup_ns, end_ns, ns(load.interval).max(1))
    }

    pub(crate) fn from_ns(warmup_ns: u64, end_ns: u64, interval_ns: u64) -> Self {
        Self { warmup_ns, end_ns, interval_ns, drain_start_ns: end_ns }
    }

    /// Length of a hundredth of an interval.
    pub(crate) fn hundredth_ns(&self) -> u64 {
        self.interval_ns.div_ceil(HUNDREDTHS)
    }

    /// Start of the measured window.
    pub(crate) fn window_start_ns(&self) -> u64 {
        self.warmup_ns
    }

    /// The interval with this number, from 0.
    pub(crate) fn interval(&self, number: u64) -> Interval {
        let warmup = self.warmup_ns.div_ceil(self.interval_ns);
        let drain = self.first_of_drain();
        let (phase, from, limit, number) = if number < warmup {
            (Phase::Warmup, 0, self.warmup_ns, number)
        } else if number < drain {
            (Phase::Measure, self.warmup_ns, self.end_ns, number - warmup)
        } else {
            (Phase::Drain, self.drain_start_ns, u64::MAX, number - drain)
        };
        let start_ns = from.saturating_add(number.saturating_mul(self.interval_ns));
        Interval { phase, start_ns, end_ns: start_ns.saturating_add(self.interval_ns).min(limit) }
    }

    /// The number of the first interval after the window.
    pub(crate) fn first_of_drain(&self) -> u64 {
        self.warmup_ns.div_ceil(self.interval_ns) + (self.end_ns - self.warmup_ns).div_ceil(self.interval_ns)
    }

    /// Begins the drain earlier than planned. The numbers of its intervals do not change.
    pub(crate) fn stop_at(&mut self, ns: u64) {
        self.drain_start_ns = ns;
    }

    /// Start of the drain.
    pub(crate) fn drain_start_ns(&self) -> u64 {
        self.drain_start_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_touch_and_none_lies_in_two_phases() {
        let schedule = Schedule::from_ns(25, 65, 10);
        let intervals: Vec<_> = (0..9).map(|number| schedule.interval(number)).collect();
        let spans: Vec<_> = intervals.iter().map(|i| (i.phase, i.start_ns, i.end_ns)).collect();
        assert_eq!(
            spans,
            [
                (Phase::Warmup, 0, 10),
                (Phase::Warmup, 10, 20),
                (Phase::Warmup, 20, 25),
                (Phase::Measure, 25, 35),
                (Phase::Measure, 35, 45),
                (Phase::Measure, 45, 55),
                (Phase::Measure, 55, 65),
                (Phase::Drain, 65, 75),
                (Phase::Drain, 75, 85),
            ]
        );
        assert_eq!(schedule.first_of_drain(), 7);
    }

    #[test]
    fn a_stop_moves_the_drain_and_keeps_its_number() {
        let mut schedule = Schedule::from_ns(0, 60, 10);
        schedule.stop_at(33);
        let drain = schedule.interval(schedule.first_of_drain());
        assert_eq!((drain.phase, drain.start_ns, drain.end_ns), (Phase::Drain, 33, 43));
    }

    #[test]
    fn without_warm_up_the_window_is_first() {
        let schedule = Schedule::from_ns(0, 10, 10);
        assert_eq!(schedule.interval(0).phase, Phase::Measure);
        assert_eq!(schedule.interval(1).phase, Phase::Drain);
    }
}
