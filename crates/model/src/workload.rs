//! Workloads of clients.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::dataset::OwnDatabase;
use crate::merit::NamedFigure;
use crate::secret::{MASK, MaskSecrets, lines_with_secrets, mask_sql, mask_variable};
use crate::trace::Trace;
use crate::units::{Rate, Span};
use crate::version::Major;

/// A built-in script of pgbench, by pgbench's name, or custom scripts.
///
/// Source: PostgreSQL manual, pgbench, "What is the 'Transaction' Actually Performed in pgbench?".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Workload {
    /// Five statements in a transaction, three of them updates ("TPC-B (sort of)").
    TpcbLike,
    /// As `tpcb-like`, without the updates of tellers and branches, which contend at small scales.
    SimpleUpdate,
    /// One primary-key lookup.
    SelectOnly,
    /// Scripts other than pgbench's.
    Custom(Arc<Custom>),
    /// A workload of which only the name is known: of an imported trial, or of a campaign whose files are missing. It
    /// can't run.
    Named(String),
}

/// Scripts in pgbench's language, and the data that they use. Two are equal if all of this is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Custom {
    /// Its name in the campaign.
    pub name: String,
    /// Its description, in a sentence.
    pub description: Option<String>,
    /// Scripts of the clients, at least one with a weight.
    pub scripts: Vec<WeightedScript>,
    /// Initial variables of the scripts, as by pgbench's `-D`: texts by name.
    pub parameters: BTreeMap<String, String>,
    /// SQL run once when the data set is created.
    pub setup: Vec<ScriptText>,
    /// SQL run after each trial, when all has been measured.
    pub teardown: Vec<ScriptText>,
    /// SQL run after each trial, before the teardown: an error means that the data are inconsistent.
    #[serde(default)]
    pub consistency: Vec<ScriptText>,
    /// Queries after each trial whose results are figures of it, by the names of their metrics ([`crate::merit::own_figure`]).
    #[serde(default)]
    pub figures: BTreeMap<String, ScriptText>,
    /// Whether the data set has pgbench's tables.
    pub pgbench_tables: bool,
    /// Whether the data set has the tables of the star schema.
    #[serde(default)]
    pub star_tables: bool,
    /// The trace that it plays, in place of scripts; none for scripts.
    #[serde(default)]
    pub trace: Option<Trace>,
    /// The database that it runs on; none for one that pgdyno fills.
    #[serde(default)]
    pub dataset: Option<OwnDatabase>,
    /// The oldest major that has what its SQL uses; none for any.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub minimum_version: Option<Major>,
    /// Whether it changes the data set.
    pub writes: bool,
    /// Whether each transaction opens a connection.
    pub reconnect: bool,
    /// The relation whose files are read directly before each trial with cold caches; none for no raw read.
    pub raw_read: Option<String>,
    /// Delay between the first transactions of successive clients.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub stagger: Span,
    /// Transactions of each client; the load ends when all have run. None: as many as fit the duration.
    pub iterations: Option<u32>,
    /// Rows that a transaction inserts, changes or deletes; none if unknown.
    #[serde(default)]
    pub rows_per_transaction: Option<u32>,
    /// Whether the start and end of each transaction are recorded.
    pub spans: bool,
    /// The figure that its cells are judged by.
    #[serde(default)]
    pub figure: NamedFigure,
    /// Workloads that run at the same time, with clients of their own.
    #[serde(rename = "beside")]
    pub background: Vec<BackgroundWorkload>,
    /// The loads that its trials run one after the other, of which one is the workload itself; empty if it runs alone.
    #[serde(default)]
    pub phases: Vec<Phase>,
}

/// A workload that runs at the same time as the measured one, with its own clients.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackgroundWorkload {
    /// Workload of its clients, without background workloads.
    pub workload: Workload,
    /// Number of clients.
    pub clients: u32,
    /// Transactions started per second by these clients together.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub rate: Rate,
    /// Delay of their start after that of the load.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub start: Span,
    /// Whether `clients` and `rate` are for each client of the measured workload.
    #[serde(default)]
    pub per_client: bool,
    /// Whether its clients connect to the standby or subscriber of a topology that has one.
    #[serde(default)]
    pub replica: bool,
}

