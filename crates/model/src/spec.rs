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

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer};

pub use crate::definitions::{
    Background, Build, Dataset, Definitions, Disk, Family, Files, Phase, PhaseBackground, Pin, Server,
    Settings, Sysctls, Tables, Workload,
};
use crate::factor::{self, Axis, Factor};
use crate::factors;
use crate::units::{Share, Span};
use crate::validity::Thresholds;
use crate::value::parse;
pub use crate::value::{Spanned, SpecError};
use crate::workload::Workloads;

mod commits;
#[cfg(test)]
mod schema;

pub use commits::CommitLevels;

/// Maximum samples per second and CPU: more would measure the sampling.
pub(crate) const MAX_PROFILE_HZ: i64 = 10_000;
/// Maximum readings of metrics per second.
pub(crate) const MAX_METRICS_HZ: f64 = 100.0;
/// Maximum samples of the server's sessions per second.
pub(crate) const MAX_WAITS_HZ: f64 = 1000.0;
/// Maximum repeats of an invalid trial.
pub(crate) const MAX_RETRIES: i64 = 100;
/// Maximum trials of a cell.
pub(crate) const MAX_REPEATS: i64 = 10_000;
/// Maximum number of load hosts.
pub(crate) const MAX_LOAD_HOSTS: i64 = 256;
/// Minimum trials of a cell if their number is determined during the campaign: fewer have no spread.
pub(crate) const MIN_ADAPTIVE: i64 = 3;

/// A campaign file as written. [`crate::plan::Plan::new`] checks it and lays out its cells and trials.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(title = "pgdyno campaign", description = "A campaign, as docs/campaign.md explains it")
)]
pub struct Campaign {
    /// Short name: letters, digits, `-`, `_` and `.`.
    #[cfg_attr(test, schemars(extend("pattern" = "^[A-Za-z0-9_.-]{1,60}$")))]
    pub name: Spanned<String>,
    /// Question that the campaign answers, for people.
    pub description: Option<String>,
    /// Words to select its trials by; kept in every bundle.
    #[serde(default)]
    pub tags: Vec<Spanned<String>>,
    /// Notes for people; kept in every bundle.
    pub notes: Option<String>,
    /// The axes; with `[[matrix]]`, the axes that all matrices share.
    #[serde(default)]
    pub factors: Matrix,
    /// Matrices whose cells are added up. A factor that a matrix leaves out is as in `factors`.
    #[serde(default)]
    pub matrix: Vec<Spanned<Matrix>>,
    /// Metrics collected during each load.
    #[serde(default)]
    pub collect: Collect,
    /// CPU profile of each load; none without this table.
    pub profile: Option<Spanned<Profile>>,
    /// Thresholds of the validity gates.
    pub validity: Option<Spanned<Thresholds>>,
    /// How trials run, and how many.
    #[serde(default)]
    pub run: Run,
    /// Servers, for the factor `server`.
    #[serde(default)]
    pub servers: Tables<Spanned<Server>>,
    /// Databases of the user's own, for the key `dataset` of workloads.
    #[serde(default)]
    pub datasets: Tables<Spanned<Dataset>>,
    /// Named sets of server settings, for the factor `settings`.
    #[cfg_attr(test, schemars(with = "Tables<crate::schema::Settings>"))]
    #[serde(default)]
    pub settings: Tables<Spanned<Settings>>,
    /// Workloads, for the factor `workload`.
    #[serde(default)]
    pub workloads: Tables<Workload>,
    /// Processors for driver and server, for the factor `pin`.
    #[serde(default)]
    pub pins: Tables<Pin>,
    /// Limits of disk throughput, for the factor `disk`.
    #[serde(default)]
    pub disks: Tables<Spanned<Disk>>,
    /// Kernel parameters by name or path, for the factor `sysctl`.
    #[cfg_attr(test, schemars(with = "crate::schema::Sysctls"))]
    #[serde(default)]
    pub sysctls: Tables<Sysctls>,
    /// Commands before and after the campaign and its trials.
    #[serde(default)]
    pub hooks: Hooks,
    /// The machines that `pgdyno run --fleet` may run trials on.
    #[serde(default)]
    pub fleet: Fleet,
}

