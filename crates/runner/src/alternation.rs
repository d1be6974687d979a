//! The slices of a session: which of its two sides has the load, and for how long. Each side runs its trial in a thread of its
//! own, and waits here for its turns.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::paired::{GUARD, Side};
use model::shuffle::Shuffler;

/// Transactions of a client that a slice has room for: with fewer, its ends would matter.
const MIN_TRANSACTIONS: f64 = 10.0;

/// The most that slices are lengthened for that.
const MAX_FACTOR: u32 = 20;

/// The alternation of load between the two sides of a session.
pub(crate) struct Alternation {
    /// The side of each slice, the warm-up's first.
    order: Vec<Side>,
    /// Number of slices of the warm-up.
    warmups: usize,
    warmup: Duration,
    slice: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By side, whether its clients are connected.
    is_ready: [bool; 2],
    /// By side, whether its trial no longer takes part.
    has_left: [bool; 2],
    /// Number of slices that have ended.
    ended: usize,
    /// Largest mean latency in a slice of the warm-up, in microseconds; of one without counted transactions, its length.
    latency_us: f64,
}

/// What a side has to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Turn {
    /// Run a slice of this length; a warm-up slice does not count.
    Run { length: Duration, is_warmup: bool },
    /// Wait: the other side has the load, or is not ready.
    Wait,
    /// End the load: all slices have ended.
    End,
    /// End the load: the other side has left before its slices ended.
    Alone,
}

impl Alternation {
    /// The alternation of a session: each side has the load for `warmup`, in one slice, and in a slice of each of its pairs. The seed
    /// determines the order in each pair.
    pub(crate) fn new(warmup: Duration, slice: Duration, pairs: u32, seed: u64) -> Self {
        let mut random = Shuffler::new(seed);
        let pair = |_| {
            let mut pair = [Side::A, Side::B];
            random.shuffle(&mut pair);
            pair
        };
        let warmups = if warmup.is_zero() { 0 } else { 1 };
        Self {
            order: (0..warmups + pairs).flat_map(pair).collect(),
            warmups: 2 * warmups as usize,
            warmup,
            slice,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// One side of it.
    pub(crate) const fn side(&self, side: Side) -> AlternatingSide<'_> {
        AlternatingSide { alternation: self, side }
    }

    fn turn(&self, side: Side, state: &State) -> Turn {
        let Some(next) = self.order.get(state.ended) else { return Turn::End };
        if state.has_left[side.other().index()] {
            return Turn::Alone;
        }
        if state.is_ready.contains(&false) || *next != side {
            return Turn::Wait;
        }
        let is_warmup = self.is_warmup(state.ended);
        Turn::Run { length: if is_warmup { self.warmup } else { self.length(state.latency_us) }, is_warmup }
    }

    fn is_warmup(&self, slice: usize) -> bool {
        slice < self.warmups
    }

    /// Length of a slice that transactions of this latency fit in.
    fn length(&self, latency_us: f64) -> Duration {
        let needed =
            Duration::try_from_secs_f64(latency_us * MIN_TRANSACTIONS / 1e6).unwrap_or(Duration::MAX);
        needed.clamp(self.slice, self.slice * MAX_FACTOR)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.lock());
        self.changed.notify_all();
    }
}

/// A side of a session. When it is dropped, the other side learns that it has left.
pub(crate) struct AlternatingSide<'a> {
    alternation: &'a Alternation,
    side: Side,
}