impl BackgroundWorkload {
    /// Name of one of its scripts among those of the whole load.
    pub fn script(&self, script: &str) -> String {
        let workload = self.workload.name();
        if workload == script { script.to_owned() } else { format!("{workload}/{script}") }
    }
}

/// One of the loads that a trial runs one after the other ([`crate::phase`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phase {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Values of the workload's parameters in this phase.
    pub parameters: BTreeMap<String, String>,
    /// Its load; none for the judged phase.
    pub load: Option<PhaseLoad>,
}

/// The load of a phase that is not judged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseLoad {
    /// What its clients do: a workload without phases.
    pub workload: Arc<Custom>,
    /// Number of its clients; none: as many as the cell has.
    pub clients: Option<u32>,
    /// Transactions started per second by these clients together.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub rate: Rate,
    /// Length of its window; none: the cell's. Without meaning if its clients have iterations.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub duration: Option<Span>,
    /// Its load before the window; none: the cell's.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub warmup: Option<Span>,
}

/// A script with its weight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WeightedScript {
    /// Its name in latencies and messages.
    pub name: String,
    /// Weight relative to the other scripts; 0 means never.
    pub weight: u64,
    /// The text.
    pub text: String,
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScriptText {
    /// Its name in messages.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A statement of a setup or teardown with its variables substituted, to be sent whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Statement {
    /// Its place: `setup.sql:3`.
    pub place: String,
    /// Its text.
    pub sql: String,
}

/// Workloads in addition to pgbench's that a campaign can name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workloads(pub BTreeMap<String, Workload>);

impl Workloads {
    /// The workload with a name.
    pub fn get(&self, name: &str) -> Option<Workload> {
        self.0.get(name).cloned()
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Adds a workload, replacing one with the same name.
    pub fn insert(&mut self, name: &str, workload: Workload) {
        self.0.insert(name.to_owned(), workload);
    }

    /// Adds those of some cells; the last one with a name wins.
    pub fn add_custom<'a>(&mut self, workloads: impl IntoIterator<Item = &'a Workload>) {
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
            consistency: Vec::new(),
            figures: BTreeMap::new(),
            pgbench_tables: true,
            star_tables: false,
            trace: None,
            dataset: None,
            minimum_version: None,
            writes: true,
            reconnect: false,
            raw_read: None,
            stagger: Span::default(),
            iterations: None,
            rows_per_transaction: None,
            spans: false,
            figure: NamedFigure::default(),
            background: Vec::new(),
            phases: Vec::new(),
        }
    }

    /// The places of secrets in its scripts: `script a.sql, line 3`.
    pub fn secret_places(&self) -> Vec<String> {
        let mut places = Vec::new();
        for workload in self.with_background() {
            for (name, text) in workload.texts() {
                places.extend(
                    lines_with_secrets(text).iter().map(|line| format!("script {name}, line {line}")),
                );
            }
        }
        places
    }

    /// Its scripts and parameters whose secrets are masked: it can't run.
    pub fn masked_parts(&self) -> Vec<String> {
        let mut parts = Vec::new();
        for workload in self.with_background() {
            let scripts = workload.texts().filter(|(_, text)| text.contains(MASK));
            parts.extend(scripts.map(|(name, _)| format!("script {name}")));
            let parameters = workload.parameters.iter().filter(|(_, value)| value.contains(MASK));
            parts.extend(parameters.map(|(name, _)| format!("parameter {name}")));
        }
        parts
    }

    /// Names and texts of its scripts, setup, teardown, figures and checks of consistency.
    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let scripts = self.scripts.iter().map(|script| (script.name.as_str(), script.text.as_str()));
        let others = self.setup.iter().chain(&self.teardown).chain(&self.consistency);
        let others = others.chain(self.figures.values());
        scripts.chain(others.map(|script| (script.name.as_str(), script.text.as_str())))
    }

    /// This workload, and those of its phases and background workloads that are not pgbench's.
    pub fn with_background(&self) -> impl Iterator<Item = &Self> {
        let loads = self.phases.iter().filter_map(|phase| phase.load.as_ref());
        let phases = iter::once(self).chain(loads.map(|load| &*load.workload));
        phases.flat_map(|phase| {
            let background = phase.background.iter().filter_map(|background| background.workload.custom());
            iter::once(phase).chain(background)
        })
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

    /// Whether it changes the data set, so that each trial needs a fresh copy.
    pub fn writes(&self) -> bool {
        match self {
            Self::TpcbLike | Self::SimpleUpdate | Self::Named(_) => true,
            Self::SelectOnly => false,
            Self::Custom(custom) => custom.writes,
        }
    }

    /// Transactions of each client; none: as many as fit the duration.
    pub fn iterations(&self) -> Option<u32> {
        self.custom()?.iterations
    }

    /// The trace that it plays; none for scripts.
    pub fn trace(&self) -> Option<&Trace> {
        self.custom()?.trace.as_ref()
    }

    /// Whether its statements have intended starts of their own: those of a trace.
    pub fn has_schedule(&self) -> bool {
        self.trace().is_some_and(|trace| !trace.closed)
    }

    /// Whether its load ends by itself: after the iterations of its clients, or with its trace.
    pub fn ends_by_itself(&self) -> bool {
        self.iterations().is_some() || self.trace().is_some()
    }

    /// Whether its trials run several loads one after the other.
    pub fn has_phases(&self) -> bool {
        self.custom().is_some_and(|custom| !custom.phases.is_empty())
    }

    /// Whether all clients are active from start to end.
    pub fn is_steady(&self) -> bool {
        self.custom().is_none_or(|custom| {
            custom.iterations.is_none() && custom.trace.is_none() && custom.stagger.is_zero()
        })
    }

    /// The workload, if it is not pgbench's.
    pub fn custom(&self) -> Option<&Custom> {
        match self {
            Self::Custom(custom) => Some(custom),
            _ => None,
        }
    }

    /// The oldest major that has what its SQL and that of its background workloads use; none for any.
    pub fn minimum_version(&self) -> Option<Major> {
        self.custom()?.with_background().filter_map(|custom| custom.minimum_version).max()
    }

    /// The database of the user's own that it runs on.
    pub fn own_database(&self) -> Option<&OwnDatabase> {
        self.custom()?.dataset.as_ref()
    }

    /// Hash of its content, which distinguishes workloads with the same name within a run of pgdyno; none for
    /// pgbench's.
    pub fn content_hash(&self) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        self.custom()?.hash(&mut hasher);
        Some(format!("{:08x}", hasher.finish() as u32))
    }

    /// pgbench's built-in script with a name, or else a workload of which only the name is known.
    pub fn from_name(name: &str) -> Self {
        Self::builtin(name).unwrap_or_else(|| Self::Named(name.to_owned()))
    }

    /// pgbench's built-in script with a name.
    pub fn builtin(name: &str) -> Option<Self> {
        Self::BUILTIN.into_iter().find(|workload| workload.name() == name)
    }
}

