//! Two configurations, and the levels between them: one setting after the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::commands::ab::{Setting, settings};
use crate::exit::Usage;

/// Name of the first level.
const GOOD: &str = "good";

#[derive(Debug, Args)]
#[command(next_help_heading = "Settings")]
pub(super) struct SettingsArgs {
    /// Setting of all servers; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<Setting>,

    /// Find a setting of one server: setting of the good configuration; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    good_set: Vec<Setting>,

    /// Find a setting of one server: setting of the bad configuration; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    bad_set: Vec<Setting>,

    /// File with the settings of the good configuration, as postgresql.conf
    #[arg(long, value_name = "FILE")]
    good_conf: Option<PathBuf>,

    /// File with the settings of the bad configuration
    #[arg(long, value_name = "FILE")]
    bad_conf: Option<PathBuf>,
}

/// Values by their names.
pub(super) type Settings = BTreeMap<String, String>;

impl SettingsArgs {
    /// Whether two configurations are given.
    pub(super) fn differ(&self) -> bool {
        !self.good_set.is_empty()
            || !self.bad_set.is_empty()
            || self.good_conf.is_some()
            || self.bad_conf.is_some()
    }

    /// Settings of all servers.
    pub(super) fn of_all(&self) -> Settings {
        settings(&self.set)
    }

    /// The good configuration, and then one setting after the other as in the bad one; each level has the name of its setting.
    pub(super) fn levels(&self) -> Result<Vec<(String, Settings)>, Usage> {
        let side = |file: &Option<PathBuf>, given: &[Setting]| {
            let mut all = file.as_deref().map(read).transpose()?.unwrap_or_default();
            all.extend(settings(given));
            Ok::<_, Usage>(all)
        };
        one_after_the_other(&side(&self.good_conf, &self.good_set)?, &side(&self.bad_conf, &self.bad_set)?)
    }
}

/// The good values, and then one after the other (in the order of their names) as in the bad ones; each level has the name of its
/// value.
pub(super) fn one_after_the_other(good: &Settings, bad: &Settings) -> Result<Vec<(String, Settings)>, Usage> {
    let mut names: Vec<&String> = good.keys().chain(bad.keys()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| good.get(*name) != bad.get(*name));
    if names.is_empty() {
        return Err(Usage("error: both configurations are the same: there is nothing to search".to_owned()));
    }
    let mut level = good.clone();
    let mut levels = vec![(GOOD.to_owned(), level.clone())];
    for name in names {
        match bad.get(name) {
            Some(value) => level.insert(name.clone(), value.clone()),
            None => level.remove(name),
        };
        levels.push((name.clone(), level.clone()));
    }
    Ok(levels)
}

/// The settings of a file in the format of postgresql.conf.
///
/// Source: PostgreSQL's manual, "Parameter Interaction via the Configuration File".
fn read(file: &Path) -> Result<Settings, Usage> {
    let text = fs::read_to_string(file)
        .map_err(|error| Usage(format!("error: {} can't be read: {error}", file.display())))?;
    let mut settings = Settings::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |why: &str| Usage(format!("error: {}:{number}: {why}", file.display()));
        let Some((name, rest)) = name_of(line) else {
            match line.trim_start().chars().next() {
                None | Some('#') => continue,
                Some(_) => return Err(wrong("expected NAME = VALUE")),
            }
        };
        if name.starts_with("include") {
            return Err(wrong("files that are included are not read: copy their settings"));
        }
        let value = value_of(rest)
            .ok_or_else(|| wrong("expected NAME = VALUE, with quotes around a value with spaces"))?;
        settings.insert(name, value);
    }
    Ok(settings)
}

/// The name at the beginning of a line, in lower case, and what follows.
fn name_of(line: &str) -> Option<(String, &str)> {
    let line = line.trim_start();
    let end =
        line.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = rest.trim_start();
    is_name.then(|| (name.to_ascii_lowercase(), rest.strip_prefix('=').unwrap_or(rest).trim_start()))
}

/// A value, without its quotes and a comment after it.
fn value_of(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let value = text.split('#').next().unwrap_or_default().trim();
        return Some(value.to_owned())
            .filter(|value| !value.is_empty() && !value.contains(char::is_whitespace));
    };
    let (mut value, mut chars) = (String::new(), quoted.chars());
    while let Some(c) = chars.next() {
        match c {
            '\'' if chars.as_str().starts_with('\'') => {
                chars.next();
                value.push('\'');
            }
            '\'' => {
                let rest = chars.as_str().trim_start();
                return (rest.is_empty() || rest.starts_with('#')).then_some(value);
            }
            '\\' => value.push(chars.next()?),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_configuration_are_read_as_by_the_server() {
        let read = |line: &str| {
            let (name, rest) = name_of(line)?;
            Some((name, value_of(rest)?))
        };
        for (line, name, value) in [
            ("work_mem = 64MB", "work_mem", "64MB"),
            ("  Work_Mem 64MB # comment", "work_mem", "64MB"),
            ("search_path = '\"$user\", public'  # two", "search_path", "\"$user\", public"),
            ("log_line_prefix='it''s %m '", "log_line_prefix", "it's %m "),
            ("auto_explain.log_min_duration=0", "auto_explain.log_min_duration", "0"),
            ("synchronous_standby_names = ''", "synchronous_standby_names", ""),
        ] {
            assert_eq!(read(line), Some((name.to_owned(), value.to_owned())), "{line}");
        }
        for line in ["work_mem =", "x = 1 2", "x = 'open", "= 3", "x = 'a' b"] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn levels_change_one_setting_after_the_other() {
        let set = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let arguments = SettingsArgs {
            set: Vec::new(),
            good_set: set(&["a=1", "b=1", "same=0"]),
            bad_set: set(&["b=2", "c=3", "same=0"]),
            good_conf: None,
            bad_conf: None,
        };
        let levels = arguments.levels().unwrap();
        let shown: Vec<String> = levels
            .iter()
            .map(|(name, settings)| {
                let values: Vec<String> =
                    settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{name}: {}", values.join(" "))
            })
            .collect();
        assert_eq!(shown, ["good: a=1 b=1 same=0", "a: b=1 same=0", "b: b=2 same=0", "c: b=2 c=3 same=0"]);
    }
}
