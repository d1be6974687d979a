//! Intended starts of transactions.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use script::RandomState;

/// Intended starts of a load's transactions.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// A closed loop: a client starts its next transaction when the previous one has ended.
    Closed,
    /// An open loop at a rate, whether or not the server keeps up.
    Rate(Rate),
    /// An open loop at given times after the load's start, in order.
    Given(Arc<[Duration]>),
}

impl Arrivals {
    /// Whether starts follow a schedule, independent of the server.
    pub fn is_open(&self) -> bool {
        *self != Self::Closed
    }
}

/// A rate that may change over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// Parts of the schedule; the last one continues at its final rate until the load ends.
    pub stages: Vec<Stage>,
    /// Spacing of transactions at a rate.
    pub spacing: Spacing,
}

/// A part of the schedule, in which the rate changes linearly from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Length.
    pub length: Duration,
    /// Transactions per second at its start, of all clients together.
    pub from: f64,
    /// Transactions per second at its end.
    pub to: f64,
}

/// Spacing of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Random, as from many independent users (pgbench's `--rate`).
    Poisson,
    /// Evenly.
    Uniform,
}

impl Rate {
    /// A constant rate, in transactions per second.
    pub fn constant(rate: f64, spacing: Spacing) -> Self {
        Self { stages: vec![Stage { length: Duration::MAX, from: rate, to: rate }], spacing }
    }
}

/// The intended starts of each group, which all threads take from: a free client has the next one, whichever thread it
/// belongs to.
pub(crate) struct SharedSlots {
    groups: Vec<Mutex<Slots>>,
    /// Threads that may still take some.
    threads: AtomicUsize,
}

impl SharedSlots {
    pub(crate) fn new(groups: Vec<Slots>, threads: usize) -> Self {
        Self { groups: groups.into_iter().map(Mutex::new).collect(), threads: AtomicUsize::new(threads) }
    }

    /// The next intended start of a group; None if no further one is planned.
    #[inline]
    pub(crate) fn next_ns(&self, group: usize) -> Option<u64> {
        self.groups.get(group)?.lock().unwrap_or_else(PoisonError::into_inner).next_ns()
    }

