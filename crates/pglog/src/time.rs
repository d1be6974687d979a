//! Times of logs.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;

/// Length of `2026-01-02 03:04:05`.
const TO_SECONDS: usize = 19;

/// A time at the start of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stamp<'a> {
    /// Microseconds since 1970, UTC if the zone is known.
    pub(crate) at_us: i64,
    /// Whether it has milliseconds.
    pub(crate) has_millis: bool,
    /// The zone, if it is one whose offset is not known.
    pub(crate) unknown_zone: Option<&'a str>,
    /// Length in bytes, with the zone.
    pub(crate) length: usize,
}

impl<'a> Stamp<'a> {
    /// Parses `2026-01-02 03:04:05.678 CET`, as `%m`, `%t` and `%s` write it. The milliseconds and the zone may be missing.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes();
        let head = bytes.get(..TO_SECONDS)?;
        let separators = [(4, b'-'), (7, b'-'), (10, b' '), (13, b':'), (16, b':')];
        if separators.iter().any(|(at, byte)| head[*at] != *byte) {
            return None;
        }
        let number = |from: usize, to: usize| digits(&head[from..to]);
        let date = Date::new(number(0, 4)? as i16, number(5, 7)? as i8, number(8, 10)? as i8).ok()?;
        // A leap second is written as the 60th.
        let second = number(17, 19)?.min(59);
        let mut length = TO_SECONDS;
        let mut nanoseconds = 0;
        let fraction = bytes[length..].strip_prefix(b".").unwrap_or_default();
        let fraction = &fraction[..fraction.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count()];
        let has_millis = fraction.len() >= 3;
        if !fraction.is_empty() {
            length += 1 + fraction.len();
            nanoseconds = digits(fraction)? * 10_i32.pow(9 - fraction.len() as u32);
        }
        let time = Time::new(number(11, 13)? as i8, number(14, 16)? as i8, second as i8, nanoseconds).ok()?;
        let (zone_length, offset) = match text[length..].strip_prefix(' ').map(zone) {
            Some((0, _)) | None => (0, Some(0)),
            Some((zone_length, offset)) => (1 + zone_length, offset),
        };
        let unknown_zone = offset.is_none().then(|| &text[length + 1..length + zone_length]);
        length += zone_length;
        let local = Offset::UTC.to_timestamp(DateTime::from_parts(date, time)).ok()?;
        let at_us = local.as_microsecond() - i64::from(offset.unwrap_or(0)) * 1_000_000;
        Some(Self { at_us, has_millis, unknown_zone, length })
    }
}

/// A time in seconds since 1970 with milliseconds, as `%n` writes it: its microseconds and its length.
pub(crate) fn parse_epoch(text: &str) -> Option<(i64, usize)> {
    let whole = text.bytes().take_while(u8::is_ascii_digit).count();
    let fraction = text.get(whole..)?.strip_prefix('.')?;
    let millis = fraction.get(..3).filter(|millis| millis.bytes().all(|byte| byte.is_ascii_digit()))?;
    let seconds: i64 = text[..whole].parse().ok()?;
    let at_us = seconds.checked_mul(1_000_000)?.checked_add(millis.parse::<i64>().ok()? * 1000)?;
    Some((at_us, whole + 4))
}

fn digits(bytes: &[u8]) -> Option<i32> {
    bytes
        .iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i32::from(byte - b'0')))
}

/// The zone at the start of a text: its length, and its offset in seconds if that is known.
fn zone(text: &str) -> (usize, Option<i32>) {
    let bytes = text.as_bytes();
    if let Some(sign) = bytes.first().filter(|byte| matches!(byte, b'+' | b'-')) {
        let number: Vec<u8> =
            bytes[1..].iter().take_while(|b| b.is_ascii_digit() || **b == b':').copied().collect();
        let compact: Vec<u8> = number.iter().filter(|byte| **byte != b':').copied().collect();
        let offset = match compact.len() {
            2 => digits(&compact).map(|hours| hours * 3600),
            4 => digits(&compact).map(|number| number / 100 * 3600 + number % 100 * 60),
            _ => None,
        };
        return match offset {
            Some(offset) => (1 + number.len(), Some(if *sign == b'-' { -offset } else { offset })),
            None => (0, None),
        };
    }
    let length = bytes.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let offset = ZONES.iter().find(|(name, _)| *name == &text[..length]).map(|(_, quarters)| quarters * 900);
    (length, offset)
}

/// Offsets in quarters of an hour of the abbreviations that servers write, as PostgreSQL's `Default` set has them.
const ZONES: [(&str, i32); 40] = [
    ("UTC", 0),
    ("GMT", 0),
    ("Z", 0),
    ("WET", 0),
    ("WEST", 4),
    ("BST", 4),
    ("CET", 4),
    ("CEST", 8),
    ("MET", 4),
    ("MEST", 8),
    ("EET", 8),
    ("EEST", 12),
    ("SAST", 8),
    ("MSK", 12),
    ("MSD", 16),
    ("PKT", 20),
    ("IST", 22),
    ("HKT", 32),
    ("PHT", 32),
    ("AWST", 32),
    ("JST", 36),
    ("KST", 36),
    ("ACST", 38),
    ("ACDT", 42),
    ("AEST", 40),
    ("AEDT", 44),
    ("NZST", 48),
    ("NZDT", 52),
    ("NST", -14),
    ("NDT", -10),
    ("AST", -16),
    ("ADT", -12),
    ("EST", -20),
    ("EDT", -16),
    ("CST", -24),
    ("CDT", -20),
    ("MST", -28),
    ("MDT", -24),
    ("PST", -32),
    ("PDT", -28),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_known_zones_are_in_utc() {
        let at = |text: &str| Stamp::parse(text).map(|stamp| stamp.at_us);
        let utc = at("2026-01-02 03:04:05.678 UTC");
        assert_eq!(utc, Some(1_767_323_045_678_000));
        for text in [
            "2026-01-02 04:04:05.678 CET [1]",
            "2026-01-02 06:04:05.678 +03 [1]",
            "2026-01-02 08:34:05.678 +0530,",
            "2026-01-01 22:04:05.678 EST:",
            "2026-01-02 03:04:05.678",
        ] {
            assert_eq!(at(text), utc, "{text}");
        }
    }

    #[test]
    fn a_zone_ends_where_the_prefix_goes_on() {
        let stamp = Stamp::parse("2026-01-02 03:04:05 UTC-65926f54.30-LOG").unwrap();
        assert_eq!((stamp.length, stamp.has_millis, stamp.unknown_zone), (23, false, None));
        let stamp = Stamp::parse("2026-01-02 03:04:05.678 XYZT [42]").unwrap();
        assert_eq!((stamp.length, stamp.unknown_zone), (28, Some("XYZT")));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026-01-02",
            "2026-13-02 03:04:05.678 UTC",
            "2026-01-02T03:04:05.678",
            "2026-01-02 0a:04:05",
        ] {
            assert_eq!(Stamp::parse(text), None, "{text}");
        }
        assert_eq!(parse_epoch("1767323045.678 x"), Some((1_767_323_045_678_000, 14)));
        for text in ["1767323045", "1767323045.6 ", "99999999999999999.000", ""] {
            assert_eq!(parse_epoch(text), None, "{text}");
        }
    }
}
