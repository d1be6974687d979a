//! A campaign as it is written: a TOML file, read strictly, with the place of every value kept for error messages.
//!
//! ```toml
//! name = "upgrade"
//!
//! [factors]                      # each list is an axis; the cells are their product
//! server   = ["14", "18"]
//! settings = ["default", "big"]
//! workload = ["select-only", "tpcb-like"]
//! scale    = [10]
//! clients  = [1, 2, 4, 8]
//!
//! [run]
//! duration = "30s"
//! repeats  = 5
//!
//! [settings.big]                 # a named set of server settings
//! shared_buffers = "2GB"
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{self, Deserializer};
use toml::Spanned;

use crate::limits::MemoryLimit;
use crate::machine::Cpus;
use crate::units::{Rate, Share, Span, Throughput};
use crate::validity::Thresholds;

/// A campaign file as written. [`crate::plan::Plan::of`] checks it and makes cells and trials of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    /// Short name: letters, digits, `-`, `_` and `.`.
    pub name: Spanned<String>,
    /// What the campaign is to find out, for people.
    pub description: Option<String>,
    /// Words to find its trials by; kept in every bundle.
    #[serde(default)]
    pub tags: Vec<Spanned<String>>,
    /// Anything to be remembered; kept in every bundle.
    pub notes: Option<String>,
    /// The axes; where there are matrices, what they have in common.
    #[serde(default)]
    pub factors: Matrix,
    /// Products of their own, which together make the cells. What one leaves out is as in `factors`.
    #[serde(default)]
    pub matrix: Vec<Spanned<Matrix>>,
    /// What is collected beside each load.
    #[serde(default)]
    pub collect: Collect,
    /// Which functions processors are in, sampled beside each load; nothing where there is no such table.
    pub profile: Option<Spanned<Profile>>,
    /// Up to where a trial is sound.
    pub validity: Option<Spanned<Thresholds>>,
    /// How each trial runs, and how many of them.
    #[serde(default)]
    pub run: Run,
    /// Servers, for the factor `server`.
    #[serde(default)]
    pub servers: BTreeMap<Spanned<String>, Spanned<Server>>,
    /// Named sets of server settings, for the factor `settings`.
    #[serde(default)]
    pub settings: BTreeMap<Spanned<String>, Spanned<BTreeMap<String, Spanned<toml::Value>>>>,
    /// Workloads, for the factor `workload`.
    #[serde(default)]
    pub workloads: BTreeMap<Spanned<String>, Workload>,
    /// Processors for driver and server, for the factor `pin`.
    #[serde(default)]
    pub pins: BTreeMap<Spanned<String>, Pin>,
    /// How much of a disk a server may use, for the factor `disk`.
    #[serde(default)]
    pub disks: BTreeMap<Spanned<String>, Spanned<Disk>>,
    /// Kernel parameters by name or path, for the factor `sysctl`.
    #[serde(default)]
    pub sysctls: BTreeMap<Spanned<String>, Sysctls>,
    /// Commands to be run around the campaign and its trials.
    #[serde(default)]
    pub hooks: Hooks,
}

