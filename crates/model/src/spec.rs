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
use toml::Spanned;

pub use crate::definitions::{
    Background, Build, Definitions, Disk, Files, Pin, Server, Settings, Sysctls, Tables, Workload,
};
use crate::factor::{self, Axis, Factor};
use crate::factors;
use crate::units::{Share, Span};
use crate::validity::Thresholds;
pub use crate::value::SpecError;
use crate::value::parse;
use crate::workload::Workloads;

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
    pub servers: Tables<Spanned<Server>>,
    /// Named sets of server settings, for the factor `settings`.
    #[serde(default)]
    pub settings: Tables<Spanned<Settings>>,
    /// Workloads, for the factor `workload`.
    #[serde(default)]
    pub workloads: Tables<Workload>,
    /// Processors for driver and server, for the factor `pin`.
    #[serde(default)]
    pub pins: Tables<Pin>,
    /// How much of a disk a server may use, for the factor `disk`.
    #[serde(default)]
    pub disks: Tables<Spanned<Disk>>,
    /// Kernel parameters by name or path, for the factor `sysctl`.
    #[serde(default)]
    pub sysctls: Tables<Sysctls>,
    /// Commands to be run around the campaign and its trials.
    #[serde(default)]
    pub hooks: Hooks,
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
            /// Factors that go through their levels together, which need as many of them.
            #[serde(default)]
            pub zip: Vec<Spanned<Vec<Spanned<String>>>>,
            /// Cells to be left out: those that have all of a point's levels.
            #[serde(default)]
            pub exclude: Vec<Spanned<Point>>,
            /// Cells to be added. A factor that a point leaves out is at its default.
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

impl Campaign {
    /// Reads a campaign's text.
    ///
    /// # Errors
    /// Malformed TOML, an unknown key, a missing one or a wrong type, with its place.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        parse(text)
    }

    /// Everything that its levels can name.
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

/// Notes on keys of a campaign's text that are read though they have other names now.
pub fn outdated_keys(text: &str) -> Vec<String> {
    let Ok(campaign) = text.parse::<toml::Table>() else { return Vec::new() };
    let workloads = campaign.get("workloads").and_then(toml::Value::as_table);
    let outdated = workloads.into_iter().flatten().filter(|(_, workload)| workload.get("beside").is_some());
    outdated.map(|(name, _)| format!("workloads.{name}.beside is called background now")).collect()
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