macro_rules! matrices {
    ($($name:ident $key:ident,)*) => {
        /// Axes. Each is a list of levels; a factor left out has its single default level.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Matrix {
            $(
                #[doc = concat!("Levels of [`crate::factor::", stringify!($key), "`].")]
                pub $key: Option<Levels<<factor::$key::$name as Axis>::Written>>,
            )*
            /// Factors that go through their levels together; each has as many levels.
            #[serde(default)]
            pub zip: Vec<Spanned<Vec<Spanned<String>>>>,
            /// Cells to leave out: those with all levels of a point.
            #[serde(default)]
            pub exclude: Vec<Spanned<Point>>,
            /// Cells to add. A factor that a point leaves out has its default.
            #[serde(default)]
            pub include: Vec<Spanned<Point>>,
        }

        /// One level of some factors.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Point {
            $(
                #[doc = concat!("The level of [`crate::factor::", stringify!($key), "`].")]
                pub $key: Option<Spanned<<factor::$key::$name as Axis>::Written>>,
            )*
        }

        impl Matrix {
            /// Whether it has an axis of a factor.
            pub const fn has(&self, factor: Factor) -> bool {
                match factor {
                    $(Factor::$name => self.$key.is_some(),)*
                }
            }
        }
    };
}

factors!(matrices);

/// The levels of one factor, each with its place in the file.
pub type Levels<T> = Spanned<Vec<Spanned<T>>>;

/// How trials run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    /// Length of the measured window (default 10s; with `order = "paired"` 750ms, the slices of one side of a session).
    pub duration: Option<Spanned<Span>>,
    /// Load before the window, not counted (default a tenth of the duration; with `order = "paired"` 300ms).
    pub warmup: Option<Spanned<Span>>,
    /// Trials of each cell (default 3); with `order = "paired"`, sessions of each comparison (default: until it is decided, at most 500).
    pub repeats: Option<Spanned<Repeats>>,
    /// Order of the trials (default `randomized-blocks`).
    #[cfg_attr(test, schemars(extend("enum" = crate::value::names::<crate::run::Order>())))]
    pub order: Option<Spanned<String>>,
    /// Seed of the order and of the scripts' random numbers (default: drawn, and recorded).
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub seed: Option<Spanned<i64>>,
    /// Threads of the driver, never more than clients (default: one for each client if there are at most two for each CPU, else one for each CPU).
    #[cfg_attr(test, schemars(range(min = 1, max = factor::threads::MAX_THREADS)))]
    pub threads: Option<Spanned<i64>>,
    /// Factor whose levels are compared; its first level is the baseline (default: the first of `server`, `settings`,
    /// `kernel`, `host` with several levels).
    #[cfg_attr(test, schemars(extend("enum" = schema::comparable())))]
    pub compare: Option<Spanned<String>>,
    /// Change of throughput that the campaign should detect (default 5%); `plan` warns if it can't.
    pub effect: Option<Spanned<Share>>,
    /// With `order = "paired"` or `"bisect"`: time for the sessions, after which none begins (default: no limit).
    pub max_time: Option<Spanned<Span>>,
    /// With `order = "paired"`: whether the server's CPU time per transaction decides next to throughput or latency (default
    /// false). A change of either is a verdict, and equivalence takes both: for machines whose CPUs others use, too.
    pub cpu_decides: Option<Spanned<bool>>,
    /// With `order = "bisect"`: the figure whose change is searched (default: throughput, or mean latency at a rate; where a
    /// virtual machine counts them, instructions).
    #[cfg_attr(test, schemars(extend("enum" = crate::value::names::<crate::paired::PairedFigure>())))]
    pub figure: Option<Spanned<String>>,
    /// With `order = "bisect"`: the probability at which a level is named (default 95%).
    pub confidence: Option<Spanned<Share>>,
    /// With `order = "bisect"` over commits: whether the commit that was found and the one before it are compared once more, in
    /// builds with their functions in another order (default true).
    pub link_order: Option<Spanned<bool>>,
    /// With `order = "bisect"` over servers built from source: whether the next one is built while sessions of others run (default
    /// false). It takes less time, and the builds may disturb the sessions.
    pub build_while_measuring: Option<Spanned<bool>>,
    /// Repeats of an invalid trial, at most (default 2).
    #[cfg_attr(test, schemars(range(min = 0, max = MAX_RETRIES)))]
    pub retries: Option<Spanned<i64>>,
    /// `VACUUM` or `ANALYZE` before each trial (default `none`: data sets are vacuumed and analyzed when they are
    /// filled).
    #[cfg_attr(test, schemars(extend("enum" = crate::value::names::<crate::run::Vacuum>())))]
    pub vacuum: Option<Spanned<String>>,
    /// Whether each trial begins with a checkpoint (default true).
    pub checkpoint: Option<bool>,
    /// Pause between the preparation of a trial and its load (default none).
    pub settle: Option<Spanned<Span>>,
    /// Other hosts that the load comes from, with the clients spread over them: their number, or their names (default: it comes
    /// from this host).
    pub load_hosts: Option<Spanned<LoadHosts>>,
}

