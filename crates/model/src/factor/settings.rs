//! The settings of the server: tables that can inherit from each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Axis, Column, LevelError, Place};
use crate::definitions::Definitions;
use crate::secret::mask_setting;
use crate::topology::Companion;
use crate::value::{Spanned, SpecError};

/// Name of the settings that require no table.
const DEFAULT: &str = "default";
/// Key that names the table to inherit from.
const INHERITS: &str = "inherits";

/// Settings that pgdyno sets itself: the server's directories, addresses and logging.
const OUR_SETTINGS: [&str; 6] = [
    "data_directory",
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "logging_collector",
    "log_destination",
];

/// A named set of server settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SettingsVariant {
    /// Its name in the campaign; `default` is the server without any.
    pub name: String,
    /// Name and value of each setting, as for `postgresql.conf`.
    pub values: BTreeMap<String, String>,
}

/// The factor `settings`.
#[derive(Clone, Copy, Debug)]
pub struct Settings;

impl Axis for Settings {
    type Level = SettingsVariant;
    type Written = String;
    type Stored = SettingsVariant;

    const KEY: &'static str = "settings";
    const DESCRIPTION: &'static str = "names of `[settings.…]`, and `default`";
    const EXAMPLE: &'static str = "big";
    const PLACE: Place = Place::Column;
    const COLUMN: Column = Column::text("settings", "factor settings: name of the settings in the campaign");

    fn check(given: &Spanned<String>, definitions: &Definitions<'_>) -> Result<SettingsVariant, SpecError> {
        let name = given.get_ref();
        let mut values = BTreeMap::new();
        let mut from: Vec<&String> = Vec::new();
        let mut next = Some(given.clone());
        // The nearest value takes precedence: inherited ones come later.
        while let Some(this) = next.take() {
            let table = definitions.settings.iter().find(|(defined, _)| **defined == this);
            let Some((defined, table)) = table else {
                if this.get_ref() == DEFAULT {
                    break;
                }
                return Err(no_settings(&this, definitions));
            };
            if from.contains(&defined.get_ref()) {
                return Err(SpecError::at(
                    &this,
                    format!("the settings \"{name}\" inherit from themselves"),
                    "expected no cycle",
                ));
            }
            from.push(defined.get_ref());
            for (setting, value) in table.get_ref() {
                if setting == INHERITS {
                    next = Some(inherited(value)?);
                } else {
                    let checked = setting_value(value)?;
                    values.entry(setting_name(setting, value)?).or_insert(checked);
                }
            }
        }
        Ok(SettingsVariant { name: name.clone(), values })
    }

    fn parse(text: &str) -> Result<SettingsVariant, LevelError> {
        Ok(SettingsVariant { name: text.to_owned(), values: BTreeMap::new() })
    }

    fn masked(mut level: SettingsVariant) -> SettingsVariant {
        for (name, value) in &mut level.values {
            *value = mask_setting(name, value);
        }
        level
    }

    fn is_same(recorded: &SettingsVariant, planned: &SettingsVariant) -> bool {
        recorded.name == planned.name
            && (recorded == planned || Self::masked(recorded.clone()) == Self::masked(planned.clone()))
    }

    fn show(level: &SettingsVariant) -> String {
        level.name.clone()
    }

    fn identity(level: &SettingsVariant) -> String {
        with_values(&level.name, &level.values)
    }

    fn default() -> Option<SettingsVariant> {
        Some(SettingsVariant { name: DEFAULT.to_owned(), values: BTreeMap::new() })
    }

    fn json(level: &SettingsVariant) -> impl Serialize + '_ {
        level
    }

    fn to_stored(level: &SettingsVariant) -> Option<SettingsVariant> {
        Some(level.clone())
    }

    fn from_stored(stored: SettingsVariant) -> Result<SettingsVariant, LevelError> {
        Ok(stored)
    }
}

/// The settings `default`, which a table may define.
pub(crate) fn default_settings(definitions: &Definitions<'_>) -> Result<SettingsVariant, SpecError> {
    Settings::check(&Spanned::new(0..0, DEFAULT.to_owned()), definitions)
}

/// A name with its values.
pub(super) fn with_values(name: &str, values: &BTreeMap<String, String>) -> String {
    if values.is_empty() {
        return name.to_owned();
    }
    let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{name} ({})", values.join(", "))
}

fn no_settings(given: &Spanned<String>, definitions: &Definitions<'_>) -> SpecError {
    let known: Vec<String> = std::iter::once(DEFAULT)
        .chain(definitions.settings.keys().map(|name| name.get_ref().as_str()))
        .map(|name| format!("\"{name}\""))
        .collect();
    SpecError::at(
        given,
        format!("there are no settings \"{}\"", given.get_ref()),
        format!("expected {}, or a table [settings.{}]", known.join(", "), given.get_ref()),
    )
}

fn inherited(value: &Spanned<toml::Value>) -> Result<Spanned<String>, SpecError> {
    match value.get_ref() {
        toml::Value::String(name) => Ok(Spanned::new(value.span(), name.clone())),
        _ => Err(SpecError::at(value, "`inherits` must be the name of other settings", "expected a string")),
    }
}

fn setting_name(name: &str, value: &Spanned<toml::Value>) -> Result<String, SpecError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if name.is_empty() || !name.chars().all(is_allowed) {
        return Err(SpecError::at(
            value,
            format!("`{name}` is not a valid name of a server setting"),
            "expected letters, digits, `_` and `.`, as in postgresql.conf",
        ));
    }
    let companion = Companion::of_setting(name);
    let own_name = companion.map_or(name, |(_, own)| own);
    if OUR_SETTINGS.contains(&own_name) || companion.is_some_and(|(companion, own)| companion.sets(own)) {
        return Err(SpecError::at(value, format!("`{name}` is set by pgdyno itself"), "leave it out"));
    }
    Ok(name.to_owned())
}

fn setting_value(value: &Spanned<toml::Value>) -> Result<String, SpecError> {
    match value.get_ref() {
        toml::Value::String(text) if !text.contains(['\n', '\0']) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(true) => Ok("on".to_owned()),
        toml::Value::Boolean(false) => Ok("off".to_owned()),
        _ => Err(SpecError::at(
            value,
            "invalid value of a server setting",
            "expected a string without line breaks, a number, or true or false",
        )),
    }
}
