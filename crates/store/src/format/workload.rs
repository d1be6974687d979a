//! What a workload is that is not pgbench's: a part of `trial.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::workload::{self, Workload};
use serde::{Deserialize, Serialize};

/// A workload that is not pgbench's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The relation whose files were read past the server before cold trials; null where none were, and in older bundles.
    #[serde(default)]
    pub raw_read: Option<String>,
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
        }))
    }
}
