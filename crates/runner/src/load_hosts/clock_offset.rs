//! How far the clock of another host is from this one's, by exchanges of four times.
//!
//! Source: RFC 5905 (NTP version 4), section 8: of an exchange that leaves at t1, arrives at t2, is answered at t3 and comes back
//! at t4, the offset is ((t2 − t1) + (t3 − t4)) / 2, and its error at most half of the round trip (t4 − t1) − (t3 − t2), which is
//! reached if one way took no time at all. The shortest of several round trips therefore has the best bound.

use model::record::ClockReading;

/// Reads the clocks of this host.
pub(super) type ReadClock = Box<dyn Fn() -> ClockReading>;

/// Rounding of four times to whole microseconds, and of two halves.
const ROUNDING_US: u64 = 3;

/// An exchange of times, each by the clock of the host that read it, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// The request was sent, by this host's clock.
    pub(crate) sent_us: i64,
    /// It was received, by the other host's.
    pub(crate) received_us: i64,
    /// It was answered, by the other host's.
    pub(crate) answered_us: i64,
    /// The answer was received, by this host's.
    pub(crate) returned_us: i64,
}

/// The offset of a clock: the other host's less this one's, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockOffset {
    pub(crate) offset_us: i64,
    /// Its largest possible error.
    pub(crate) bound_us: u64,
}

impl Exchange {
    /// Time on the way, there and back.
    pub(crate) fn round_trip_us(&self) -> u64 {
        let whole_us = self.returned_us.saturating_sub(self.sent_us);
        u64::try_from(whole_us.saturating_sub(self.answered_us.saturating_sub(self.received_us))).unwrap_or(0)
    }
}

impl From<Exchange> for ClockOffset {
    fn from(exchange: Exchange) -> Self {
        let Exchange { sent_us, received_us, answered_us, returned_us } = exchange;
        Self {
            offset_us: received_us
                .saturating_sub(sent_us)
                .saturating_add(answered_us.saturating_sub(returned_us))
                / 2,
            bound_us: exchange.round_trip_us().div_ceil(2) + ROUNDING_US,
        }
    }
}

impl ClockOffset {
    /// The largest possible error of this offset until a later one was measured: clocks drift.
    pub(crate) fn bound_until_us(self, later: Self) -> u64 {
        self.bound_us.max(self.offset_us.abs_diff(later.offset_us).saturating_add(later.bound_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An exchange with a clock that is ahead by `offset_us`, with these times on the way.
    fn exchange(offset_us: i64, there_us: i64, answer_us: i64, back_us: i64) -> Exchange {
        let sent_us = 1_000_000;
        let received_us = sent_us + there_us;
        let answered_us = received_us + answer_us;
        Exchange {
            sent_us,
            received_us: received_us + offset_us,
            answered_us: answered_us + offset_us,
            returned_us: answered_us + back_us,
        }
    }

    #[test]
    fn the_error_is_within_the_bound_however_unlike_the_ways_are() {
        for offset_us in [0, 500_000, -500_000, -7_000_000_000] {
            for (there_us, back_us) in [(0, 0), (50, 50), (900, 100), (0, 1_000), (1_001, 0)] {
                for answer_us in [0, 3, 20_000] {
                    let exchange = exchange(offset_us, there_us, answer_us, back_us);
                    assert_eq!(exchange.round_trip_us(), (there_us + back_us) as u64);
                    let found = ClockOffset::from(exchange);
                    let error_us = found.offset_us.abs_diff(offset_us);
                    assert!(error_us <= found.bound_us, "{found:?} of {offset_us}");
                    assert!(found.bound_us <= (there_us + back_us) as u64 / 2 + 4, "{found:?}");
                }
            }
        }
    }

    #[test]
    fn a_way_that_takes_no_time_reaches_the_bound() {
        let found = ClockOffset::from(exchange(0, 1_000, 0, 0));
        assert_eq!((found.offset_us, found.bound_us), (500, 500 + ROUNDING_US));
    }

    #[test]
    fn drift_widens_the_bound() {
        let first = ClockOffset { offset_us: 1_000, bound_us: 50 };
        assert_eq!(first.bound_until_us(ClockOffset { offset_us: 1_010, bound_us: 20 }), 50);
        assert_eq!(first.bound_until_us(ClockOffset { offset_us: 900, bound_us: 30 }), 130);
    }
}
