//! The tables of a campaign that levels of factors name, as they are written.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{self, Deserializer};

use crate::dataset::DatasetSource;
use crate::merit::Merit;
use crate::units::{Multiplier, Rate, Span, Throughput};
use crate::value::{Spanned, SpecError, parse};
use crate::workload::Workloads;

/// Maximum limit of disk requests per second.
pub(crate) const MAX_IOPS: i64 = 1_000_000_000;

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
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("oneOf" = crate::schema::one_of(&["version", "bin", "source", "dsn"]))))]
pub struct Server {
    /// Major or full version of the embedded builds.
    pub version: Option<Spanned<String>>,
    /// Directory of `postgres` and `initdb`; relative to the campaign's.
    pub bin: Option<Spanned<String>>,
    /// Source directory or tarball to build; relative to the campaign's directory.
    pub source: Option<Spanned<String>>,
    /// With `source`: commit, tag or branch to build (default: the working directory as it is).
    #[serde(rename = "ref")]
    pub git_ref: Option<Spanned<String>>,
    /// With `source`: patch to apply to it, or a list of them; relative to the campaign's directory.
    pub patch: Option<Spanned<Files>>,
    /// With `source`: build system and options.
    pub build: Option<Spanned<Build>>,
    /// Connection string of a running server.
    pub dsn: Option<Spanned<String>>,
    /// With `dsn`: whether pgdyno may change its settings, and restore them afterwards (default false).
    pub allow_settings: Option<Spanned<bool>>,
    /// Options for `initdb`, in addition to pgdyno's.
    pub initdb: Option<Spanned<Vec<String>>>,
}

/// Build of a server from source.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Build {
    /// Build system (default: as the source has it).
    #[cfg_attr(test, schemars(extend("enum" = crate::value::names::<crate::server::BuildSystem>())))]
    pub system: Option<Spanned<String>>,
    /// Options for `configure` or `meson setup`.
    #[serde(default)]
    pub options: Vec<String>,
    /// `CFLAGS`.
    pub cflags: Option<String>,
}

/// A database of the user's own: exactly one of `dump`, `base_backup` and `template`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("oneOf" = crate::schema::one_of(&["dump", "base_backup", "template"]))))]
pub struct Dataset {
    /// Output of `pg_dump`: a file of SQL, also compressed by gzip or zstd, or an archive in one of its other formats;
    /// relative to the campaign's directory.
    pub dump: Option<Spanned<String>>,
    /// Directory that `pg_basebackup` wrote, for servers of the same major; relative to the campaign's directory.
    pub base_backup: Option<Spanned<String>>,
    /// Name of a database of a server that is given by `dsn`. It is copied, and not changed.
    pub template: Option<Spanned<String>>,
    /// With `base_backup`: the tested one of its databases.
    pub database: Option<Spanned<String>>,
}

