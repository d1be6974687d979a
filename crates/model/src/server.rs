//! Where a server under test comes from.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::version::VersionRequest;

/// A server that a campaign names, and what kind of server it is. A version as a level of the factor `server` is one of
/// that name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Its name, as the factor `server` has it.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// Options for `initdb`, in addition to pgdyno's; empty for a server that pgdyno does not own.
    pub initdb: Vec<String>,
}

/// Where a server comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A downloaded build: a major (`18`) or a full version (`16.4`).
    Embedded(String),
    /// Programs that are there: the directory of `postgres` and `initdb`.
    Bin(PathBuf),
    /// Built from its source.
    Build(Build),
    /// A server that runs already, and that pgdyno does not own.
    Dsn(Dsn),
}

/// How a server is built from its source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// A source directory or a tarball.
    pub location: PathBuf,
    /// What of a git repository is built, where it is not the directory as it stands.
    pub git_ref: Option<String>,
    /// What configures it; where none is given, `configure`, which every major has, so that all are built alike.
    pub system: Option<BuildSystem>,
    /// Options for `configure` or `meson setup`, in addition to pgdyno's.
    pub options: Vec<String>,
    /// `CFLAGS`, where they are not to be pgdyno's own (`-O2 -g -fno-omit-frame-pointer`).
    pub cflags: Option<String>,
}

/// What configures a build.
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

/// A server that runs already.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dsn {
    /// A connection string as libpq takes it; never stored with a password.
    pub conninfo: String,
    /// Whether pgdyno may change its settings for a trial, and put them back afterwards.
    pub may_set: bool,
}

/// Whether a text is a major (`9.6`, `18`) or a full version (`9.6.24`, `16.4`). Whether it is available is the crate
/// `server`'s to find out.
pub(crate) fn is_version(text: &str) -> bool {
    text.parse::<VersionRequest>().is_ok_and(|version| version.major().first() >= 9)
}
