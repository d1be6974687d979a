//! Cost and resolution of reading the clock.

use model::fitness::Clock;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

use crate::root::Root;

/// Readings per round: on some machines a single one takes less than the clock's resolution.
const READINGS: u32 = 100;
/// Number of rounds, of which the median counts.
const ROUNDS: usize = 501;

/// Measures the cost of readings.
pub(super) fn measure(root: &Root) -> Option<Clock> {
    let mut costs: Vec<u64> = (0..ROUNDS).map(|_| round_cost_ns()).collect();
    costs.sort_unstable();
    Some(Clock {
        read_ns: *costs.get(ROUNDS / 2)? as f64 / f64::from(READINGS),
        resolution_ns: ns(&clock_getres(ClockId::Monotonic)),
        timer_slack_ns: root.number("proc/self/timerslack_ns"),
    })
}

fn round_cost_ns() -> u64 {
    let start_ns = ns(&clock_gettime(ClockId::Monotonic));
    for _ in 1..READINGS {
        std::hint::black_box(clock_gettime(ClockId::Monotonic));
    }
    ns(&clock_gettime(ClockId::Monotonic)).saturating_sub(start_ns)
}

fn ns(time: &Timespec) -> u64 {
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
