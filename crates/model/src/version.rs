//! PostgreSQL versions: `18.1` and `9.6.24`, and their majors. Source: PostgreSQL manual, "Versioning Policy", and
//! `server_version_num` in "Preset Options".

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};

/// A text that does not have the form of a PostgreSQL version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a PostgreSQL version: expected a major such as \"18\" or \"9.6\", or a full version such as \"16.4\""
)]
pub struct ParseVersionError(String);

/// A major version: `18` of `18.1`, or `9.6` of `9.6.24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Major {
    first: u32,
    /// Always 0 from 10 on, where majors have one part.
    second: u32,
}

/// A full version: `18.1`, `9.6.24`, or an unreleased one, such as `19devel` and `18beta1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: Major,
    stage: Stage,
}

/// Release stage of a major, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    Devel,
    Alpha(u32),
    Beta(u32),
    ReleaseCandidate(u32),
    /// A minor release.
    Minor(u32),
}

/// A version as users give it: a major or a full version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionRequest {
    /// The newest release of a major.
    Newest(Major),
    /// This release.
    Exactly(Version),
}

impl Major {
    /// A major from 10 on.
    pub const fn new(first: u32) -> Self {
        Self { first, second: 0 }
    }

    /// The major of a version as the server numbers it (`server_version_num`), such as 180001 or 90624.
    pub const fn from_number(number: u32) -> Self {
        match number / 10_000 {
            first @ 0..10 => Self { first, second: number / 100 % 100 },
            first => Self::new(first),
        }
    }

    /// The major that a server or client program reports, ignoring vendor suffixes: `16.4 (Debian 16.4-1)`, `18beta1`.
    pub fn from_reported(version: &str) -> Option<Self> {
        let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(number);
        match numbers.next()?? {
            first @ 0..10 => Some(Self { first, second: numbers.next()?? }),
            first => Some(Self::new(first)),
        }
    }

    /// Its first number: 18, or 9 for 9.6.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// Its second number: 6 for 9.6, and 0 from 10 on.
    pub const fn second(self) -> u32 {
        self.second
    }

    /// Whether it has two numbers, as all before 10 have.
    pub const fn has_two_parts(self) -> bool {
        self.first < 10
    }
}

impl Version {
    /// A release of a major.
    pub const fn new(major: Major, minor: u32) -> Self {
        Self { major, stage: Stage::Minor(minor) }
    }

    /// A version as the server numbers it (`server_version_num`), such as 180001 or 90624.
    pub const fn from_number(number: u32) -> Self {
        let major = Major::from_number(number);
        Self::new(major, if major.has_two_parts() { number % 100 } else { number % 10_000 })
    }

    /// Its major.
    pub const fn major(self) -> Major {
        self.major
    }
}

/// Converts a version that a server reports (`server_version`) to `server_version_num`, as libpq does: 180001 for 18.1,
/// 90624 for 9.6.24, 190000 for 19devel.
pub fn server_version_num(reported: &str) -> Option<u32> {
    let numbers = reported.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let mut parts = numbers.split('.').map(|part| part.parse::<u32>().ok());
    let major = parts.next()??;
    let minor = parts.next().flatten().unwrap_or(0);
    let patch = parts.next().flatten().unwrap_or(0);
    Some(if major >= 10 { major * 10_000 + minor } else { major * 10_000 + minor * 100 + patch })
}

/// Parses a number in a version.
fn number(text: &str) -> Option<u32> {
    match text.len() {
        1..=4 if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

impl Stage {
    /// Parses a stage before release: `devel`, `beta1`.
    fn before_release(text: &str) -> Option<Self> {
        let numbered = |name: &str| text.strip_prefix(name).and_then(number);
        if text == "devel" {
            return Some(Self::Devel);
        }
        (numbered("alpha").map(Self::Alpha))
            .or_else(|| numbered("beta").map(Self::Beta))
            .or_else(|| numbered("rc").map(Self::ReleaseCandidate))
    }
}

impl VersionRequest {
    /// The major.
    pub const fn major(self) -> Major {
        match self {
            Self::Newest(major) => major,
            Self::Exactly(version) => version.major,
        }
    }

    /// Whether a version satisfies it.
    pub fn allows(self, version: Version) -> bool {
        match self {
            Self::Newest(major) => version.major == major,
            Self::Exactly(exact) => version == exact,
        }
    }
}

impl FromStr for VersionRequest {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        let invalid = || ParseVersionError(text.to_owned());
        let parts: Vec<u32> = text.split('.').map(number).collect::<Option<_>>().ok_or_else(invalid)?;
        let two_parts = parts.first().is_some_and(|&first| first < 10);
        Ok(match (two_parts, &parts[..]) {
            (false, &[first]) => Self::Newest(Major::new(first)),
            (false, &[first, minor]) => {
                Self::Exactly(Version { major: Major::new(first), stage: Stage::Minor(minor) })
            }
            (true, &[first, second]) => Self::Newest(Major { first, second }),
            (true, &[first, second, minor]) => {
                Self::Exactly(Version { major: Major { first, second }, stage: Stage::Minor(minor) })
            }
            _ => return Err(invalid()),
        })
    }
}

impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        let invalid = || ParseVersionError(text.to_owned());
        if let Some(letter) = text.find(|c: char| c.is_ascii_lowercase()) {
            let (major, stage) = text.split_at(letter);
            return match (major.parse()?, Stage::before_release(stage)) {
                (VersionRequest::Newest(major), Some(stage)) => Ok(Self { major, stage }),
                _ => Err(invalid()),
            };
        }
        match text.parse()? {
            VersionRequest::Exactly(version) => Ok(version),
            VersionRequest::Newest(_) => Err(invalid()),
        }
    }
}