impl AlternatingSide<'_> {
    /// Which side it is.
    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    /// Time at the start of a slice whose transactions do not count, in microseconds.
    pub(crate) fn guard_us(&self) -> u64 {
        self.alternation.slice.mul_f64(GUARD).as_micros() as u64
    }

    /// Reports that this side's clients are connected.
    pub(crate) fn ready(&self) {
        self.alternation.change(|state| state.is_ready[self.side.index()] = true);
    }

    /// What to do; waits up to `timeout` for something other than waiting.
    pub(crate) fn turn(&self, timeout: Duration) -> Turn {
        let deadline = Instant::now() + timeout;
        let mut state = self.alternation.lock();
        loop {
            let turn = self.alternation.turn(self.side, &state);
            let left = deadline.saturating_duration_since(Instant::now());
            if turn != Turn::Wait || left.is_zero() {
                return turn;
            }
            let waited = self.alternation.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends this side's slice, with the mean latency in it; none if no transaction was counted: a warm-up shorter than the guard has
    /// none, and one shorter than a transaction neither.
    pub(crate) fn end_slice(&self, latency_us: Option<f64>) {
        let alternation = self.alternation;
        alternation.change(|state| {
            if alternation.is_warmup(state.ended) {
                let at_least_us = alternation.warmup.as_micros() as f64;
                state.latency_us = state.latency_us.max(latency_us.unwrap_or(at_least_us));
            }
            state.ended += 1;
        });
    }
}

impl Drop for AlternatingSide<'_> {
    fn drop(&mut self) {
        self.alternation.change(|state| state.has_left[self.side.index()] = true);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn alternation() -> Alternation {
        Alternation::new(Duration::from_millis(200), Duration::from_millis(50), 15, 1)
    }

    #[test]
    fn each_pair_has_both_sides_in_an_order_that_is_drawn() {
        let order = alternation().order;
        assert_eq!(order.len(), 32);
        let pairs: Vec<&[Side]> = order.chunks(2).collect();
        assert!(pairs.iter().all(|pair| pair[0] == pair[1].other()));
        let a_first = pairs.iter().filter(|pair| pair[0] == Side::A).count();
        assert!((3..=13).contains(&a_first), "{a_first}");
    }

    /// Two threads take their turns: never both at once, and each has its warm-up and its pairs.
    #[test]
    fn sides_run_one_at_a_time() {
        let alternation = alternation();
        let running = Mutex::new(());
        let run = |side| {
            let side = alternation.side(side);
            side.ready();
            let (mut warmups, mut slices) = (0, 0);
            loop {
                match side.turn(Duration::from_secs(30)) {
                    Turn::Run { length, is_warmup } => {
                        let alone = running.try_lock().expect("the other side runs");
                        let expected = if is_warmup { 200 } else { 50 };
                        assert_eq!(length, Duration::from_millis(expected));
                        if is_warmup {
                            warmups += 1
                        } else {
                            slices += 1
                        }
                        drop(alone);
                        side.end_slice(Some(100.0));
                    }
                    Turn::End => return (warmups, slices),
                    turn => panic!("{turn:?}"),
                }
            }
        };
        thread::scope(|scope| {
            let sides = [Side::A, Side::B].map(|side| scope.spawn(move || run(side)));
            assert_eq!(sides.map(|side| side.join().unwrap()), [(1, 15); 2]);
        });
    }

    #[test]
    fn a_side_waits_until_both_are_ready_and_learns_that_the_other_has_left() {
        let alternation = alternation();
        let (a, b) = (alternation.side(Side::A), alternation.side(Side::B));
        a.ready();
        assert_eq!((a.turn(NOW), b.turn(NOW)), (Turn::Wait, Turn::Wait));
        b.ready();
        let turns = [a.turn(NOW), b.turn(NOW)];
        assert!(turns.contains(&Turn::Wait) && turns.iter().any(|turn| matches!(turn, Turn::Run { .. })));
        drop(b);
        assert_eq!(a.turn(NOW), Turn::Alone);
    }

    #[test]
    fn long_transactions_lengthen_the_slices_of_both_sides() {
        let lengths_of = |alternation: Alternation, latencies_us: [Option<f64>; 2]| {
            let sides = [alternation.side(Side::A), alternation.side(Side::B)];
            sides.iter().for_each(AlternatingSide::ready);
            for latency_us in latencies_us {
                let ended = alternation.lock().ended;
                sides[alternation.order[ended].index()].end_slice(latency_us);
            }
            let turns = sides.each_ref().map(|side| side.turn(NOW));
            turns.into_iter().find_map(|turn| match turn {
                Turn::Run { length, is_warmup: false } => Some(length.as_millis()),
                _ => None,
            })
        };
        let lengths = |latencies_us| lengths_of(alternation(), latencies_us);
        assert_eq!(lengths([Some(100.0), Some(200.0)]), Some(50));
        assert_eq!(lengths([Some(10_000.0), Some(200.0)]), Some(100));
        assert_eq!(lengths([Some(100.0), None]), Some(1000));
        // The guard is longer than the warm-up, so that none of its transactions counts.
        let long = Alternation::new(Duration::from_millis(100), Duration::from_secs(2), 15, 1);
        assert_eq!(lengths_of(long, [None, None]), Some(2000));
    }
}
