//! Kernel parameters set before a server starts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::settings::{SettingsVariant, with_values};
use super::{Axis, Column, LevelError, Place};
use crate::definitions::Definitions;
use crate::machine::SysctlVariant;
use crate::secret::mask_kernel_parameter;
use crate::value::{Spanned, SpecError};

/// The factor `sysctl`.
#[derive(Clone, Copy, Debug)]
pub struct Sysctl;

impl Axis for Sysctl {
    type Level = SysctlVariant;
    type Written = String;
    type Stored = SettingsVariant;

    const KEY: &'static str = "sysctl";
    const DESCRIPTION: &'static str = "names of `[sysctls.…]`, and `default`";
    const EXAMPLE: &'static str = "thp";
    const PLACE: Place = Place::Column;
    const COLUMN: Column =
        Column::text("sysctl", "factor sysctl: name of the kernel parameters in the campaign");

    fn check(given: &Spanned<String>, definitions: &Definitions<'_>) -> Result<SysctlVariant, SpecError> {
        let name = given.get_ref();
        if name == SysctlVariant::DEFAULT {
            return Ok(SysctlVariant::none());
        }
        let table = definitions.sysctls.iter().find(|(defined, _)| defined.get_ref() == name);
        let Some((_, table)) = table else {
            return Err(SpecError::at(
                given,
                format!("there are no kernel parameters \"{name}\""),
                format!("expected \"{}\", or a table [sysctls.{name}]", SysctlVariant::DEFAULT),
            ));
        };
        let mut values = BTreeMap::new();
        for (parameter, value) in table {
            values.insert(parameter_name(parameter)?, parameter_value(parameter, value)?);
        }
        Ok(SysctlVariant { name: name.clone(), values })
    }

    fn parse(text: &str) -> Result<SysctlVariant, LevelError> {
        Ok(SysctlVariant { name: text.to_owned(), values: BTreeMap::new() })
    }

    fn masked(mut level: SysctlVariant) -> SysctlVariant {
        for (name, value) in &mut level.values {
            *value = mask_kernel_parameter(name, value);
        }
        level
    }

    fn is_same(recorded: &SysctlVariant, planned: &SysctlVariant) -> bool {
        recorded.name == planned.name
            && (recorded == planned || Self::masked(recorded.clone()) == Self::masked(planned.clone()))
    }

    fn show(level: &SysctlVariant) -> String {
        level.name.clone()
    }

    fn identity(level: &SysctlVariant) -> String {
        with_values(&level.name, &level.values)
    }

    fn default() -> Option<SysctlVariant> {
        Some(SysctlVariant::none())
    }

    fn json(level: &SysctlVariant) -> impl Serialize + '_ {
        level
    }

    fn to_stored(level: &SysctlVariant) -> Option<SettingsVariant> {
        Some(SettingsVariant { name: level.name.clone(), values: level.values.clone() })
    }

    fn from_stored(stored: SettingsVariant) -> Result<SysctlVariant, LevelError> {
        Ok(SysctlVariant { name: stored.name, values: stored.values })
    }

    fn absent() -> Option<SysctlVariant> {
        Some(SysctlVariant::none())
    }
}

/// Checks a table of `[sysctls.…]`.
pub(crate) fn check_table(name: &Spanned<String>, definitions: &Definitions<'_>) -> Result<(), SpecError> {
    if name.get_ref() == SysctlVariant::DEFAULT {
        return Err(SpecError::at(
            name,
            "the kernel parameters \"default\" are the kernel's own",
            "expected another name for these",
        ));
    }
    Sysctl::check(name, definitions).map(|_| ())
}

/// Checks a parameter: `vm.swappiness` or `/sys/kernel/mm/transparent_hugepage/enabled`.
fn parameter_name(given: &Spanned<String>) -> Result<String, SpecError> {
    let name = given.get_ref();
    let is_valid_part = |part: &str| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_:@".contains(c);
        part.starts_with(is_allowed) && part.chars().all(|c| is_allowed(c) || c == '.')
    };
    let is_valid = match name.strip_prefix("/sys/") {
        Some(path) => path.split('/').all(is_valid_part),
        None => name.contains('.') && name.split('.').all(is_valid_part),
    };
    if is_valid {
        return Ok(name.clone());
    }
    Err(SpecError::at(
        given,
        format!("`{name}` is not a valid name of a kernel parameter"),
        "expected sysctl's name in quotes, such as \"vm.swappiness\", or a path below /sys/",
    ))
}

fn parameter_value(name: &Spanned<String>, value: &Spanned<toml::Value>) -> Result<String, SpecError> {
    match value.get_ref() {
        toml::Value::String(text) if !text.is_empty() && !text.contains(['\n', '\0']) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        _ => Err(SpecError::at(
            value,
            format!("invalid value of the kernel parameter `{}`", name.get_ref()),
            "expected a whole number or a string without line breaks",
        )),
    }
}
