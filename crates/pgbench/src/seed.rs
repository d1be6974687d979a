//! `--random-seed`.

use std::fs::File;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::console::Console;
use crate::message::Fatal;

/// Source of a random seed, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Environment,
    Option,
}

/// The default random seed.
pub(crate) fn from_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Parses the value of `--random-seed` or its environment variable, and prints the seed.
pub(crate) fn parse(seed: &str, source: Source, console: &Console) -> Result<u64, Fatal> {
    let seed = match seed {
        "time" => from_time(),
        "rand" => from_kernel().ok_or_else(|| seed_error("could not generate random seed", None, source))?,
        _ => unsigned(seed).ok_or_else(|| {
            let detail = "Expecting an unsigned integer, \"time\" or \"rand\".";
            seed_error(&format!("unrecognized random seed option \"{seed}\""), Some(detail), source)
        })?,
    };
    console.info(format_args!("setting random seed to {seed}"));
    Ok(seed)
}

fn seed_error(why: &str, detail: Option<&str>, source: Source) -> Fatal {
    let fatal = Fatal::new(why);
    let fatal = match detail {
        Some(detail) => fatal.detail(detail),
        None => fatal,
    };
    fatal.error(match source {
        Source::Environment => {
            "error while setting random seed from PGBENCH_RANDOM_SEED environment variable"
        }
        Source::Option => "error while setting random seed from --random-seed option",
    })
}

fn from_kernel() -> Option<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes)).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

/// An unsigned number as C's `scanf` reads it: a minus sign wraps it around.
fn unsigned(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse().unwrap_or(u64::MAX);
    Some(if text.starts_with('-') { 0_u64.wrapping_sub(number) } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_an_unsigned_number() {
        assert_eq!(unsigned("5432"), Some(5432));
        assert_eq!(unsigned(" -1"), Some(u64::MAX));
        assert_eq!(unsigned("18446744073709551615"), Some(u64::MAX));
        for text in ["", "one", "1x", "1 ", "-"] {
            assert_eq!(unsigned(text), None, "{text}");
        }
    }
}
