//! The tables of a campaign that levels of factors name, as they are written.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer};
use toml::Spanned;

use crate::units::{Rate, Span, Throughput};
use crate::value::{SpecError, parse};
use crate::workload::Workloads;

/// Tables of one kind by their names.
pub type Tables<T> = BTreeMap<Spanned<String>, T>;

/// Server settings by name; the key `inherits` names another table.
pub type Settings = BTreeMap<String, Spanned<toml::Value>>;

/// Kernel parameters with their values, each with its place in the file.
pub type Sysctls = BTreeMap<Spanned<String>, Spanned<toml::Value>>;

/// Everything that a level can name.
#[derive(Clone, Copy, Debug)]
pub struct Definitions<'a> {
    /// `[servers.…]`
    pub servers: &'a Tables<Spanned<Server>>,
    /// `[settings.…]`
    pub settings: &'a Tables<Spanned<Settings>>,
    /// `[workloads.…]`
    pub workloads: &'a Tables<Workload>,
    /// `[pins.…]`
    pub pins: &'a Tables<Pin>,
    /// `[disks.…]`
    pub disks: &'a Tables<Spanned<Disk>>,
    /// `[sysctls.…]`
    pub sysctls: &'a Tables<Sysctls>,
    /// The workloads by name, with their scripts read, in addition to pgbench's.
    pub known_workloads: &'a Workloads,
}

/// A server: exactly one of `version`, `bin`, `source` and `dsn`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// A major or full version of the embedded builds.
    pub version: Option<Spanned<String>>,
    /// Directory of `postgres` and `initdb`; relative to the campaign's.
    pub bin: Option<Spanned<String>>,
    /// A source directory or tarball to build; relative to the campaign's directory.
    pub source: Option<Spanned<String>>,
    /// With `source`: what of the git repository is built, where it is not the directory as it stands.
    #[serde(rename = "ref")]
    pub git_ref: Option<Spanned<String>>,
    /// With `source`: how it is built.
    pub build: Option<Spanned<Build>>,
    /// How to connect to a server that runs already.
    pub dsn: Option<Spanned<String>>,
    /// With `dsn`: whether pgdyno may change its settings, and put them back afterwards.
    pub allow_settings: Option<Spanned<bool>>,
    /// Options for `initdb`, beside pgdyno's own.
    pub initdb: Option<Spanned<Vec<String>>>,
}

/// How a server is built.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// `meson` or `configure`.
    pub system: Option<Spanned<String>>,
    /// Options for `configure` or `meson setup`.
    #[serde(default)]
    pub options: Vec<String>,
    /// `CFLAGS`.
    pub cflags: Option<String>,
}

/// A workload with a name of its own: `builtin` or `directory`, or else `script` or `scripts`; with both, these take the
/// place of the workload's own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// A workload that pgbench or pgdyno brings along, by its name.
    pub builtin: Option<Spanned<String>>,
    /// A file in pgbench's script language; relative to the campaign's directory, as all of these.
    pub script: Option<Spanned<String>>,
    /// Several of them, each with a weight as `"a.sql@3"`.
    pub scripts: Option<Spanned<Vec<Spanned<String>>>>,
    /// A directory with a file `workload.toml`, which has the same keys.
    pub directory: Option<Spanned<String>>,
    /// What it is, in a sentence.
    pub description: Option<String>,
    /// Variables that scripts, setup and teardown begin with.
    #[serde(default)]
    pub parameters: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    /// Files of SQL that are run once when the data set is made.
    pub setup: Option<Spanned<Files>>,
    /// Files of SQL that are run after each trial.
    pub teardown: Option<Spanned<Files>>,
    /// `pgbench` (the default) or `none`: the tables that the data set has beside those of the setup.
    pub tables: Option<Spanned<String>>,
    /// Whether it changes the data set (default true).
    pub writes: Option<Spanned<bool>>,
    /// Whether each transaction has a connection of its own (default false).
    pub reconnect: Option<Spanned<bool>>,
    /// A relation whose files are read past the server before each trial that begins with cold caches: what the disk
    /// gives.
    pub raw_read: Option<Spanned<String>>,
    /// How much later each further client begins (default none: all at once).
    pub stagger: Option<Spanned<Span>>,
    /// How many transactions each client runs, the window ending when all have (default: as many as the duration holds).
    pub iterations: Option<Spanned<i64>>,
    /// Whether the start and the end of each transaction are kept (default false).
    pub spans: Option<Spanned<bool>>,
    /// Workloads that run at the same time, with clients of their own.
    #[serde(alias = "beside")]
    pub background: Option<Spanned<Vec<Spanned<Background>>>>,
    /// Length of the measured window, where it is not the campaign's.
    pub duration: Option<Spanned<Span>>,
    /// Load before the window.
    pub warmup: Option<Spanned<Span>>,
}

/// A workload that runs at the same time as another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Its name: one of pgbench's, one that comes along, one of `[workloads.…]`, or a file of SQL.
    pub workload: Spanned<String>,
    /// Number of clients (default 1).
    pub clients: Option<Spanned<i64>>,
    /// Transactions begun in a second (default `"max"`).
    pub rate: Option<Spanned<Rate>>,
    /// When it begins, after the load's start, warm-up included (default at once).
    pub start: Option<Spanned<Span>>,
}

/// Names of files: one, or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files(pub Vec<String>);

/// Processors, as in `taskset`: `"0-3,8"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The driver's; all where left out.
    pub driver: Option<Spanned<String>>,
    /// The server's; all where left out.
    pub server: Option<Spanned<String>>,
}

/// How much of a disk a server may use; what is left out is not limited.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// What may be read in a second.
    pub read: Option<Spanned<Throughput>>,
    /// Requests to read in a second.
    pub read_iops: Option<Spanned<i64>>,
    /// What may be written in a second.
    pub write: Option<Spanned<Throughput>>,
    /// Requests to write in a second.
    pub write_iops: Option<Spanned<i64>>,
}

impl<'de> Deserialize<'de> for Files {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> de::Visitor<'de> for Either {
            type Value = Files;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a file, or a list of them")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Files, E> {
                Ok(Files(vec![name.to_owned()]))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Files, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element()? {
                    names.push(name);
                }
                Ok(Files(names))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Workload {
    /// Whether it says how clients run, beyond what they do: one of pgbench's is then no longer as pgbench has it.
    pub fn says_how(&self) -> bool {
        self.stagger.is_some()
            || self.iterations.is_some()
            || self.spans.is_some()
            || self.background.is_some()
    }

    /// Reads the text of a `workload.toml`.
    ///
    /// # Errors
    /// As [`crate::spec::Campaign::parse`].
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        parse(text)
    }
}
