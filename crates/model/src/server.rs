//! Sources of servers under test.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::version::VersionRequest;

/// A server named by a campaign, with its source. A version as a level of the factor `server` is a server with that
/// name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
pub enum Source {
    /// A downloaded build: a major (`18`) or a full version (`16.4`).
    Embedded(String),
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
pub struct Dsn {
    /// A libpq connection string; never stored with a password.
    pub conninfo: String,
    /// Whether pgdyno may change its settings for a trial, and restore them afterwards.
    #[serde(rename = "may_set")]
    pub can_change_settings: bool,
}

/// Whether a text is a major (`9.6`, `18`) or a full version (`9.6.24`, `16.4`). The crate `server` determines whether
/// it is available.
pub(crate) fn is_version(text: &str) -> bool {
    text.parse::<VersionRequest>().is_ok_and(|version| version.major().first() >= 9)
}
