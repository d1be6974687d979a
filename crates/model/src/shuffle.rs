//! Random order, the same for the same seed in every release.

/// SplitMix64 (Steele, Lea, Flood 2014): never to be changed, because a recorded seed must always give the same order.
#[derive(Clone, Debug)]
pub struct Shuffler(u64);

impl Shuffler {
    /// Starts with a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Shuffles items (Fisher-Yates); the bias of the multiply-shift reduction is below 2⁻⁴⁰ for any number of cells a
    /// campaign can have.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let pick = ((u128::from(self.next()) * (last as u128 + 1)) >> 64) as usize;
            items.swap(last, pick);
        }
    }
}
