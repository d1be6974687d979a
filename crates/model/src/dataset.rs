//! Databases of the user's own, on which workloads run instead of generated tables.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Connection limit that identifies databases that pgdyno creates on servers that it does not own: the only attribute for
/// this that `CREATE DATABASE` itself can set, so that a database is identified from its first moment, even if pgdyno is
/// killed. "pgdy" in ASCII.
pub const CONNECTION_LIMIT_MARK: i32 = 0x7067_6479;

/// A database of the user's own, identified by its content. Two are equal if all of this is, wherever their files are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnDatabase {
    /// Its name in the campaign.
    pub name: String,
    /// What it is made from.
    pub kind: DatabaseKind,
    /// The database of a base backup or of a running server; none for a dump, which has one.
    pub database: Option<String>,
    /// SHA-256 of its files in hexadecimal; none for a database of a running server, whose content is not read.
    pub content: Option<String>,
    /// Size of its files; none for a database of a running server.
    pub bytes: Option<u64>,
}

impl OwnDatabase {
    /// Its name in sentences and tables: `data set shop`.
    pub fn in_words(&self) -> String {
        format!("data set {}", self.name)
    }
}

/// What a database is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DatabaseKind {
    /// Output of `pg_dump`, in any of its formats.
    Dump,
    /// Output of `pg_basebackup`, for servers of the same major.
    BaseBackup,
    /// A database of a running server that pgdyno does not own.
    Template,
}

impl DatabaseKind {
    /// Its name in sentences.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Dump => "dump",
            Self::BaseBackup => "base backup",
            Self::Template => "template",
        }
    }
}

/// A database that a campaign names, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct DatasetSpec {
    /// Its name: the key `dataset` of workloads.
    pub name: String,
    /// Where it is.
    pub source: DatasetSource,
}

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatasetSource {
    /// File or directory of a dump.
    Dump(PathBuf),
    /// Directory of a base backup, and the database in it.
    BaseBackup {
        /// The directory.
        directory: PathBuf,
        /// The database.
        database: String,
    },
    /// Name of a database of the cell's server.
    Template(String),
}

impl DatasetSource {
    /// What it is.
    pub const fn kind(&self) -> DatabaseKind {
        match self {
            Self::Dump(_) => DatabaseKind::Dump,
            Self::BaseBackup { .. } => DatabaseKind::BaseBackup,
            Self::Template(_) => DatabaseKind::Template,
        }
    }

    /// Path of its files; none for a database of a running server.
    pub const fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Dump(path) | Self::BaseBackup { directory: path, .. } => Some(path),
            Self::Template(_) => None,
        }
    }

    /// Its database, if a name belongs to it.
    pub fn database(&self) -> Option<&str> {
        match self {
            Self::Dump(_) => None,
            Self::BaseBackup { database, .. } | Self::Template(database) => Some(database),
        }
    }
}