/// Hosts that the load comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadHosts {
    /// This many.
    Number(i64),
    /// Those with these names.
    Named(Vec<Spanned<String>>),
}

/// Number of trials of each cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Repeats {
    /// A fixed number.
    Fixed(i64),
    /// As many as the precision needs.
    Adaptive {
        /// At least so many (default 5).
        min: Option<i64>,
        /// At most so many (default 20).
        max: Option<i64>,
        /// Until the 95 % confidence interval of the mean is no wider than this to either side, as a share.
        until_ci: Option<f64>,
    },
}

/// Initial and maximum trials per cell, if their number is determined during the campaign.
pub(crate) const DEFAULT_ADAPTIVE: (u32, u32) = (5, 20);

impl Repeats {
    /// Whether their number depends on the results.
    pub fn is_adaptive(&self) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::Adaptive { min, .. } => min.unwrap_or(DEFAULT_ADAPTIVE.0.into()) < self.max(),
        }
    }

    /// Their maximum.
    pub fn max(&self) -> i64 {
        match self {
            Self::Fixed(number) => *number,
            Self::Adaptive { max, .. } => max.unwrap_or(DEFAULT_ADAPTIVE.1.into()),
        }
    }
}

/// Metrics collected during each load.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Collect {
    /// Readings of the machine's and the server's metrics per second (default 1; 0 for none).
    #[cfg_attr(test, schemars(range(min = 0, max = MAX_METRICS_HZ)))]
    pub metrics_hz: Option<Spanned<f64>>,
    /// Samples of wait events per second (default 20; 0 for none).
    #[cfg_attr(test, schemars(range(min = 0, max = MAX_WAITS_HZ)))]
    pub waits_hz: Option<Spanned<f64>>,
    /// Cost of each statement, if the server has `pg_stat_statements` (default true).
    pub statements: Option<bool>,
    /// Contents of the shared buffers before and after the load, if the server has `pg_buffercache` (default false: it
    /// takes long with large shared buffers).
    pub buffers: Option<bool>,
}

/// CPU profile of each load.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Profile {
    /// Samples per second of each busy CPU (default 99). No effect where instructions are counted.
    #[cfg_attr(test, schemars(range(min = 1, max = MAX_PROFILE_HZ)))]
    pub hz: Option<Spanned<i64>>,
    /// How callers are found: by frame pointers, by DWARF, or as the server's program allows (default `auto`).
    #[cfg_attr(test, schemars(extend("enum" = schema::call_graphs())))]
    pub callgraph: Option<Spanned<String>>,
    /// Length of the profile from the start of the measured window (default: all of it; with `dwarf`, as long as gives
    /// 32,768 samples if all CPUs are busy). Where instructions are counted, before the window (default 2 s).
    pub window: Option<Spanned<Span>>,
    /// Length of the off-CPU profile at the end of the measured window (default: none).
    pub off_cpu: Option<Spanned<Span>>,
}

/// What the machines of a fleet must have to run trials of the campaign.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Fleet {
    /// Labels that their agents were started with.
    #[serde(default)]
    pub labels: Vec<Spanned<String>>,
    /// Main memory, such as `"64GB"` (default: any).
    pub memory: Option<Spanned<String>>,
    /// Time after which the trials of a machine that is not heard of go to another one (default 30 s).
    pub lease: Option<Spanned<Span>>,
}

/// Shell commands, run with the trial's factors in their environment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hooks {
    /// Before the first trial; if it fails, the campaign does not start.
    pub before_campaign: Option<String>,
    /// After the last trial.
    pub after_campaign: Option<String>,
    /// Before each trial, with its server running; if it fails, the trial is invalid.
    pub before_trial: Option<Spanned<String>>,
    /// After each trial, with its server still running.
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

