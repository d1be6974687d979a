//! What a workload is that is not pgbench's: a part of `trial.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::units::{Rate, Span};
use model::workload::{self, Workload};
use serde::{Deserialize, Serialize};

/// A workload that is not pgbench's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadContent {
    /// What it is, in a sentence.
    pub description: Option<String>,
    /// What clients ran, in pgbench's language.
    pub scripts: Vec<WeightedScript>,
    /// Variables that scripts began with.
    pub parameters: BTreeMap<String, String>,
    /// What was run when the data set was made.
    pub setup: Vec<ScriptText>,
    /// What was run after the trial.
    pub teardown: Vec<ScriptText>,
    /// Whether the data set had pgbench's tables.
    pub pgbench_tables: bool,
    /// Whether it changes the data set.
    pub writes: bool,
    /// Whether each transaction had a connection of its own.
    pub reconnect: bool,
    /// The relation whose files were read past the server before cold trials; null where none were.
    #[serde(default, skip_serializing_if = "is_default")]
    pub raw_read: Option<String>,
    /// How much later each further client began, in microseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stagger_us: u64,
    /// How many transactions each client ran; null: as many as the duration held.
    #[serde(default, skip_serializing_if = "is_default")]
    pub iterations: Option<u32>,
    /// Whether the start and the end of each transaction were kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spans: bool,
    /// What others did at the same time.
    #[serde(default, skip_serializing_if = "is_default")]
    #[serde(rename = "beside")]
    pub background: Vec<BackgroundWorkload>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A workload that ran at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundWorkload {
    /// Its name.
    pub workload: String,
    /// What it is, where it is not pgbench's.
    pub workload_content: Option<WorkloadContent>,
    /// Its clients.
    pub clients: u32,
    /// Transactions begun in a second; null: as many as could be.
    pub rate: Option<f64>,
    /// When it began, in microseconds after the load's start.
    pub start_us: u64,
}

/// A script, and how often it was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedScript {
    /// Its name.
    pub name: String,
    /// Its weight among those of all scripts.
    pub weight: u64,
    /// The text.
    pub text: String,
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptText {
    /// Its name.
    pub name: String,
    /// The text.
    pub text: String,
}

mirrors!(ScriptText, workload::ScriptText { name, text });
mirrors!(WeightedScript, workload::WeightedScript { name, weight, text });

impl From<&workload::Custom> for WorkloadContent {
    fn from(custom: &workload::Custom) -> Self {
        let texts = |texts: &[workload::ScriptText]| texts.iter().cloned().map(ScriptText::from).collect();
        Self {
            description: custom.description.clone(),
            scripts: custom.scripts.iter().cloned().map(WeightedScript::from).collect(),
            parameters: custom.parameters.clone(),
            setup: texts(&custom.setup),
            teardown: texts(&custom.teardown),
            pgbench_tables: custom.pgbench_tables,
            writes: custom.writes,
            reconnect: custom.reconnect,
            raw_read: custom.raw_read.clone(),
            stagger_us: custom.stagger.us(),
            iterations: custom.iterations,
            spans: custom.spans,
            background: custom.background.iter().map(BackgroundWorkload::from).collect(),
        }
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
        }
    }
}

impl WorkloadContent {
    pub(super) fn into_model(self, name: String) -> Workload {
        let texts = |texts: Vec<ScriptText>| texts.into_iter().map(workload::ScriptText::from).collect();
        Workload::Custom(Arc::new(workload::Custom {
            name,
            description: self.description,
            scripts: self.scripts.into_iter().map(workload::WeightedScript::from).collect(),
            parameters: self.parameters,
            setup: texts(self.setup),
            teardown: texts(self.teardown),
            pgbench_tables: self.pgbench_tables,
            writes: self.writes,
            reconnect: self.reconnect,
            raw_read: self.raw_read,
            stagger: Span::from_us(self.stagger_us),
            iterations: self.iterations,
            spans: self.spans,
            background: self.background.into_iter().map(BackgroundWorkload::into_model).collect(),
        }))
    }
}
