//! Seeds that nobody chose.

use std::time::SystemTime;

/// A new seed, short enough to be copied by hand.
pub(crate) fn drawn_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id())) % 1_000_000_000
}
