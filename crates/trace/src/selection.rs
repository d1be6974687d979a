//! Which sessions of a trace to play, and how often.

use crate::filter::SessionFilter;
use crate::statement::Identity;

/// Longest delay of a further copy of a session, in microseconds.
const MAX_DELAY_US: f64 = 1e6;

/// The sessions to play. The same ones are selected each time.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The chosen sessions.
    pub filter: SessionFilter,
    /// How often each of them is played, on average: below 1 a random share of them is, above 1 further copies are.
    pub rate_scale: f64,
}

impl Default for Selection {
    fn default() -> Self {
        Self { filter: SessionFilter::default(), rate_scale: 1.0 }
    }
}

impl Selection {
    /// How often a session is played: the scale, rounded down or up with the probability of its fraction.
    pub fn copies(&self, session: u32, identity: &Identity) -> u32 {
        if !self.filter.chooses(identity) {
            return 0;
        }
        let whole = self.rate_scale.floor();
        whole as u32 + u32::from(uniform(session, 0) < self.rate_scale - whole)
    }

    /// How much later than recorded a copy of a session is played, in microseconds: the first at its time, further ones up to a
    /// second later, so that they are not all at the same row at the same time.
    pub fn delay_us(&self, session: u32, copy: u32) -> u64 {
        if copy == 0 { 0 } else { (uniform(session, copy) * MAX_DELAY_US) as u64 }
    }
}

/// A random number in [0, 1) that depends on both only.
///
/// Source: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014), as in Vigna's splitmix64.
fn uniform(session: u32, copy: u32) -> f64 {
    let seed = (u64::from(copy) << 32) | u64::from(session);
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_played_as_often_as_the_scale_says() {
        let identity = Identity { user: Some("web".into()), ..Identity::default() };
        for rate_scale in [0.1, 0.5, 1.0, 1.25, 3.0] {
            let selection = Selection { rate_scale, ..Selection::default() };
            let copies = |session| selection.copies(session, &identity);
            let total: u32 = (0..10_000).map(copies).sum();
            assert!((f64::from(total) / 10_000.0 - rate_scale).abs() < 0.02, "{rate_scale}: {total}");
            let possible = [rate_scale.floor() as u32, rate_scale.ceil() as u32];
            assert!((0..100).all(|session| possible.contains(&copies(session))), "{rate_scale}");
        }
        let filter = "user=batch".parse().unwrap();
        assert_eq!(Selection { filter, rate_scale: 3.0 }.copies(7, &identity), 0);
    }

    #[test]
    fn further_copies_come_up_to_a_second_later() {
        let selection = Selection { rate_scale: 4.0, ..Selection::default() };
        let delays: Vec<u64> = (0..1000).map(|session| selection.delay_us(session, 3)).collect();
        assert!(delays.iter().all(|delay_us| *delay_us < 1_000_000));
        let mean_us = delays.iter().sum::<u64>() as f64 / 1000.0;
        assert!((mean_us / 500_000.0 - 1.0).abs() < 0.1, "{mean_us}");
        assert_eq!(selection.delay_us(7, 0), 0);
        assert_ne!(selection.delay_us(7, 1), selection.delay_us(7, 2));
    }
}
