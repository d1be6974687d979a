//! Hashes and the pseudorandom permutation, as pgbench computes them.

use crate::RandomState;

/// FNV-1a of the 8 bytes, lowest first, with the offset basis changed by `seed`.
pub(crate) fn fnv1a(value: i64, seed: i64) -> i64 {
    const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    value
        .to_le_bytes()
        .iter()
        .fold(OFFSET_BASIS ^ seed as u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
        as i64
}

/// MurmurHash2 (64 bits, A. Appleby) of one 64-bit word.
pub(crate) fn murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xC6A4_A793_5BD1_E995;
    const SHIFT: u32 = 47;
    let mix = |word: u64| word ^ (word >> SHIFT);
    let word = mix((value as u64).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    let hash = seed as u64 ^ MULTIPLIER.wrapping_mul(8) ^ word;
    mix(mix(hash.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER)) as i64
}

/// Position of `value` (modulo `size`) in the permutation of 0 to `size - 1` that `seed` selects; `size` is positive.
///
/// Six rounds; each scrambles the lower and the upper 2^k values (2^k being the greatest power of two not above `size`)
/// by an odd multiplier, a mask and a rotation, and then rotates the whole range.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let size = size as u64;
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    let mut random = RandomState::from_seed(seed as u64);
    let scramble = |random: &mut RandomState, value: u64| {
        // Both are drawn even if not used.
        let multiplier = (random.next_u64() & mask) | 1;
        let flips = random.next_u64() & mask;
        if value > mask {
            return value;
        }
        let value = (value.wrapping_mul(multiplier) ^ flips) & mask;
        ((value << 1) & mask) | (value >> (bits - 1))
    };

    let mut at = value as u64 % size;
    for _ in 0..6 {
        at = scramble(&mut random, at);
        at = size - 1 - scramble(&mut random, size - 1 - at);
        at = (at + random.at_most(size - 1)) % size;
    }
    at as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permute_is_a_permutation() {
        for size in 1..70 {
            for seed in [0, 1, -1, 5432] {
                let mut images: Vec<i64> = (0..size).map(|value| permute(value, size, seed)).collect();
                images.sort_unstable();
                assert!(images.into_iter().eq(0..size), "size {size}, seed {seed}");
            }
        }
    }
}
