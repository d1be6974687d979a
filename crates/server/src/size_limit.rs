//! Limits of what the cache keeps, as environment variables.

use crate::error::Error;

const UNITS: [(&str, f64); 4] = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];

/// The limit that a variable sets, in bytes; none without it.
pub(crate) fn size_limit(variable: &'static str) -> Result<Option<u64>, Error> {
    match std::env::var(variable) {
        Ok(text) if !text.is_empty() => bytes(&text).ok_or(Error::NotASize { variable, text }).map(Some),
        _ => Ok(None),
    }
}

/// Parses a size such as `50GB`; a kB is 1000 bytes.
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    Some((number.parse::<f64>().ok()? * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(bytes("50GB").unwrap(), 50_000_000_000);
        assert_eq!(bytes("1.5 tb").unwrap(), 1_500_000_000_000);
        for text in ["50", "GB", "-1GB", "5 bananas", "1..2GB"] {
            assert!(bytes(text).is_none(), "{text}");
        }
    }
}
