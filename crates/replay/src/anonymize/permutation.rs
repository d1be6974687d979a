//! Permutations of numbers by a key: a number below a bound becomes another one below it, and no two become the same.
//!
//! A balanced Feistel network over the next even number of bits, repeated until the number is below the bound (cycle
//! walking: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). It hides the values of a trace; it is not a
//! standardised encryption.

use std::io;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Rounds of the network.
const ROUNDS: u8 = 8;
/// Largest bound that [`Key::permuted`] takes.
pub(super) const MAX_BOUND: u128 = 1 << 126;

/// The key of replacements.
pub struct Key(Hmac<Sha256>);

impl Key {
    /// A key from bytes of any length.
    pub fn new(bytes: &[u8]) -> Self {
        let mut block = [0; 64];
        block[..32].copy_from_slice(&Sha256::digest(bytes));
        Self(Hmac::new(&block.into()))
    }

    /// A random key that nobody knows.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
        Ok(Self::new(&bytes))
    }

    /// The key in a file, without its last line break.
    ///
    /// # Errors
    /// It can't be read, or is shorter than 16 bytes.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        let bytes = std::fs::read(path)?;
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if bytes.len() < 16 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a key has at least 16 bytes"));
        }
        Ok(Self::new(bytes))
    }

    /// 256 bits that depend on the key and these texts.
    pub(super) fn bits(&self, texts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        for text in texts {
            mac.update(&(text.len() as u64).to_le_bytes());
            mac.update(text);
        }
        mac.finalize().into_bytes().into()
    }

    /// The number that takes the place of `number` among those below `bound`, which is at most [`MAX_BOUND`]. Each
    /// `domain` has a permutation of its own.
    pub(super) fn permuted(&self, domain: &[u8], bound: u128, number: u128) -> u128 {
        if bound < 2 || number >= bound {
            return number;
        }
        let half = (128 - (bound - 1).leading_zeros()).div_ceil(2);
        let mask = (1_u128 << half) - 1;
        let mut value = number;
        loop {
            let (mut left, mut right) = (value >> half, value & mask);
            for round in 0..ROUNDS {
                let bits = self.bits(&[domain, &bound.to_le_bytes(), &[round], &right.to_le_bytes()]);
                let [first, _] = bits.as_chunks::<16>().0 else { return number };
                (left, right) = (right, left ^ (u128::from_le_bytes(*first) & mask));
            }
            value = left << half | right;
            if value < bound {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn numbers_below_a_bound_are_permuted() {
        let key = Key::new(b"key");
        for bound in [1, 2, 3, 9, 10, 26, 100, 1000, 4097] {
            let permuted: HashSet<u128> =
                (0..bound).map(|number| key.permuted(b"a", bound, number)).collect();
            assert_eq!(permuted.len() as u128, bound);
            assert!(permuted.iter().all(|number| *number < bound));
        }
        let unchanged = (0..1000).filter(|number| key.permuted(b"a", 1000, *number) == *number).count();
        assert!(unchanged < 10, "{unchanged}");
        let largest = key.permuted(b"a", MAX_BOUND, MAX_BOUND - 1);
        assert!(largest < MAX_BOUND && largest != MAX_BOUND - 1);
    }

    #[test]
    fn a_key_file_has_at_least_sixteen_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, "fifteen bytes..\n").unwrap();
        assert!(Key::from_file(&path).is_err());
        std::fs::write(&path, "sixteen bytes...\n").unwrap();
        let key = Key::from_file(&path).unwrap();
        let number = |key: &Key| key.permuted(b"x", 1 << 60, 7);
        assert_eq!(number(&key), number(&Key::new(b"sixteen bytes...")));
    }

    #[test]
    fn keys_and_domains_have_permutations_of_their_own() {
        let all = |key: &[u8], domain: &[u8]| {
            let key = Key::new(key);
            (0..100).map(|number| key.permuted(domain, 100, number)).collect::<Vec<u128>>()
        };
        assert_eq!(all(b"a", b"x"), all(b"a", b"x"));
        assert_ne!(all(b"a", b"x"), all(b"b", b"x"));
        assert_ne!(all(b"a", b"x"), all(b"a", b"y"));
    }
}
