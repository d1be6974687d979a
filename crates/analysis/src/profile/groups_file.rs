//! User-defined groups of functions: a TOML file.

use std::collections::BTreeMap;

use diagnose::profile::Groups;
use serde::Deserialize;

use super::ProfileError;

/// ```toml
/// [groups]
/// json = ["jsonb_*", "json_*"]         # a new group
/// lock = ["my_extension_lock"]         # an additional function of an existing group
/// ```
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    groups: BTreeMap<String, Vec<String>>,
}

/// The built-in groups with those of a file's text.
///
/// # Errors
/// The text is not such a file.
pub fn parse_groups(text: &str, file: &str) -> Result<Groups, ProfileError> {
    let written: File = toml::from_str(text).map_err(|error| {
        ProfileError::Groups(format!(
            "{file} is not a valid file of groups: {}\nexpected a table [groups] with lists of functions, such as \
             json = [\"jsonb_*\", \"json_*\"]",
            error.to_string().trim_end()
        ))
    })?;
    let mut groups = Groups::default();
    for (group, functions) in written.groups {
        groups.add(&group, functions);
    }
    Ok(groups)
}
