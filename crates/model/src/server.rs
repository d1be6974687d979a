//! Sources of servers under test.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::version::{Version, VersionRequest};

/// A server named by a campaign, with its source. A version as a level of the factor `server` is a server with that
/// name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerSpec {
    /// Its name: level of the factor `server`.
    pub name: String,
    /// Its source.
    pub source: Source,
    /// Options for `initdb`, in addition to pgdyno's; empty for a server that pgdyno does not own.
    pub initdb: Vec<String>,
}

/// Source of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Source {
    /// A downloaded build: a major (`18`) or a full version (`16.4`).
    Embedded(String),
    /// A server that was built before, by its name, such as `18.6-src-1a2b3c4d5e6f`.
    Installed(String),
    /// Installed programs: the directory of `postgres` and `initdb`.
    Bin(PathBuf),
    /// A build from source.
    Build(Build),
    /// A running server that pgdyno does not own.
    Dsn(Dsn),
}

/// Build of a server from source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Build {
    /// A source directory or a tarball.
    pub location: PathBuf,
    /// Git ref to build; none for the directory as it is.
    pub git_ref: Option<String>,
    /// Build system; none for `configure`, which every major has, so that all are built alike.
    pub system: Option<BuildSystem>,
    /// Options for `configure` or `meson setup`, in addition to pgdyno's.
    pub options: Vec<String>,
    /// `CFLAGS` that replace pgdyno's own (`-O2 -g -fno-omit-frame-pointer`).
    pub cflags: Option<String>,
    /// Patches to apply to the source, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<PathBuf>,
    /// Whether functions are placed in the order of their names, not of the source: the same program with another code layout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sorted_functions: bool,
}

/// A build system.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BuildSystem {
    /// `meson setup` and ninja; PostgreSQL 16 and later.
    Meson,
    /// `./configure` and make.
    Configure,
}

impl BuildSystem {
    /// Its name in campaigns.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A running server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dsn {
    /// A libpq connection string; never stored with a password.
    pub conninfo: String,
    /// Whether pgdyno may change its settings for a trial, and restore them afterwards.
    #[serde(rename = "may_set")]
    pub can_change_settings: bool,
}

/// End of the names of servers whose functions are sorted.
const SORTED: &str = "+sorted";

impl ServerSpec {
    /// The same server with its functions in the order of their names; none unless it is built from source by `configure`.
    pub fn with_sorted_functions(&self) -> Option<Self> {
        let Source::Build(build) = &self.source else { return None };
        if build.system == Some(BuildSystem::Meson) {
            return None;
        }
        let source = Source::Build(Build { sorted_functions: true, ..build.clone() });
        Some(Self { name: format!("{}{SORTED}", self.name), source, ..self.clone() })
    }
}

/// The server of which this one is a build with sorted functions; none for others.
pub fn without_sorted_functions(name: &str) -> Option<&str> {
    name.strip_suffix(SORTED)
}

/// What users give for a server without a table of its own.
pub(crate) const EXPECTED_SERVER: &str = "a major version such as \"18\", a full one such as \"16.4\", or the name of a build (`pgdyno server list`)";

/// The table and the git ref of a level `NAME@REF` of the factor `server`; none for others.
pub fn commit_of(level: &str) -> Option<(&str, &str)> {
    level.split_once('@').filter(|(server, git_ref)| !server.is_empty() && !git_ref.is_empty())
}

impl Source {
    /// The server that a text names: a major (`9.6`, `18`), a full version (`9.6.24`, `16.4`), or a build
    /// (`VERSION-src-HASH`). The crate `server` determines whether it is available.
    pub fn from_name(text: &str) -> Option<Self> {
        if text.parse::<VersionRequest>().is_ok_and(|version| version.major().first() >= 9) {
            return Some(Self::Embedded(text.to_owned()));
        }
        let (version, hash) = text.split_once("-src-")?;
        let is_hash = !hash.is_empty() && hash.chars().all(|c| c.is_ascii_hexdigit());
        (is_hash && version.parse::<Version>().is_ok()).then(|| Self::Installed(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_names_of_builds_are_servers() {
        for version in ["18", "9.6", "16.4", "9.6.24"] {
            assert_eq!(Source::from_name(version), Some(Source::Embedded(version.to_owned())));
        }
        for build in ["18.6-src-1a2b3c4d5e6f", "19devel-src-0123456789ab"] {
            assert_eq!(Source::from_name(build), Some(Source::Installed(build.to_owned())));
        }
        for text in ["8.4", "patched", "18.6-src-", "18.6-src-../x", "x-src-12", "18.6-bin-1a2b3c4d", ""] {
            assert_eq!(Source::from_name(text), None, "{text}");
        }
    }
}