impl<'de> Deserialize<'de> for LoadHosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> de::Visitor<'de> for Either {
            type Value = LoadHosts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of hosts, or a list of their names")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<LoadHosts, E> {
                Ok(LoadHosts::Number(number))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut names: A) -> Result<LoadHosts, A::Error> {
                let mut all = Vec::new();
                while let Some(name) = names.next_element()? {
                    all.push(name);
                }
                Ok(LoadHosts::Named(all))
            }
        }
        deserializer.deserialize_any(Either)
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

    /// All definitions that its levels can name.
    pub const fn definitions<'a>(&'a self, known_workloads: &'a Workloads) -> Definitions<'a> {
        Definitions {
            servers: &self.servers,
            settings: &self.settings,
            workloads: &self.workloads,
            pins: &self.pins,
            disks: &self.disks,
            sysctls: &self.sysctls,
            known_workloads,
        }
    }

    /// All levels of the factor `workload` in the text, with their places.
    pub fn workload_levels(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.levels(|matrix| matrix.workload.as_ref(), |point| point.workload.as_ref())
    }

    /// All levels of the factor `pin` in the text, with their places.
    pub fn pin_levels(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.levels(|matrix| matrix.pin.as_ref(), |point| point.pin.as_ref())
    }

    /// All levels of a factor in the text.
    fn levels(
        &self,
        of_matrix: fn(&Matrix) -> Option<&Levels<String>>,
        of_point: fn(&Point) -> Option<&Spanned<String>>,
    ) -> impl Iterator<Item = &Spanned<String>> {
        let matrices = self.matrix.iter().map(Spanned::get_ref);
        std::iter::once(&self.factors).chain(matrices).flat_map(move |matrix| {
            let levels = of_matrix(matrix).into_iter().flat_map(|levels| levels.get_ref());
            let points = matrix.exclude.iter().chain(&matrix.include);
            levels.chain(points.filter_map(move |point| of_point(point.get_ref())))
        })
    }
}

/// Notes on deprecated keys in a campaign's text.
pub fn deprecated_keys(text: &str) -> Vec<String> {
    let Ok(campaign) = text.parse::<toml::Table>() else { return Vec::new() };
    let workloads = campaign.get("workloads").and_then(toml::Value::as_table);
    let deprecated = workloads.into_iter().flatten().filter(|(_, workload)| workload.get("beside").is_some());
    deprecated.map(|(name, _)| format!("workloads.{name}.beside is deprecated: use background")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str =
        "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 2]\n";

    fn rejection(text: &str) -> (SpecError, String) {
        let error = Campaign::parse(text).unwrap_err();
        let at = text[error.at.clone().unwrap()].to_owned();
        (error, at)
    }

    #[test]
    fn a_minimal_campaign_is_parsed() {
        let campaign = Campaign::parse(VALID).unwrap();
        assert_eq!(campaign.factors.clients.unwrap().get_ref().len(), 2);
    }

    #[test]
    fn an_unknown_key_is_shown_with_the_known_ones() {
        let (error, at) = rejection(&VALID.replace("clients", "client"));
        assert_eq!(at, "client");
        assert_eq!(error.message, "unknown field `client`");
        assert!(error.help.unwrap().contains("`clients`"));
    }

    #[test]
    fn a_wrong_type_is_shown_at_its_value() {
        let (error, at) = rejection(&VALID.replace("[1, 2]", "[1, 'two']"));
        assert_eq!(at, "'two'");
        assert!(error.message.contains("string \"two\""), "{error}");
        let (error, at) = rejection(&VALID.replace("[1, 2]", "8"));
        assert_eq!(at, "8");
        assert!(error.help.unwrap_or_default().contains("a list"));
    }

    #[test]
    fn a_duration_needs_its_unit() {
        let (error, at) = rejection(&format!("{VALID}[run]\nduration = '5'\n"));
        assert_eq!(at, "'5'");
        assert!(error.to_string().contains("`5` is not a duration"));
    }

    #[test]
    fn malformed_toml_has_a_place() {
        let (_, at) = rejection("name = 'n'\n[factors\n");
        assert!(at.trim().is_empty(), "{at:?}");
    }
}
