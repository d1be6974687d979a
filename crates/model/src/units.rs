//! Units in campaigns: durations such as `500ms`, `2s`, `5min`, `1h`; rates; sizes such as `512MB`; shares such as
//! `2%`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};

/// A duration in a campaign; whole microseconds, never negative. `m` is read as `min`, as by `pgdyno bench` and k6: sizes and
/// PostgreSQL's own settings are other types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    us: u64,
}

/// Units of a [`Span`], largest first, in microseconds.
const UNITS: [(&str, u64); 5] =
    [("h", 3_600_000_000), ("min", MINUTE_US), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];
const MINUTE_US: u64 = 60_000_000;

impl Span {
    /// Regular expression of a duration in a campaign.
    pub(crate) const PATTERN: &'static str = "^[0-9]+(\\.[0-9]+)? ?(us|ms|s|min|m|h)$";

    /// A span of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self { us }
    }

    /// Length in microseconds.
    pub const fn us(self) -> u64 {
        self.us
    }

    /// Length in seconds.
    pub fn seconds(self) -> f64 {
        self.us as f64 / 1e6
    }

    /// The same length as a standard [`Duration`].
    pub const fn duration(self) -> Duration {
        Duration::from_micros(self.us)
    }

    /// True for the empty span.
    pub const fn is_zero(self) -> bool {
        self.us == 0
    }
}

/// A text that is not a duration; the message describes the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a duration: expected a number and a unit (us, ms, s, min, m or h), such as \"500ms\", \"2s\" or \"5min\""
)]
pub struct ParseSpanError(String);

impl FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Self, ParseSpanError> {
        let invalid = || ParseSpanError(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
        let (number, unit) = text.split_at(digits);
        let unit_us = match unit.trim() {
            "m" => MINUTE_US,
            unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, us)| *us).ok_or_else(invalid)?,
        };
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let us = number * unit_us as f64;
        if us > 1e15 {
            return Err(invalid());
        }
        Ok(Self::from_us(us.round() as u64))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.us == 0 {
            return f.write_str("0s");
        }
        let (name, unit_us) =
            UNITS.into_iter().find(|(_, unit_us)| self.us.is_multiple_of(*unit_us)).unwrap_or(("us", 1));
        write!(f, "{}{name}", self.us / unit_us)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, such as \"500ms\", \"2s\" or \"5min\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Transactions started per second in a campaign: a number, or `"max"` for as many as possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// Thousandths of a transaction per second; none if unlimited.
    milli: Option<u64>,
}

impl Rate {
    /// Unlimited: each transaction starts when the last has ended.
    pub const MAX: Self = Self { milli: None };

    /// A rate per second; none unless it is at least 0.001 and below 10^9.
    pub fn per_second(rate: f64) -> Option<Self> {
        (0.001..1e9).contains(&rate).then(|| Self { milli: Some((rate * 1e3).round() as u64) })
    }