    /// Marks a thread as one that takes no further ones. Returns whether it is the last.
    pub(crate) fn leave(&self) -> bool {
        self.threads.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// The intended starts of a group's transactions in order, in nanoseconds after the load's start.
pub(crate) struct Slots {
    source: Source,
    random: RandomState,
    /// Arrivals of other hosts before the next own one.
    skipped: u32,
    /// The same after that.
    of_others: u32,
}

enum Source {
    Closed,
    Rate {
        stages: Vec<Part>,
        stage: usize,
        /// Position in the stage, in seconds.
        into_s: f64,
        spacing: Spacing,
    },
    Given {
        times: Arc<[Duration]>,
        next: usize,
    },
}

/// A stage, in seconds.
struct Part {
    start_s: f64,
    length_s: f64,
    from: f64,
    to: f64,
}

impl Slots {
    pub(crate) fn new(arrivals: &Arrivals, random: RandomState) -> Self {
        let source = match arrivals {
            Arrivals::Closed => Source::Closed,
            Arrivals::Given(times) => Source::Given { times: Arc::clone(times), next: 0 },
            Arrivals::Rate(rate) => {
                let mut start_s = 0.0;
                let stages = rate.stages.iter().map(|stage| {
                    let length_s = stage.length.as_secs_f64();
                    let part = Part { start_s, length_s, from: stage.from, to: stage.to };
                    start_s += length_s;
                    part
                });
                Source::Rate { stages: stages.collect(), stage: 0, into_s: 0.0, spacing: rate.spacing }
            }
        };
        Self { source, random, skipped: 0, of_others: 0 }
    }

    /// Leaves this many arrivals to other hosts before the first, and between any two.
    pub(crate) fn sharing(self, (before, between): (u32, u32)) -> Self {
        Self { skipped: before, of_others: between, ..self }
    }

    /// The next intended start on this host; None if no further one is planned.
    #[inline]
    pub(crate) fn next_ns(&mut self) -> Option<u64> {
        for _ in 0..mem::replace(&mut self.skipped, self.of_others) {
            self.next_of_all_ns()?;
        }
        self.next_of_all_ns()
    }

    /// The next intended start on any host.
    #[inline]
    fn next_of_all_ns(&mut self) -> Option<u64> {
        match &mut self.source {
            Source::Closed => None,
            Source::Given { times, next } => {
                let time = times.get(*next)?;
                *next += 1;
                Some(time.as_nanos() as u64)
            }
            Source::Rate { stages, stage, into_s, spacing } => {
                // Integral of the rate over the time until the next transaction.
                let mut needed = match spacing {
                    Spacing::Uniform => 1.0,
                    Spacing::Poisson => -(1.0 - self.random.f64()).ln(),
                };
                loop {
                    let part = stages.get(*stage)?;
                    let last = *stage + 1 == stages.len();
                    if last && *into_s >= part.length_s {
                        // After its end the last stage continues at its final rate.
                        if part.to <= 0.0 {
                            return None;
                        }
                        *into_s += needed / part.to;
                        break;
                    }
                    let slope = if part.length_s > 0.0 && part.from != part.to {
                        (part.to - part.from) / part.length_s
                    } else {
                        0.0
                    };
                    let rate = part.from + slope * *into_s;
                    let left_s = (part.length_s - *into_s).max(0.0);
                    let left =
                        if rate > 0.0 || slope != 0.0 { left_s * (rate + slope * left_s / 2.0) } else { 0.0 };
                    // The last transaction of a ramp may fall on its end, within rounding.
                    if needed <= left * (1.0 + 1e-9) && left > 0.0 {
                        *into_s += time_for(needed, rate, slope);
                        break;
                    }
                    needed -= left;
                    if last {
                        *into_s = part.length_s;
                        if !part.length_s.is_finite() || part.length_s > 1e18 {
                            return None;
                        }
                    } else {
                        *stage += 1;
                        *into_s = 0.0;
                    }
                }
                let at_s = stages.get(*stage)?.start_s + *into_s;
                Some((at_s * 1e9) as u64)
            }
        }
    }
}

/// Time until `needed` transactions have begun at a linearly changing rate: the smaller root of
/// `rate t + slope t² / 2 = needed`.
fn time_for(needed: f64, rate: f64, slope: f64) -> f64 {
    if slope == 0.0 {
        return needed / rate;
    }
    // The form without cancellation.
    2.0 * needed / (rate + (rate * rate + 2.0 * slope * needed).max(0.0).sqrt())
}

#[cfg(test)]
mod tests {
    use model::part::Part;
    use script::Seeds;

    use super::*;

    fn slots(arrivals: &Arrivals) -> Slots {
        Slots::new(arrivals, Seeds::draw(1, 1, 1, false).threads.remove(0).throttle)
    }

    fn starts_ms(rate: Rate, count: usize) -> Vec<u64> {
        let mut slots = slots(&Arrivals::Rate(rate));
        std::iter::from_fn(|| slots.next_ns()).take(count).map(|ns| (ns + 500_000) / 1_000_000).collect()
    }

    fn stage(seconds: u64, from: f64, to: f64) -> Stage {
        Stage { length: Duration::from_secs(seconds), from, to }
    }

    #[test]
    fn uniform_spacing_is_even() {
        assert_eq!(starts_ms(Rate::constant(10.0, Spacing::Uniform), 3), [100, 200, 300]);
    }

    #[test]
    fn steps_and_pauses_are_kept() {
        let stages = vec![stage(1, 2.0, 2.0), stage(2, 0.0, 0.0), stage(1, 4.0, 4.0)];
        let starts = starts_ms(Rate { stages, spacing: Spacing::Uniform }, 5);
        assert_eq!(starts, [500, 1000, 3250, 3500, 3750]);
    }

    #[test]
    fn a_ramp_rises_and_then_stays() {
        // 8 in the first 4 s: the n-th at √(2n).
        let rate = Rate { stages: vec![stage(4, 0.0, 4.0)], spacing: Spacing::Uniform };
        let starts = starts_ms(rate, 10);
        assert_eq!(&starts[..2], [1414, 2000]);
        assert_eq!(&starts[7..], [4000, 4250, 4500]);
    }

    #[test]
    fn a_final_rate_of_zero_ends_the_arrivals() {
        let rate = Rate { stages: vec![stage(2, 2.0, 0.0)], spacing: Spacing::Uniform };
        assert_eq!(starts_ms(rate, 5).len(), 2);
        assert!(starts_ms(Rate::constant(0.0, Spacing::Poisson), 5).is_empty());
    }

    #[test]
    fn poisson_arrivals_have_the_requested_rate() {
        let mut slots = slots(&Arrivals::Rate(Rate::constant(1000.0, Spacing::Poisson)));
        let last = std::iter::from_fn(|| slots.next_ns()).nth(9_999).unwrap();
        // 10,000 in 10 s, with a standard deviation of 1 %.
        assert!((last as f64 / 10e9 - 1.0).abs() < 0.04, "{last}");
    }

    #[test]
    fn hosts_take_turns_in_one_schedule() {
        let starts = |slots: &mut Slots| std::iter::from_fn(|| slots.next_ns()).take(300).collect::<Vec<_>>();
        for spacing in [Spacing::Poisson, Spacing::Uniform] {
            let arrivals = Arrivals::Rate(Rate::constant(1000.0, spacing));
            let whole = starts(&mut slots(&arrivals));
            for hosts in [1, 3] {
                for part in Part::all(hosts) {
                    let own = starts(&mut slots(&arrivals).sharing(part.arrivals_of_others(8)));
                    let expected = whole.iter().skip(part.host as usize).step_by(hosts as usize);
                    assert!(own.iter().zip(expected.clone()).all(|(own, of_whole)| own == of_whole));
                    assert!(expected.count() >= 100 && own.len() == 300);
                }
            }
        }
        let given = Arrivals::Given([1, 2, 3, 4].map(Duration::from_nanos).into());
        let second = Part { host: 1, hosts: 3 };
        assert_eq!(starts(&mut slots(&given).sharing(second.arrivals_of_others(3))), [2]);
    }

    #[test]
    fn threads_share_the_slots_and_the_last_one_to_leave_knows() {
        let given = Arrivals::Given([1, 2, 3].map(Duration::from_nanos).into());
        let shared = SharedSlots::new(vec![slots(&given)], 2);
        let other = std::thread::scope(|scope| scope.spawn(|| shared.next_ns(0)).join().unwrap());
        assert_eq!((other, shared.next_ns(0)), (Some(1), Some(2)));
        assert!(!shared.leave());
        assert_eq!((shared.next_ns(0), shared.next_ns(0)), (Some(3), None));
        assert!(shared.leave());
    }
}