impl fmt::Display for Major {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_two_parts() {
            write!(f, "{}.{}", self.first, self.second)
        } else {
            write!(f, "{}", self.first)
        }
    }
}

impl FromStr for Major {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        match text.parse()? {
            VersionRequest::Newest(major) => Ok(major),
            VersionRequest::Exactly(_) => Err(ParseVersionError(text.to_owned())),
        }
    }
}

impl Serialize for Major {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Major {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.major)?;
        match self.stage {
            Stage::Devel => f.write_str("devel"),
            Stage::Alpha(number) => write!(f, "alpha{number}"),
            Stage::Beta(number) => write!(f, "beta{number}"),
            Stage::ReleaseCandidate(number) => write!(f, "rc{number}"),
            Stage::Minor(number) => write!(f, ".{number}"),
        }
    }
}

impl fmt::Display for VersionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newest(major) => major.fmt(f),
            Self::Exactly(version) => version.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_round_trip_and_other_texts_are_rejected() {
        for text in ["18", "18.1", "9.6", "9.6.24", "10.0"] {
            assert_eq!(text.parse::<VersionRequest>().unwrap().to_string(), text);
        }
        for text in ["", "9", "18.1.0", "9.6.24.1", "latest", "18.", "18beta1", "-1", "18 ", "99999"] {
            let message = text.parse::<VersionRequest>().unwrap_err().to_string();
            assert!(message.contains("\"16.4\""), "{text}: {message}");
        }
    }

    #[test]
    fn newer_is_greater() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("18.10") > version("18.9"));
        assert!(version("10.0") > version("9.6.24"));
        let stages = ["18devel", "18alpha2", "18beta1", "18beta10", "18rc1", "18.0", "19devel"];
        assert!(stages.map(version).is_sorted());
    }

    #[test]
    fn unreleased_versions_can_not_be_requested() {
        for text in ["19devel", "18beta1", "18rc2", "17alpha1", "9.6beta4"] {
            assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
            assert!(text.parse::<VersionRequest>().is_err(), "{text}");
        }
        for text in ["18.1devel", "18gamma1", "devel", "18beta", "18devel1", "18"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn majors_are_parsed_from_reported_versions() {
        for (reported, major) in [
            ("18.1", "18"),
            ("16.4 (Debian 16.4-1.pgdg120+1)", "16"),
            ("14.9-vendor", "14"),
            ("18beta1", "18"),
            ("19devel", "19"),
            ("9.6.24", "9.6"),
        ] {
            assert_eq!(Major::from_reported(reported).unwrap().to_string(), major);
        }
        for reported in ["", "unknown", "9", "v18"] {
            assert_eq!(Major::from_reported(reported), None, "{reported}");
        }
        assert_eq!(Major::from_number(180_001), Major::new(18));
        assert_eq!(Major::from_number(90_624).to_string(), "9.6");
        let versions = [180_001, 90_624].map(|number| Version::from_number(number).to_string());
        assert_eq!(versions, ["18.1", "9.6.24"]);
    }

    #[test]
    fn versions_are_numbered_as_libpq_does() {
        for (version, number) in [
            ("18.1", 180_001),
            ("13.23 (Debian 13.23-1)", 130_023),
            ("9.6.24", 90_624),
            ("19devel", 190_000),
            ("18beta2", 180_000),
        ] {
            assert_eq!(server_version_num(version), Some(number), "{version}");
        }
        assert_eq!(server_version_num(""), None);
    }
}