    /// Transactions per second; none if unlimited.
    pub fn get(self) -> Option<f64> {
        self.milli.map(|milli| milli as f64 / 1e3)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            None => f.write_str("max"),
            Some(rate) => write!(f, "{rate}"),
        }
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl de::Visitor<'_> for Either {
            type Value = Rate;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of transactions per second, or \"max\"")
            }

            fn visit_f64<E: de::Error>(self, rate: f64) -> Result<Rate, E> {
                Rate::per_second(rate).ok_or_else(|| E::invalid_value(de::Unexpected::Float(rate), &self))
            }

            fn visit_i64<E: de::Error>(self, rate: i64) -> Result<Rate, E> {
                Rate::per_second(rate as f64)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(rate), &self))
            }

            fn visit_u64<E: de::Error>(self, rate: u64) -> Result<Rate, E> {
                self.visit_f64(rate as f64)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Rate, E> {
                match text {
                    "max" => Ok(Rate::MAX),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }

            fn visit_unit<E: de::Error>(self) -> Result<Rate, E> {
                Ok(Rate::MAX)
            }

            fn visit_none<E: de::Error>(self) -> Result<Rate, E> {
                Ok(Rate::MAX)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A multiple of what was recorded: `2x`, `0.5x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Multiplier {
    /// Thousandths.
    milli: u64,
}

impl Multiplier {
    /// The factor.
    pub fn factor(self) -> f64 {
        self.milli as f64 / 1e3
    }
}

impl Default for Multiplier {
    fn default() -> Self {
        Self { milli: 1000 }
    }
}

/// A text that is not a multiple.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a factor such as 2x or 0.5x, of at least 0.001x and at most 1000x")]
pub struct ParseMultiplierError;

impl FromStr for Multiplier {
    type Err = ParseMultiplierError;

    fn from_str(text: &str) -> Result<Self, ParseMultiplierError> {
        let factor: f64 = text.strip_suffix('x').unwrap_or(text).parse().map_err(|_| ParseMultiplierError)?;
        let is_possible = (0.001..=1000.0).contains(&factor);
        is_possible.then(|| Self { milli: (factor * 1e3).round() as u64 }).ok_or(ParseMultiplierError)
    }
}

impl fmt::Display for Multiplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x", self.factor())
    }
}

impl Serialize for Multiplier {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Multiplier {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// An amount of memory or data in the format of PostgreSQL's settings: a kB is 1024 bytes. Source: PostgreSQL manual,
/// "Parameter Names and Values".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size {
    bytes: u64,
}

/// Units of a [`Size`], largest first, in bytes.
const SIZES: [(&str, u64); 5] =
    [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];

impl Size {
    /// A size in bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self { bytes }
    }

    /// Number of bytes.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }
}

/// A text that is not a size; the message describes the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size: expected a number and a unit (kB, MB, GB or TB), such as \"512MB\"")]
pub struct ParseSizeError(String);

impl FromStr for Size {
    type Err = ParseSizeError;

    fn from_str(text: &str) -> Result<Self, ParseSizeError> {
        let invalid = || ParseSizeError(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
        let (number, unit) = text.split_at(digits);
        let known = SIZES.iter().find(|(name, _)| *name == unit.trim());
        let unit_bytes = known.map(|(_, bytes)| *bytes).ok_or_else(invalid)?;
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let bytes = number * unit_bytes as f64;
        // Rejects sizes beyond 8 EB, and numbers that are not sizes.
        if bytes >= 9e18 {
            return Err(invalid());
        }
        Ok(Self::from_bytes(bytes.round() as u64))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit_bytes) = match self.bytes {
            0 => ("B", 1),
            bytes => SIZES.into_iter().find(|(_, unit)| bytes.is_multiple_of(*unit)).unwrap_or(("B", 1)),
        };
        write!(f, "{}{name}", self.bytes / unit_bytes)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Data throughput in a campaign: `"100MB/s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throughput(pub Size);

impl<'de> Deserialize<'de> for Throughput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Throughput;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size per second, such as \"100MB/s\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Throughput, E> {
                let size = text.strip_suffix("/s").and_then(|size| size.trim_end().parse().ok());
                size.map(Throughput).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A share of something, written as `"2%"`: above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

/// A text that is not a share; the message describes the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a share: expected a percentage up to 100, such as \"2%\"")]
pub struct ParseShareError(String);

impl FromStr for Share {
    type Err = ParseShareError;

    fn from_str(text: &str) -> Result<Self, ParseShareError> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        match number {
            Some(percent) if percent > 0.0 && percent <= 100.0 => Ok(Self(percent / 100.0)),
            _ => Err(ParseShareError(text.to_owned())),
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a percentage up to 100, such as \"2%\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Share, E> {
                text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_round_trip() {
        for us in [0, 1, 999, 1_000, 1_500_000, 2_000_000, 90_000_000, 3_600_000_000] {
            let span = Span::from_us(us);
            assert_eq!(span.to_string().parse::<Span>(), Ok(span), "{span}");
        }
        assert_eq!("1.5s".parse::<Span>().unwrap().us(), 1_500_000);
    }

    #[test]
    fn minutes_are_min_or_m() {
        let minutes = ["4min", "4m", "4 m", "240s"].map(|text| text.parse::<Span>().unwrap());
        assert_eq!(minutes, [Span::from_us(240_000_000); 4]);
        assert_eq!(minutes[1].to_string(), "4min");
        for wrong in ["4", "m", "4M", "4mi", "4mn", "4h30m", "4d"] {
            let error = wrong.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains("a unit (us, ms, s, min, m or h)"), "{error}");
        }
    }

    #[test]
    fn sizes_have_postgresqls_units() {
        for bytes in [0, 1, 1023, 8192, 512 << 20, 3 << 30, 5 << 40] {
            let size = Size::from_bytes(bytes);
            assert_eq!(size.to_string().parse::<Size>(), Ok(size), "{size}");
        }
        assert_eq!("1.5GB".parse::<Size>().unwrap().to_string(), "1536MB");
        for text in ["512", "", "MB", "5 mb", "-1MB", "99999999TB", "1..2GB"] {
            let message = text.parse::<Size>().unwrap_err().to_string();
            assert!(message.contains("\"512MB\""), "{message}");
        }
    }

    #[test]
    fn a_span_without_a_known_unit_is_rejected_with_the_units() {
        for text in ["5", "", "s", "5 parsecs", "-1s", "1e99h", "1..2s"] {
            let message = text.parse::<Span>().unwrap_err().to_string();
            assert!(message.contains("\"500ms\""), "{message}");
        }
    }
}