/// A named workload: `builtin` or `directory`, or else `script`, `scripts`, `phases` or `trace`; with both, the scripts replace those of
/// the workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("allOf" = crate::schema::sources_of_scripts()), transform = crate::schema::add_former_background))]
pub struct Workload {
    /// Name of a workload of pgbench or pgdyno.
    pub builtin: Option<Spanned<String>>,
    /// File in pgbench's script language; all files are relative to the campaign's directory.
    pub script: Option<Spanned<String>>,
    /// Files in pgbench's script language, each with a weight as in `"a.sql@3"`.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub scripts: Option<Spanned<Vec<Spanned<String>>>>,
    /// Directory with a file `workload.toml`, which has the same keys.
    pub directory: Option<Spanned<String>>,
    /// Trace of `pgdyno replay read` to play, instead of scripts.
    pub trace: Option<Spanned<String>>,
    /// How much faster than recorded a trace is played, such as `"2x"` (default `"1x"`).
    #[cfg_attr(test, schemars(with = "Option<String>", extend("pattern" = "^[0-9]+(\\.[0-9]+)?x?$")))]
    pub speed: Option<Spanned<Multiplier>>,
    /// How often each session of a trace is played, on average: of `"0.5x"` a random half, of `"3x"` each three times (default `"1x"`).
    #[cfg_attr(test, schemars(with = "Option<String>", extend("pattern" = "^[0-9]+(\\.[0-9]+)?x?$")))]
    pub rate_scale: Option<Spanned<Multiplier>>,
    /// Whether statements of a trace wait only for the one before in their session (default false: also for their time).
    pub closed: Option<Spanned<bool>>,
    /// Sessions of a trace to play: `user=NAME`, `database=NAME`, `application=NAME`, separated by commas (default: all).
    pub sessions: Option<Spanned<String>>,
    /// Sessions that each run all scripts once, in an order of their own, instead of clients: a number, or an expression of parameters.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub streams: Option<Spanned<toml::Value>>,
    /// Description in a sentence.
    pub description: Option<String>,
    /// Variables of scripts, setup, teardown, figures and checks of consistency.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, crate::schema::Scalar>"))]
    #[serde(default)]
    pub parameters: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    /// SQL file, or a list of them, run once when the data set is created.
    pub setup: Option<Spanned<Files>>,
    /// SQL file, or a list of them, run after each trial.
    pub teardown: Option<Spanned<Files>>,
    /// SQL file, or a list of them, run after each trial, before `teardown`: an error means that the data are inconsistent,
    /// and makes the trial invalid.
    pub consistency: Option<Spanned<Files>>,
    /// SQL files by the names of figures, of which more is better: the last query of each returns the figure after each trial.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    #[serde(default)]
    pub figures: BTreeMap<Spanned<String>, Spanned<String>>,
    /// The same, of which less is better.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    #[serde(default)]
    pub costs: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Tables of the data set in addition to those of the setup (default `pgbench`).
    #[cfg_attr(test, schemars(extend("enum" = ["pgbench", "star", "none"])))]
    pub tables: Option<Spanned<String>>,
    /// Name of a `[datasets.…]` table: the database that it runs on instead of pgbench's tables.
    pub dataset: Option<Spanned<String>>,
    /// Oldest major version of PostgreSQL that has what its SQL uses (default: any): it is left out on older servers.
    pub minimum_version: Option<Spanned<String>>,
    /// Whether it changes the data set (default true).
    pub writes: Option<Spanned<bool>>,
    /// Whether each transaction opens a connection (default false).
    pub reconnect: Option<Spanned<bool>>,
    /// Relation whose files pgdyno reads directly before each trial with cold caches, as a measure of the disk.
    pub raw_read: Option<Spanned<String>>,
    /// Delay between the starts of clients (default none: all start at once).
    pub stagger: Option<Spanned<Span>>,
    /// Transactions of each client; the window ends when all have run theirs (default: as many as fit the duration).
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub iterations: Option<Spanned<i64>>,
    /// Whether the start and end of each transaction are recorded (default false).
    pub spans: Option<Spanned<bool>>,
    /// Figure that its cells are judged by, unless a rate is set or instructions are counted (default `throughput`; with
    /// `iterations`, `length`).
    #[cfg_attr(test, schemars(with = "Option<Merit>"))]
    pub figure: Option<Spanned<Merit>>,
    /// Workloads that run at the same time, with clients of their own.
    #[serde(alias = "beside")]
    pub background: Option<Spanned<Vec<Spanned<Background>>>>,
    /// Loads that a trial runs one after the other, instead of `script` or `scripts`.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub phases: Option<Spanned<Vec<Spanned<Phase>>>>,
    /// Name of the phase that cells are judged by (default: the last one).
    pub judged: Option<Spanned<String>>,
    /// Length of the measured window (default: the campaign's).
    pub duration: Option<Spanned<Span>>,
    /// Load before the window, not counted (default: the campaign's).
    pub warmup: Option<Spanned<Span>>,
}

