//! What clients can be asked to do.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::units::{Rate, Span};

/// One of pgbench's built-in scripts, by pgbench's own names, or scripts of one's own.
///
/// Source: PostgreSQL manual, pgbench, "What is the 'Transaction' Actually Performed in pgbench?".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Five statements in a transaction, three of them updates ("TPC-B (sort of)").
    TpcbLike,
    /// As `tpcb-like`, without the updates of tellers and branches, which contend at small scales.
    SimpleUpdate,
    /// One primary-key lookup.
    SelectOnly,
    /// Scripts that are not pgbench's.
    Custom(Arc<Custom>),
    /// A workload of which only the name is known: of an imported trial, or of a campaign whose files are gone. It can't
    /// be run.
    Named(String),
}

/// Scripts in pgbench's language, and the data that they run on. Two are the same where all of this is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Custom {
    /// Its name in the campaign.
    pub name: String,
    /// What it is, in a sentence.
    pub description: Option<String>,
    /// What clients run, at least one with a weight.
    pub scripts: Vec<WeightedScript>,
    /// Variables that scripts begin with, as by pgbench's `-D`: texts by name.
    pub parameters: BTreeMap<String, String>,
    /// What is run once when the data set is made.
    pub setup: Vec<ScriptText>,
    /// What is run after each trial, when all has been measured.
    pub teardown: Vec<ScriptText>,
    /// Whether the data set has pgbench's tables.
    pub pgbench_tables: bool,
    /// Whether it changes the data set.
    pub writes: bool,
    /// Whether each transaction has a connection of its own.
    pub reconnect: bool,
    /// The relation whose files are read past the server before each trial that begins with cold caches; none for none.
    pub raw_read: Option<String>,
    /// How much later each further client begins its first transaction.
    pub stagger: Span,
    /// How many transactions each client runs; the load ends when all have. None: as long as the load lasts.
    pub iterations: Option<u32>,
    /// Whether the start and the end of each transaction are kept.
    pub spans: bool,
    /// Workloads that run at the same time, with clients of their own.
    #[serde(rename = "beside")]
    pub background: Vec<BackgroundWorkload>,
}

/// A workload that runs at the same time as the one that is measured, with clients of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BackgroundWorkload {
    /// What they do, without background workloads of its own.
    pub workload: Workload,
    /// How many they are.
    pub clients: u32,
    /// Transactions begun in a second by these clients together.
    pub rate: Rate,
    /// When they begin, after the load's start.
    pub start: Span,
}

impl BackgroundWorkload {
    /// The name of one of its scripts among those of the whole load.
    pub fn script(&self, script: &str) -> String {
        let workload = self.workload.name();
        if workload == script { script.to_owned() } else { format!("{workload}/{script}") }
    }
}

/// A script, and how often it is chosen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WeightedScript {
    /// Its name in latencies and messages.
    pub name: String,
    /// Its weight among those of all scripts; 0 means never.
    pub weight: u64,
    /// The text.
    pub text: String,
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ScriptText {
    /// Its name in messages.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A statement of a setup or teardown, its variables filled in: to be sent whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Statement {
    /// Where it is from: `setup.sql:3`.
    pub place: String,
    /// Its text.
    pub sql: String,
}

/// The workloads in addition to pgbench's that a campaign can name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workloads(pub BTreeMap<String, Workload>);

impl Workloads {
    /// The workload of that name.
    pub fn get(&self, name: &str) -> Option<Workload> {
        self.0.get(name).cloned()
    }

    /// Names of all of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Adds a workload; it takes the place of one of that name.
    pub fn insert(&mut self, name: &str, workload: Workload) {
        self.0.insert(name.to_owned(), workload);
    }

    /// Takes in those of some cells; of one name, the last counts.
    pub fn learn<'a>(&mut self, workloads: impl IntoIterator<Item = &'a Workload>) {
        for workload in workloads {
            if let Workload::Custom(custom) = workload {
                self.insert(&custom.name, workload.clone());
            }
        }
    }
}

impl Custom {
    /// Scripts on pgbench's tables, with every option at its default.
    pub fn new(name: &str, scripts: Vec<WeightedScript>) -> Self {
        Self {
            name: name.to_owned(),
            description: None,
            scripts,
            parameters: BTreeMap::new(),
            setup: Vec::new(),
            teardown: Vec::new(),
            pgbench_tables: true,
            writes: true,
            reconnect: false,
            raw_read: None,
            stagger: Span::default(),
            iterations: None,
            spans: false,
            background: Vec::new(),
        }
    }

    /// This workload and those of its background workloads that are not pgbench's.
    pub fn with_background(&self) -> impl Iterator<Item = &Self> {
        iter::once(self).chain(self.background.iter().filter_map(|background| background.workload.custom()))
    }
}

impl Workload {
    /// pgbench's built-in scripts.
    pub const BUILTIN: [Self; 3] = [Self::TpcbLike, Self::SimpleUpdate, Self::SelectOnly];

    /// Its name: pgbench's, or the campaign's.
    pub fn name(&self) -> &str {
        match self {
            Self::TpcbLike => "tpcb-like",
            Self::SimpleUpdate => "simple-update",
            Self::SelectOnly => "select-only",
            Self::Custom(custom) => &custom.name,
            Self::Named(name) => name,
        }
    }

    /// Whether it changes the data set, so that each trial has to begin with a fresh copy.
    pub fn writes(&self) -> bool {
        match self {
            Self::TpcbLike | Self::SimpleUpdate | Self::Named(_) => true,
            Self::SelectOnly => false,
            Self::Custom(custom) => custom.writes,
        }
    }

    /// How many transactions each client runs; none: as many as the load's time holds.
    pub fn iterations(&self) -> Option<u32> {
        self.custom()?.iterations
    }

    /// Whether all clients are at work from the beginning to the end.
    pub fn is_steady(&self) -> bool {
        self.custom().is_none_or(|custom| custom.iterations.is_none() && custom.stagger.is_zero())
    }

    /// The workload, where it is not pgbench's.
    pub fn custom(&self) -> Option<&Custom> {
        match self {
            Self::Custom(custom) => Some(custom),
            _ => None,
        }
    }

    /// A hash of its content, which distinguishes workloads of one name within a run of pgdyno; none for pgbench's.
    pub fn mark(&self) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        self.custom()?.hash(&mut hasher);
        Some(format!("{:08x}", hasher.finish() as u32))
    }

    /// pgbench's built-in script of that name, or else a workload of which only the name is known.
    pub fn from_name(name: &str) -> Self {
        Self::builtin(name).unwrap_or_else(|| Self::Named(name.to_owned()))
    }

    /// pgbench's built-in script of that name.
    pub fn builtin(name: &str) -> Option<Self> {
        Self::BUILTIN.into_iter().find(|workload| workload.name() == name)
    }
}

/// How statements are sent (pgbench's `--protocol`).
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
pub enum Protocol {
    /// One Query message, values written into the text.
    Simple,
    /// Parse, Bind, Describe, Execute and Sync for every statement.
    Extended,
    /// Parsed once per client, then Bind, Describe, Execute and Sync.
    Prepared,
}

impl Protocol {
    /// pgbench's name of it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What carries the bytes between driver and target.
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
pub enum Transport {
    /// A Unix-domain socket.
    Unix,
    /// TCP; on loopback where the target is local.
    Tcp,
}

impl Transport {
    /// Its name in campaigns.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
