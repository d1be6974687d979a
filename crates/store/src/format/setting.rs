//! `settings.json`: all server settings in force.

use model::record::Setting as Model;
use serde::{Deserialize, Serialize};

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "settings.json";

/// One entry of the list in `settings.json`, as in `pg_settings`, with secrets masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Name.
    pub name: String,
    /// Value in the setting's base unit.
    pub value: String,
    /// Base unit.
    pub unit: Option<String>,
    /// Source of the value.
    pub source: String,
    /// When it can be changed (`postmaster`, `sighup`, …); null in older bundles.
    #[serde(default)]
    pub context: Option<String>,
    /// Whether a configuration file has another value that requires a restart; null in older bundles.
    #[serde(default)]
    pub pending_restart: Option<bool>,
}

mirrors!(Setting, Model { name, value, unit, source, context, pending_restart });