/// A phase of a workload: exactly one of `script` and `scripts`. Numbers may be expressions of parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("oneOf" = crate::schema::one_of(&["script", "scripts"]))))]
pub struct Phase {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: Spanned<String>,
    /// File in pgbench's script language.
    pub script: Option<Spanned<String>>,
    /// Files in pgbench's script language, each with a weight as in `"a.sql@3"`.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub scripts: Option<Spanned<Vec<Spanned<String>>>>,
    /// Values of the workload's parameters in this phase.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, crate::schema::Scalar>"))]
    #[serde(default)]
    pub parameters: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    /// Number of clients (default: the cell's); not of the judged phase.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub clients: Option<Spanned<toml::Value>>,
    /// Transactions started per second (default `"max"`); not of the judged phase.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub rate: Option<Spanned<toml::Value>>,
    /// Transactions of each client, after which the phase ends.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub iterations: Option<Spanned<toml::Value>>,
    /// Rows of each client, after which the phase ends.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub rows: Option<Spanned<toml::Value>>,
    /// Rows that a transaction inserts, changes or deletes.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub rows_per_transaction: Option<Spanned<toml::Value>>,
    /// Length of its window (default: the cell's); not of the judged phase.
    pub duration: Option<Spanned<Span>>,
    /// Load before the window (default: the cell's); not of the judged phase.
    pub warmup: Option<Spanned<Span>>,
    /// What other clients do during the phase.
    #[serde(default)]
    pub background: Vec<Spanned<PhaseBackground>>,
}

/// A background workload of a phase.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PhaseBackground {
    /// File in pgbench's script language.
    pub script: Spanned<String>,
    /// Its name in results (default: the file's, without `.sql`).
    pub name: Option<Spanned<String>>,
    /// Number of clients (default 1).
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub clients: Option<Spanned<toml::Value>>,
    /// Transactions started per second (default `"max"`).
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub rate: Option<Spanned<toml::Value>>,
    /// Whether `clients` and `rate` are for each client of the phase (default false).
    #[serde(default)]
    pub per_client: bool,
    /// Transactions of each client.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub iterations: Option<Spanned<toml::Value>>,
    /// Rows of each client.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub rows: Option<Spanned<toml::Value>>,
    /// Rows that a transaction inserts, changes or deletes.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::Scalar>"))]
    pub rows_per_transaction: Option<Spanned<toml::Value>>,
    /// Delay after the start of the phase, warm-up included (default none).
    pub start: Option<Spanned<Span>>,
    /// Whether its clients connect to the standby or subscriber, in cells with one (default false).
    #[serde(default)]
    pub replica: bool,
}

/// Workloads that share a data set: a `workloads.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// As in [`Workload`], for each of them.
    setup: Option<Spanned<Files>>,
    /// As in [`Workload`], for each of them.
    tables: Option<Spanned<String>>,
    /// As in [`Workload`], for each of them.
    #[serde(default)]
    parameters: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    /// Their tables by name, without these keys, and without `script`, which is the name with `.sql`.
    workloads: Tables<Workload>,
}

/// A workload that runs at the same time as another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Background {
    /// Name of a workload of pgbench, of pgdyno or of `[workloads.…]`, or a script file.
    pub workload: Spanned<String>,
    /// Number of clients (default 1).
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub clients: Option<Spanned<i64>>,
    /// Transactions started per second (default `"max"`).
    pub rate: Option<Spanned<Rate>>,
    /// Delay after the start of the load, warm-up included (default none).
    pub start: Option<Spanned<Span>>,
    /// Whether its clients connect to the standby or subscriber, in cells with one (default false).
    #[serde(default)]
    pub replica: bool,
}

/// Names of files: one, or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files(pub Vec<String>);