/// Axes. Each is a list of levels; a factor left out has its single default level.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// PostgreSQL versions (a major, `"18"`, or a full version, `"16.4"`) and names of `[servers.…]` tables.
    pub server: Option<Levels<String>>,
    /// Names of `[settings.…]` tables; `"default"` is the server as it comes.
    pub settings: Option<Levels<String>>,
    /// Kernels: versions, or how they begin, packages of Debian's or patterns of them, paths of a bzImage or of a built
    /// kernel tree (with a `/`, relative to the campaign's directory). `"host"` is the one that runs.
    pub kernel: Option<Levels<String>>,
    /// What executes a kernel's instructions: `none` (the machine itself, when it runs that kernel), `kvm`, `tcg`,
    /// `icount`.
    pub acceleration: Option<Levels<String>>,
    /// What kernels' command lines have beside what they need; `"none"` is nothing.
    pub kernel_args: Option<Levels<String>>,
    /// Names of `[sysctls.…]` tables; `"default"` sets nothing.
    pub sysctl: Option<Levels<String>>,
    /// Numbers of processors of virtual machines; `"host"` is as many as the machine has.
    pub cpus: Option<Levels<Cpus>>,
    /// Where the data of virtual machines are: `memory`, `virtio`, `virtio-CACHE-AIO`.
    pub storage: Option<Levels<String>>,
    /// Names of hosts: their trials run there. `"any"` is whichever host pgdyno is on.
    pub host: Option<Levels<String>>,
    /// Built-in scripts by pgbench's names, and names of `[workloads.…]` tables.
    pub workload: Option<Levels<String>>,
    /// pgbench scale factors; 1 is 100,000 accounts, about 16 MB.
    pub scale: Option<Levels<i64>>,
    /// Numbers of clients.
    pub clients: Option<Levels<i64>>,
    /// Threads of the driver; never more than clients.
    pub threads: Option<Levels<i64>>,
    /// `simple`, `extended`, `prepared`.
    pub protocol: Option<Levels<String>>,
    /// `unix`, `tcp`.
    pub transport: Option<Levels<String>>,
    /// Transactions begun in a second, by all clients together, or `"max"`: the next as soon as the last has ended.
    pub rate: Option<Levels<Rate>>,
    /// Lengths of the measured window.
    pub duration: Option<Levels<Span>>,
    /// Load before the window, not counted.
    pub warmup: Option<Levels<Span>>,
    /// Names of `[pins.…]` tables; `"none"` leaves the choice of processors to the system.
    pub pin: Option<Levels<String>>,
    /// What the caches hold when a trial's load begins: `warm`, `cold`, `as-is`.
    pub cache: Option<Levels<String>>,
    /// Sizes of memory that the server may have with its page cache; `"none"` is all that there is.
    pub memory: Option<Levels<MemoryLimit>>,
    /// Names of `[disks.…]` tables; `"none"` is the disk as it is.
    pub disk: Option<Levels<String>>,
    /// Factors that go through their levels together, which need as many of them.
    #[serde(default)]
    pub zip: Vec<Spanned<Vec<Spanned<String>>>>,
    /// Cells to be left out: those that have all of a point's levels.
    #[serde(default)]
    pub exclude: Vec<Spanned<Point>>,
    /// Cells to be added. What a point leaves out is at its default.
    #[serde(default)]
    pub include: Vec<Spanned<Point>>,
}

/// One level of some factors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "as in `Matrix`")]
pub struct Point {
    pub server: Option<Spanned<String>>,
    pub settings: Option<Spanned<String>>,
    pub kernel: Option<Spanned<String>>,
    pub acceleration: Option<Spanned<String>>,
    pub kernel_args: Option<Spanned<String>>,
    pub sysctl: Option<Spanned<String>>,
    pub cpus: Option<Spanned<Cpus>>,
    pub storage: Option<Spanned<String>>,
    pub host: Option<Spanned<String>>,
    pub workload: Option<Spanned<String>>,
    pub scale: Option<Spanned<i64>>,
    pub clients: Option<Spanned<i64>>,
    pub threads: Option<Spanned<i64>>,
    pub protocol: Option<Spanned<String>>,
    pub transport: Option<Spanned<String>>,
    pub rate: Option<Spanned<Rate>>,
    pub duration: Option<Spanned<Span>>,
    pub warmup: Option<Spanned<Span>>,
    pub pin: Option<Spanned<String>>,
    pub cache: Option<Spanned<String>>,
    pub memory: Option<Spanned<MemoryLimit>>,
    pub disk: Option<Spanned<String>>,
}

/// The levels of one factor, each with its place in the file.
pub type Levels<T> = Spanned<Vec<Spanned<T>>>;

/// Kernel parameters with their values, each with its place in the file.
pub type Sysctls = BTreeMap<Spanned<String>, Spanned<toml::Value>>;

