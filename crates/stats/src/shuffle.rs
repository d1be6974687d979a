//! Random orders and choices.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// Puts the values in random order, each order as likely as any other.
///
/// Source: Durstenfeld, "Algorithm 235: Random Permutation", Communications of the ACM 7 (1964).
pub(crate) fn shuffle<T>(values: &mut [T], random: &mut Xoshiro256PlusPlus) {
    for last in (1..values.len()).rev() {
        values.swap(last, below(last + 1, random));
    }
}

/// A random number from 0 to `bound` − 1.
///
/// Source: Lemire, "Fast Random Integer Generation in an Interval", ACM Transactions on Modeling and Computer Simulation
/// 29 (2019), without his rejection, which for bounds below a million takes back less than one draw in 10¹³.
pub(crate) fn below(bound: usize, random: &mut Xoshiro256PlusPlus) -> usize {
    ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize
}
