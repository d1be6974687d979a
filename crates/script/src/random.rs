//! pgbench's random numbers, identical to those of PostgreSQL 15 and later (`src/common/pg_prng.c`).

/// A generator: xoroshiro128**, seeded by splitmix64.
///
/// D. Blackman and S. Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021. pgbench has one per client for
/// the functions of its scripts, and three per thread ([`Seeds`](crate::Seeds)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomState {
    s0: u64,
    s1: u64,
}

impl RandomState {
    /// Creates the generator of PostgreSQL's `pg_prng_seed`.
    pub fn from_seed(seed: u64) -> Self {
        let mut splitmix = seed;
        let state = RandomState { s0: splitmix64(&mut splitmix), s1: splitmix64(&mut splitmix) };
        if state.s0 == 0 && state.s1 == 0 {
            // A fixed point of the generator. PostgreSQL uses these two numbers instead, from Knuth's MMIX.
            return RandomState { s0: 0x5851_F42D_4C95_7F2D, s1: 0x1405_7B7E_F767_814F };
        }
        state
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s0 = self.s0;
        let mixed = self.s1 ^ s0;
        self.s0 = s0.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.s1 = mixed.rotate_left(37);
        s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// Returns a number from `lo` to `hi`, inclusive; `lo` when there is none. `hi - lo` must fit in 63 bits for
    /// pgbench's `random`, which checks it; this function accepts any bounds.
    #[inline]
    pub fn range_i64(&mut self, lo: i64, hi: i64) -> i64 {
        if hi <= lo {
            return lo;
        }
        lo.wrapping_add_unsigned(self.at_most(hi.wrapping_sub(lo) as u64))
    }

    /// Returns a number in [0, 1), of 52 random bits.
    #[inline]
    pub fn f64(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1_u64 << 52) as f64;
        (self.next_u64() >> 12) as f64 * UNIT
    }

    /// Returns a number from 0 to `max`, inclusive. Draws nothing for 0; else draws as many bits as `max` has, and
    /// again while they exceed `max`.
    #[inline]
    pub(crate) fn at_most(&mut self, max: u64) -> u64 {
        if max == 0 {
            return 0;
        }
        loop {
            let value = self.next_u64() >> max.leading_zeros();
            if value <= max {
                return value;
            }
        }
    }
}

/// G. Steele, D. Lea and C. Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = *state;
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_included_and_nothing_else_is_drawn() {
        let mut random = RandomState::from_seed(1);
        let drawn: Vec<i64> = (0..1000).map(|_| random.range_i64(-1, 1)).collect();
        assert!((-1..=1).all(|value| drawn.contains(&value)));
        assert!(drawn.iter().all(|value| (-1..=1).contains(value)));
    }

    #[test]
    fn a_single_value_draws_nothing() {
        let mut random = RandomState::from_seed(1);
        let before = random.clone();
        assert_eq!(random.range_i64(5, 5), 5);
        assert_eq!(random.range_i64(5, 4), 5);
        assert_eq!(random, before);
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        let mut random = RandomState::from_seed(1);
        for _ in 0..1000 {
            random.range_i64(i64::MIN, i64::MAX);
        }
    }

    #[test]
    fn doubles_are_in_the_unit_interval() {
        let mut random = RandomState::from_seed(1);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.f64())));
    }
}