/// How trials run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Length of the measured window (default 10s).
    pub duration: Option<Spanned<Span>>,
    /// Load before the window, not counted (default a tenth of the duration).
    pub warmup: Option<Spanned<Span>>,
    /// Trials of each cell (default 3).
    pub repeats: Option<Spanned<Repeats>>,
    /// Order of the trials (default `randomized-blocks`).
    pub order: Option<Spanned<String>>,
    /// Seed of the order and of the scripts' random numbers; drawn and recorded where it is left out.
    pub seed: Option<Spanned<i64>>,
    /// Threads of the driver (default 1; never more than clients).
    pub threads: Option<Spanned<i64>>,
    /// The factor whose levels are to be compared, the first level being the baseline (default: the first factor of
    /// `server`, `settings`, `kernel`, `host` that has several).
    pub compare: Option<Spanned<String>>,
    /// The change of throughput that the campaign is to show (default 5%): `plan` warns where it can't.
    pub effect: Option<Spanned<Share>>,
    /// How often an invalid trial is run again (default 2).
    pub retries: Option<Spanned<i64>>,
    /// What is vacuumed or analyzed before each trial (default `none`: the data set is both when it is filled).
    pub vacuum: Option<Spanned<String>>,
    /// Whether each trial begins with a checkpoint (default true).
    pub checkpoint: Option<bool>,
    /// Pause between the preparation of a trial and its load (default none).
    pub settle: Option<Spanned<Span>>,
}

/// How many trials each cell has.
#[derive(Clone, Debug, PartialEq)]
pub enum Repeats {
    /// So many.
    Fixed(i64),
    /// As many as are needed.
    Adaptive {
        /// At least so many (default 5).
        min: Option<i64>,
        /// At most so many (default 20).
        max: Option<i64>,
        /// Until the 95 % confidence interval of the mean is no wider than this to either side, as a share.
        until_ci: Option<f64>,
    },
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
    pub beside: Option<Spanned<Vec<Spanned<Beside>>>>,
    /// Length of the measured window, where it is not the campaign's.
    pub duration: Option<Spanned<Span>>,
    /// Load before the window.
    pub warmup: Option<Spanned<Span>>,
}

/// A workload that runs at the same time as another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
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

/// What is collected beside each load.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collect {
    /// How often a second figures of the machine and of the server are read (default 1; 0 for never).
    pub metrics_hz: Option<Spanned<f64>>,
    /// How often a second it is looked what the server's sessions wait for (default 20; 0 for never).
    pub waits_hz: Option<Spanned<f64>>,
    /// What each statement cost, where the server has `pg_stat_statements` (default true).
    pub statements: Option<bool>,
    /// Which tables fill the shared buffers before and after the load, where the server has `pg_buffercache` (default
    /// false: looking takes its time where there are many).
    pub buffers: Option<bool>,
}

/// What is profiled beside each load.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Samples a second of each busy processor (default 99).
    pub hz: Option<Spanned<i64>>,
    /// `auto` (default), `fp`, `dwarf`.
    pub callgraph: Option<Spanned<String>>,
    /// How much of the measured window, from its beginning (default all of it; with `dwarf` as much as gives 32,768 samples
    /// on processors that are all busy).
    pub window: Option<Spanned<Span>>,
    /// How much of the measured window's end is for stacks of what waits (default nothing).
    pub off_cpu: Option<Spanned<Span>>,
}

/// Shell commands. Each is run with the trial's factors in its environment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hooks {
    /// Before the first trial; the campaign does not begin where it fails.
    pub before_campaign: Option<String>,
    /// After the last trial.
    pub after_campaign: Option<String>,
    /// Before each trial, its server running; the trial is invalid where it fails.
    pub before_trial: Option<Spanned<String>>,
    /// After each trial, its server still running.
    pub after_trial: Option<Spanned<String>>,
}

impl<'de> Deserialize<'de> for Repeats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            min: Option<i64>,
            max: Option<i64>,
            until_ci: Option<Share>,
        }
        struct Either;
        impl<'de> de::Visitor<'de> for Either {
            type Value = Repeats;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a table such as { min = 5, max = 20, until_ci = \"2%\" }")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Repeats, E> {
                Ok(Repeats::Fixed(number))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Repeats, A::Error> {
                let table = Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
                let until_ci = table.until_ci.map(|Share(share)| share);
                Ok(Repeats::Adaptive { min: table.min, max: table.max, until_ci })
            }
        }
        deserializer.deserialize_any(Either)
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

/// Why a campaign can't be used, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// What is wrong.
    pub message: String,
    /// Bytes of the campaign's text that are to blame; none where it is the whole file.
    pub at: Option<Range<usize>>,
    /// What was expected, or what to do.
    pub help: Option<String>,
}

