//! `settings.json`: every server setting as it was in force.

use model::record::Setting as Model;
use serde::{Deserialize, Serialize};

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "settings.json";

/// One entry of the list in `settings.json`, as in `pg_settings`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Name.
    pub name: String,
    /// Value in the setting's base unit.
    pub value: String,
    /// Base unit.
    pub unit: Option<String>,
    /// Where the value comes from.
    pub source: String,
}

mirrors!(Setting, Model { name, value, unit, source });
