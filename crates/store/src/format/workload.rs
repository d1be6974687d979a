//! Content of a workload that is not built into pgbench: a part of `trial.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::dataset;
use model::merit::NamedFigure;
use model::trace;
use model::units::{Multiplier, Rate, Span};
use model::workload::{self, Workload};
use serde::{Deserialize, Serialize};

/// A workload that is not built into pgbench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadContent {
    /// Description in one sentence.
    pub description: Option<String>,
    /// Scripts of the clients, in pgbench's language.
    pub scripts: Vec<WeightedScript>,
    /// Initial variables of the scripts.
    pub parameters: BTreeMap<String, String>,
    /// Scripts run when the data set was made.
    pub setup: Vec<ScriptText>,
    /// Scripts run after the trial.
    pub teardown: Vec<ScriptText>,
    /// Scripts that checked the data after the trial.
    #[serde(default, skip_serializing_if = "is_default")]
    pub consistency: Vec<ScriptText>,
    /// Queries after the trial whose results are figures of it, by the names of their metrics.
    #[serde(default, skip_serializing_if = "is_default")]
    pub figures: BTreeMap<String, ScriptText>,
    /// Whether the data set had pgbench's tables.
    pub pgbench_tables: bool,
    /// Whether the data set had the tables of the star schema.
    #[serde(default, skip_serializing_if = "is_default")]
    pub star_tables: bool,
    /// The trace that it played, in place of scripts; absent for scripts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub trace: Option<Trace>,
    /// The database of the user's own that it ran on; null for generated tables.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dataset: Option<OwnDatabase>,
    /// The oldest major version that has what its SQL uses; null for any.
    #[serde(default, skip_serializing_if = "is_default")]
    pub minimum_version: Option<String>,
    /// Whether the workload changes the data set.
    pub writes: bool,
    /// Whether each transaction opened its own connection.
    pub reconnect: bool,
    /// The relation of the raw read before cold trials; null if there was none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub raw_read: Option<String>,
    /// Delay between the starts of successive clients, in microseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stagger_us: u64,
    /// Transactions per client; null for as many as fit into the duration.
    #[serde(default, skip_serializing_if = "is_default")]
    pub iterations: Option<u32>,
    /// Whether the start and the end of each transaction were stored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spans: bool,
    /// Name of the figure that cells are judged by; null for the default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub figure: Option<String>,
    /// Background workloads.
    #[serde(default, skip_serializing_if = "is_default")]
    #[serde(rename = "beside")]
    pub background: Vec<BackgroundWorkload>,
    /// Rows that a transaction inserts, changes or deletes; absent if unknown.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rows_per_transaction: Option<u32>,
    /// The loads that a trial runs one after the other; absent if the workload has one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub phases: Vec<Phase>,
}

/// A load of a workload with several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Values of the workload's parameters in it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parameters: BTreeMap<String, String>,
    /// Its load; null for the judged phase, which is the workload itself.
    pub load: Option<PhaseLoad>,
}

/// The load of a phase that is not judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseLoad {
    /// Name of its workload.
    pub workload: String,
    /// The content of that.
    pub workload_content: WorkloadContent,
    /// Number of clients; null for that of the cell.
    pub clients: Option<u32>,
    /// Transactions started per second; null for no limit.
    pub rate: Option<f64>,
    /// Length of its window in microseconds; null for that of the cell.
    pub duration_us: Option<u64>,
    /// Its load before the window in microseconds; null for that of the cell.
    pub warmup_us: Option<u64>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A trace, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Its file, relative to the campaign.
    pub file: String,
    /// SHA-256 of its content.
    pub sha256: String,
    /// How much faster than recorded it was played.
    #[serde(default)]
    pub speed: Multiplier,
    /// How often each session was played, on average.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rate_scale: Multiplier,
    /// Whether statements waited only for the one before in their session.
    #[serde(default, skip_serializing_if = "is_default")]
    pub closed: bool,
    /// The sessions that were played; null for all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sessions: Option<String>,
    /// Its number of sessions if pgdyno made it of the workload's scripts; absent of a recorded trace.
    #[serde(default, skip_serializing_if = "is_default")]
    pub streams: Option<u32>,
}

/// A database of the user's own, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnDatabase {
    /// Name in the campaign.
    pub name: String,
    /// What it was made from: `dump`, `base-backup` or `template`.
    pub kind: dataset::DatabaseKind,
    /// The database of a base backup or of a running server.
    pub database: Option<String>,
    /// SHA-256 of its files; null for a database of a running server.
    pub content: Option<String>,
    /// Size of its files; null for a database of a running server.
    pub bytes: Option<u64>,
}

/// A workload that ran concurrently with the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundWorkload {
    /// Name of the workload.
    pub workload: String,
    /// Its content, if it is not built into pgbench.
    pub workload_content: Option<WorkloadContent>,
    /// Number of clients.
    pub clients: u32,
    /// Transactions started per second; null for no limit.
    pub rate: Option<f64>,
    /// Start, in microseconds after the load's start.
    pub start_us: u64,
    /// Whether clients and rate are for each client of the measured workload.
    #[serde(default, skip_serializing_if = "is_default")]
    pub per_client: bool,
    /// Whether its clients connected to the standby or subscriber of the topology, if it has one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replica: bool,
}

/// A script and its weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedScript {
    /// Name of the script.
    pub name: String,
    /// Weight relative to the other scripts.
    pub weight: u64,
    /// Text of the script.
    pub text: String,
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptText {
    /// Name of the script.
    pub name: String,
    /// Text of the script.
    pub text: String,
}