impl SpecError {
    /// An error at a value's place.
    pub fn at<T>(place: &Spanned<T>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), at: Some(place.span()), help: Some(help.into()) }
    }
}

impl Campaign {
    /// Reads a campaign's text.
    ///
    /// # Errors
    /// Malformed TOML, an unknown key, a missing one or a wrong type, with its place.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        parse(text)
    }

    /// Every level of the factor `workload` that the text has, with its place.
    pub fn workload_levels(&self) -> impl Iterator<Item = &Spanned<String>> {
        let matrices = self.matrix.iter().map(Spanned::get_ref);
        std::iter::once(&self.factors).chain(matrices).flat_map(|matrix| {
            let levels = matrix.workload.iter().flat_map(|levels| levels.get_ref());
            let points = matrix.exclude.iter().chain(&matrix.include);
            levels.chain(points.filter_map(|point| point.get_ref().workload.as_ref()))
        })
    }
}

impl Workload {
    /// Whether it says how clients run, beyond what they do: one of pgbench's is then no longer as pgbench has it.
    pub fn says_how(&self) -> bool {
        self.stagger.is_some() || self.iterations.is_some() || self.spans.is_some() || self.beside.is_some()
    }

    /// Reads the text of a `workload.toml`.
    ///
    /// # Errors
    /// As [`Campaign::parse`].
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        parse(text)
    }
}

fn parse<T: de::DeserializeOwned>(text: &str) -> Result<T, SpecError> {
    toml::from_str(text).map_err(|error| {
        let (message, help) = split_expectation(error.message());
        SpecError { message, at: error.span(), help }
    })
}

/// Parts "what is wrong, expected …" at the comma, so that the expectation is shown as help.
fn split_expectation(message: &str) -> (String, Option<String>) {
    let message = message.trim_end();
    match message.split_once(", expected ") {
        Some((what, "a sequence")) => (what.to_owned(), Some("expected a list in [brackets]".to_owned())),
        Some((what, expected)) => (what.to_owned(), Some(format!("expected {expected}"))),
        None => (message.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 2]\n";

    fn refused(text: &str) -> (SpecError, String) {
        let error = Campaign::parse(text).unwrap_err();
        let at = text[error.at.clone().unwrap()].to_owned();
        (error, at)
    }

    #[test]
    fn the_least_campaign_is_read() {
        let campaign = Campaign::parse(GOOD).unwrap();
        assert_eq!(campaign.factors.clients.unwrap().get_ref().len(), 2);
    }

    #[test]
    fn an_unknown_key_is_shown_with_the_known_ones() {
        let (error, at) = refused(&GOOD.replace("clients", "client"));
        assert_eq!(at, "client");
        assert_eq!(error.message, "unknown field `client`");
        assert!(error.help.unwrap().contains("`clients`"));
    }

    #[test]
    fn a_wrong_type_is_shown_at_its_value() {
        let (error, at) = refused(&GOOD.replace("[1, 2]", "[1, 'two']"));
        assert_eq!(at, "'two'");
        assert!(error.message.contains("string \"two\""), "{error}");
        let (error, at) = refused(&GOOD.replace("[1, 2]", "8"));
        assert_eq!(at, "8");
        assert!(error.help.unwrap_or_default().contains("a list"));
    }

    #[test]
    fn a_duration_needs_its_unit() {
        let (error, at) = refused(&format!("{GOOD}[run]\nduration = '5'\n"));
        assert_eq!(at, "'5'");
        assert!(error.to_string().contains("`5` is not a duration"));
    }

    #[test]
    fn malformed_toml_has_a_place() {
        let (_, at) = refused("name = 'n'\n[factors\n");
        assert!(at.trim().is_empty(), "{at:?}");
    }
}