/// CPUs of driver and server, as for `taskset`: `"0-3,8"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pin {
    /// CPUs of the driver (default: all).
    #[cfg_attr(test, schemars(extend("pattern" = crate::schema::PROCESSORS)))]
    pub driver: Option<Spanned<String>>,
    /// CPUs of the server (default: all).
    #[cfg_attr(test, schemars(extend("pattern" = crate::schema::PROCESSORS)))]
    pub server: Option<Spanned<String>>,
}

/// Disk throughput that a server may use; what is left out is not limited.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("minProperties" = 1)))]
pub struct Disk {
    /// Data read per second, such as `"100MB/s"`.
    pub read: Option<Spanned<Throughput>>,
    /// Read requests per second.
    #[cfg_attr(test, schemars(range(min = 1, max = MAX_IOPS)))]
    pub read_iops: Option<Spanned<i64>>,
    /// Data written per second, such as `"100MB/s"`.
    pub write: Option<Spanned<Throughput>>,
    /// Write requests per second.
    #[cfg_attr(test, schemars(range(min = 1, max = MAX_IOPS)))]
    pub write_iops: Option<Spanned<i64>>,
}

impl Dataset {
    /// Where the database of a table `[datasets.NAME]` is: one kind of source, and only the keys of that kind.
    ///
    /// # Errors
    /// It has no source, several, or a key of another one.
    pub fn source(name: &str, table: &Spanned<Self>) -> Result<DatasetSource, SpecError> {
        let Self { dump, base_backup, template, database } = table.get_ref();
        let source = match (dump, base_backup, template, database) {
            (Some(dump), None, None, None) => DatasetSource::Dump(PathBuf::from(dump.get_ref())),
            (None, Some(directory), None, Some(database)) => DatasetSource::BaseBackup {
                directory: PathBuf::from(directory.get_ref()),
                database: database.get_ref().clone(),
            },
            (None, None, Some(template), None) => DatasetSource::Template(template.get_ref().clone()),
            (None, Some(directory), None, None) => {
                return Err(SpecError::at(
                    directory,
                    format!("the base backup of the data set \"{name}\" may have several databases"),
                    "name the tested one: `database = \"…\"`",
                ));
            }
            (dump, _, template, Some(database)) if dump.is_some() != template.is_some() => {
                return Err(SpecError::at(
                    database,
                    "`database` requires `base_backup`",
                    "leave it out: a dump has one database, and `template` names one",
                ));
            }
            _ => {
                return Err(SpecError::at(
                    table,
                    format!("the data set \"{name}\" has no source, or several"),
                    "expected exactly one of `dump`, `base_backup` and `template`",
                ));
            }
        };
        match source.database() {
            Some(name)
                if ["", "template0", "template1"].contains(&name) || name.contains(char::is_control) =>
            {
                Err(SpecError::at(
                    table,
                    format!("the data set \"{name}\" is not a database with data"),
                    "expected the name of a database other than template0 and template1",
                ))
            }
            _ => Ok(source),
        }
    }
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

impl Family {
    /// Reads the text of a `workloads.toml`.
    ///
    /// # Errors
    /// As [`crate::spec::Campaign::parse`].
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        parse(text)
    }

    /// The table of one of the workloads.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn workload(mut self, name: &str) -> Result<Workload, SpecError> {
        let Some((key, table)) = self.workloads.remove_entry(name) else {
            return Err(SpecError {
                message: format!("there is no table [workloads.{name}]"),
                at: None,
                help: Some("expected one for each script".to_owned()),
            });
        };
        Ok(Workload {
            script: Some(Spanned::new(key.span(), format!("{name}.sql"))),
            setup: self.setup,
            tables: self.tables,
            parameters: self.parameters,
            ..table
        })
    }
}

impl Workload {
    /// Whether it configures how clients run, beyond what they do; a workload of pgbench is then a custom one.
    pub fn configures_clients(&self) -> bool {
        self.stagger.is_some()
            || self.iterations.is_some()
            || self.spans.is_some()
            || self.figure.is_some()
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