mirrors!(Trace, trace::Trace { file, sha256, speed, rate_scale, closed, sessions, streams });
mirrors!(OwnDatabase, dataset::OwnDatabase { name, kind, database, content, bytes });
mirrors!(ScriptText, workload::ScriptText { name, text });
mirrors!(WeightedScript, workload::WeightedScript { name, weight, text });

impl From<&workload::Custom> for WorkloadContent {
    fn from(custom: &workload::Custom) -> Self {
        let texts = |texts: &[workload::ScriptText]| texts.iter().cloned().map(ScriptText::from).collect();
        let named = |texts: &BTreeMap<String, workload::ScriptText>| {
            texts.iter().map(|(name, text)| (name.clone(), text.clone().into())).collect()
        };
        Self {
            description: custom.description.clone(),
            scripts: custom.scripts.iter().cloned().map(WeightedScript::from).collect(),
            parameters: custom.parameters.clone(),
            setup: texts(&custom.setup),
            teardown: texts(&custom.teardown),
            consistency: texts(&custom.consistency),
            figures: named(&custom.figures),
            pgbench_tables: custom.pgbench_tables,
            star_tables: custom.star_tables,
            trace: custom.trace.clone().map(Trace::from),
            dataset: custom.dataset.clone().map(OwnDatabase::from),
            minimum_version: custom.minimum_version.map(|major| major.to_string()),
            writes: custom.writes,
            reconnect: custom.reconnect,
            raw_read: custom.raw_read.clone(),
            stagger_us: custom.stagger.us(),
            iterations: custom.iterations,
            spans: custom.spans,
            figure: custom.figure.0.map(|figure| figure.as_str().to_owned()),
            background: custom.background.iter().map(BackgroundWorkload::from).collect(),
            rows_per_transaction: custom.rows_per_transaction,
            phases: custom.phases.iter().map(Phase::from).collect(),
        }
    }
}

impl From<&workload::Phase> for Phase {
    fn from(phase: &workload::Phase) -> Self {
        let load = phase.load.as_ref().map(|load| PhaseLoad {
            workload: load.workload.name.clone(),
            workload_content: WorkloadContent::from(&*load.workload),
            clients: load.clients,
            rate: load.rate.get(),
            duration_us: load.duration.map(Span::us),
            warmup_us: load.warmup.map(Span::us),
        });
        Self { name: phase.name.clone(), parameters: phase.parameters.clone(), load }
    }
}

impl Phase {
    fn into_model(self) -> workload::Phase {
        let load = self.load.map(|load| workload::PhaseLoad {
            workload: Arc::new(load.workload_content.into_custom(load.workload)),
            clients: load.clients,
            rate: load.rate.and_then(Rate::per_second).unwrap_or(Rate::MAX),
            duration: load.duration_us.map(Span::from_us),
            warmup: load.warmup_us.map(Span::from_us),
        });
        workload::Phase { name: self.name, parameters: self.parameters, load }
    }
}

impl From<&workload::BackgroundWorkload> for BackgroundWorkload {
    fn from(background: &workload::BackgroundWorkload) -> Self {
        Self {
            workload: background.workload.name().to_owned(),
            workload_content: background.workload.custom().map(WorkloadContent::from),
            clients: background.clients,
            rate: background.rate.get(),
            start_us: background.start.us(),
            per_client: background.per_client,
            replica: background.replica,
        }
    }
}

impl BackgroundWorkload {
    fn into_model(self) -> workload::BackgroundWorkload {
        let workload = match self.workload_content {
            Some(content) => content.into_model(self.workload),
            None => Workload::from_name(&self.workload),
        };
        workload::BackgroundWorkload {
            workload,
            clients: self.clients,
            rate: self.rate.and_then(Rate::per_second).unwrap_or(Rate::MAX),
            start: Span::from_us(self.start_us),
            per_client: self.per_client,
            replica: self.replica,
        }
    }
}

impl WorkloadContent {
    pub(super) fn into_model(self, name: String) -> Workload {
        Workload::Custom(Arc::new(self.into_custom(name)))
    }

    fn into_custom(self, name: String) -> workload::Custom {
        let texts = |texts: Vec<ScriptText>| texts.into_iter().map(workload::ScriptText::from).collect();
        workload::Custom {
            name,
            description: self.description,
            scripts: self.scripts.into_iter().map(workload::WeightedScript::from).collect(),
            parameters: self.parameters,
            setup: texts(self.setup),
            teardown: texts(self.teardown),
            consistency: texts(self.consistency),
            figures: self.figures.into_iter().map(|(name, text)| (name, text.into())).collect(),
            pgbench_tables: self.pgbench_tables,
            star_tables: self.star_tables,
            trace: self.trace.map(trace::Trace::from),
            dataset: self.dataset.map(dataset::OwnDatabase::from),
            // One that is not understood is that of a later release.
            minimum_version: self.minimum_version.and_then(|major| major.parse().ok()),
            writes: self.writes,
            reconnect: self.reconnect,
            raw_read: self.raw_read,
            stagger: Span::from_us(self.stagger_us),
            iterations: self.iterations,
            spans: self.spans,
            // One of a later release is shown by the default.
            figure: NamedFigure(self.figure.and_then(|figure| figure.parse().ok())),
            background: self.background.into_iter().map(BackgroundWorkload::into_model).collect(),
            rows_per_transaction: self.rows_per_transaction,
            phases: self.phases.into_iter().map(Phase::into_model).collect(),
        }
    }
}