impl MaskSecrets for Workload {
    fn mask_secrets(&mut self) {
        if let Self::Custom(custom) = self {
            let mut masked = Custom::clone(custom);
            masked.mask_secrets();
            // Trials share the workloads that have no secrets.
            if masked != **custom {
                *custom = Arc::new(masked);
            }
        }
    }
}

impl MaskSecrets for Custom {
    fn mask_secrets(&mut self) {
        self.description.mask_secrets();
        for script in &mut self.scripts {
            script.text = mask_sql(&script.text);
        }
        let others = self.setup.iter_mut().chain(&mut self.teardown).chain(&mut self.consistency);
        for script in others.chain(self.figures.values_mut()) {
            script.text = mask_sql(&script.text);
        }
        for (name, value) in &mut self.parameters {
            *value = mask_variable(name, value);
        }
        for BackgroundWorkload { workload, .. } in &mut self.background {
            workload.mask_secrets();
        }
        for phase in &mut self.phases {
            for (name, value) in &mut phase.parameters {
                *value = mask_variable(name, value);
            }
            if let Some(load) = &mut phase.load {
                Arc::make_mut(&mut load.workload).mask_secrets();
            }
        }
    }
}

/// Protocol of the statements (pgbench's `--protocol`).
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
    /// One Query message, with values substituted in the text.
    Simple,
    /// Parse, Bind, Describe, Execute and Sync for every statement.
    Extended,
    /// Parsed once per client, then Bind, Describe, Execute and Sync.
    Prepared,
}

impl Protocol {
    /// Its name in pgbench.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Transport between driver and server.
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
    /// TCP; over loopback if the server is local.
    Tcp,
}

impl Transport {
    /// Its name in campaigns.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
