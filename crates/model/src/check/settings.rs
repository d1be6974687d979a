//! The server's settings: variants that inherit from each other, and their values.

use std::collections::BTreeMap;

use toml::Spanned;

use super::Checked;
use crate::cell::SettingsVariant;
use crate::matrix::Level;
use crate::spec::SpecError;

/// The settings variant that is always there.
const DEFAULT_SETTINGS: &str = "default";
/// The key of a table of settings that names another one.
const INHERITS: &str = "inherits";

/// Settings that pgdyno itself decides: where the server lives and listens.
const OUR_SETTINGS: [&str; 6] = [
    "data_directory",
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "logging_collector",
    "log_destination",
];

impl Checked<'_> {
    pub(crate) fn settings(&self, given: &Spanned<String>) -> Result<Level, SpecError> {
        let name = given.get_ref();
        let mut values = BTreeMap::new();
        let mut from: Vec<&String> = Vec::new();
        let mut next = Some(given.clone());
        // The nearest value counts: what is inherited comes later.
        while let Some(this) = next.take() {
            let table = self.campaign.settings.iter().find(|(defined, _)| **defined == this);
            let Some((defined, table)) = table else {
                if this.get_ref() == DEFAULT_SETTINGS {
                    break;
                }
                return Err(self.no_settings(&this));
            };
            if from.contains(&defined.get_ref()) {
                return Err(SpecError::at(
                    &this,
                    format!("the settings \"{name}\" inherit from themselves"),
                    "expected no circle",
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
        Ok(Level::Settings(SettingsVariant { name: name.clone(), values }))
    }

    /// The settings `default`, which a table may define.
    pub(crate) fn default_settings(&self) -> SettingsVariant {
        match self.settings(&Spanned::new(0..0, DEFAULT_SETTINGS.to_owned())) {
            Ok(Level::Settings(settings)) => settings,
            _ => SettingsVariant { name: DEFAULT_SETTINGS.to_owned(), values: BTreeMap::new() },
        }
    }

    fn no_settings(&self, given: &Spanned<String>) -> SpecError {
        let known: Vec<String> = std::iter::once(DEFAULT_SETTINGS)
            .chain(self.campaign.settings.keys().map(|name| name.get_ref().as_str()))
            .map(|name| format!("\"{name}\""))
            .collect();
        SpecError::at(
            given,
            format!("there are no settings \"{}\"", given.get_ref()),
            format!("expected {}, or a table [settings.{}]", known.join(", "), given.get_ref()),
        )
    }
}

fn inherited(value: &Spanned<toml::Value>) -> Result<Spanned<String>, SpecError> {
    match value.get_ref() {
        toml::Value::String(name) => Ok(Spanned::new(value.span(), name.clone())),
        _ => Err(SpecError::at(value, "`inherits` names other settings", "expected a string")),
    }
}

fn setting_name(name: &str, value: &Spanned<toml::Value>) -> Result<String, SpecError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(SpecError::at(
            value,
            format!("`{name}` can't be the name of a server setting"),
            "expected letters, digits, `_` and `.`, as in postgresql.conf",
        ));
    }
    if OUR_SETTINGS.contains(&name) {
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
            "this can't be the value of a server setting",
            "expected a string without line breaks, a number, or true or false",
        )),
    }
}
