//! Overrides of a campaign's text (`--set`), so that the stored text is what was run; and the campaign of a single cell.

use model::factor::Factor;
use model::machine::Acceleration;
use toml_edit::{Array, DocumentMut, Item, Table, Value};

/// Error of an override, or of naming a cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// Not `NAME=VALUE`.
    #[error("--set {setting}: expected NAME=VALUE, such as scale=100")]
    NotASetting {
        /// The argument.
        setting: String,
    },
    /// A part of a dotted name is not a table.
    #[error("--set {setting}: `{key}` is not a table in the campaign")]
    NotATable {
        /// The argument.
        setting: String,
        /// The part.
        key: String,
    },
    /// Not `FACTOR=LEVEL`.
    #[error("--measure {cell}: \"{level}\" is not FACTOR=LEVEL, such as clients=8")]
    NotALevel {
        /// The argument.
        cell: String,
        /// The wrong part of it.
        level: String,
    },
    /// There is no such factor.
    #[error("--measure {cell}: there is no factor \"{factor}\"; there are {}", Factor::ALL.map(Factor::name).join(", "))]
    NoFactor {
        /// The argument.
        cell: String,
        /// The unknown name.
        factor: String,
    },
    /// A factor has two levels.
    #[error("--measure {cell}: {factor} has two levels: one trial has one level of each factor")]
    TwoLevels {
        /// The argument.
        cell: String,
        /// The factor.
        factor: String,
    },
}

/// Puts settings, each `NAME=VALUE`, into a campaign's text.
///
/// # Errors
/// A setting is malformed, or does not fit the campaign.
pub fn apply(text: &str, settings: &[String]) -> Result<String, OverrideError> {
    if settings.is_empty() {
        return Ok(text.to_owned());
    }
    // The parser of campaigns reports malformed TOML with its place.
    let Ok(mut document) = text.parse::<DocumentMut>() else { return Ok(text.to_owned()) };
    for setting in settings {
        let (name, value) = setting
            .split_once('=')
            .filter(|(name, value)| !name.is_empty() && !value.is_empty())
            .ok_or_else(|| OverrideError::NotASetting { setting: setting.clone() })?;
        set(&mut document, name, value)
            .map_err(|NotATable(key)| OverrideError::NotATable { setting: setting.clone(), key })?;
    }
    Ok(document.to_string())
}

/// The campaign with another name, and these levels of a factor.
///
/// # Errors
/// `factors` is not a table.
pub(super) fn with_levels(
    text: &str,
    name: &str,
    factor: Factor,
    levels: &[String],
) -> Result<String, OverrideError> {
    let text = apply(text, &[format!("{}={}", factor.name(), levels.join(","))])?;
    let Ok(mut document) = text.parse::<DocumentMut>() else { return Ok(text) };
    document["name"] = toml_edit::value(name);
    Ok(document.to_string())
}

/// Sets the acceleration to `none` in a campaign that does not choose one: its kernels run on the machine itself.
pub fn without_virtual_machines(text: &str) -> String {
    let Ok(mut document) = text.parse::<DocumentMut>() else { return text.to_owned() };
    let name = Factor::Acceleration.name();
    // Matrices inherit the levels of `factors`.
    if document.get("factors").is_none_or(|factors| factors.get(name).is_none()) {
        let level = Array::from_iter([Acceleration::None.as_str()]);
        // If `factors` is not a table, the parser of campaigns reports it with its place.
        let _ = set_key(document.as_table_mut(), "factors", name, Value::Array(level));
    }
    document.to_string()
}

/// Campaign of one trial with a profile, of the cell `FACTOR=LEVEL,…`.
///
/// # Errors
/// The text is not a cell.
pub fn profiled_cell(cell: &str) -> Result<String, OverrideError> {
    let mut named: Vec<&str> = Vec::new();
    let mut settings = Vec::new();
    for level in cell.split(',').map(str::trim) {
        let argument = cell.to_owned();
        let Some((factor, _)) = level.split_once('=').filter(|(_, level)| !level.is_empty()) else {
            return Err(OverrideError::NotALevel { cell: argument, level: level.to_owned() });
        };
        if factor.parse::<Factor>().is_err() {
            return Err(OverrideError::NoFactor { cell: argument, factor: factor.to_owned() });
        }
        if named.contains(&factor) {
            return Err(OverrideError::TwoLevels { cell: argument, factor: factor.to_owned() });
        }
        named.push(factor);
        settings.push(level.to_owned());
    }
    apply("name = \"profile\"\n\n[factors]\n\n[run]\nrepeats = 1\n\n[profile]\n", &settings)
}

/// Part of a dotted name that is not a table.
struct NotATable(String);

fn set(document: &mut DocumentMut, name: &str, text: &str) -> Result<(), NotATable> {
    if let Some((table, key)) = name.rsplit_once('.') {
        return set_key(document.as_table_mut(), table, key, value(text));
    }
    let is_axis = |document: &DocumentMut| {
        let in_factors = document.get("factors").is_some_and(|table| table.get(name).is_some());
        let matrices = document.get("matrix").and_then(Item::as_array_of_tables);
        in_factors || matrices.is_some_and(|tables| tables.iter().any(|table| table.contains_key(name)))
    };
    // `duration`, `warmup` and `threads` are keys of [run], but factors if they have several levels or are factors
    // already.
    let in_run =
        ["duration", "warmup", "threads"].contains(&name) && !text.contains(',') && !is_axis(document);
    if name.parse::<Factor>().is_err() || in_run {
        return set_key(document.as_table_mut(), "run", name, value(text));
    }
    // Versions and labels are strings even if they look like numbers.
    let is_number = name.parse::<Factor>().is_ok_and(Factor::is_number);
    let level = |text: &str| if is_number { value(text) } else { Value::from(text) };
    let levels: Array = text.split(',').map(|text| level(text.trim())).collect();
    let mut found = false;
    if let Some(tables) = document.get_mut("matrix").and_then(Item::as_array_of_tables_mut) {
        for table in tables.iter_mut().filter(|table| table.contains_key(name)) {
            table[name] = Item::Value(Value::Array(levels.clone()));
            found = true;
        }
    }
    if !found || document.get("factors").is_some_and(|table| table.get(name).is_some()) {
        set_key(document.as_table_mut(), "factors", name, Value::Array(levels))?;
    }
    Ok(())
}

/// Sets a key of a table, which is created if needed.
fn set_key(document: &mut Table, path: &str, key: &str, value: Value) -> Result<(), NotATable> {
    let mut table = document;
    for part in path.split('.') {
        let item = table.entry(part).or_insert_with(|| Item::Table(Table::new()));
        table = item.as_table_mut().ok_or_else(|| NotATable(part.to_owned()))?;
    }
    table[key] = Item::Value(value);
    Ok(())
}

/// A value in TOML's syntax, else a string.
fn value(text: &str) -> Value {
    text.parse().unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::{apply, profiled_cell, without_virtual_machines};

    const TEXT: &str = "name = 'n' # kept\n[factors]\nscale = [1]\n[run]\nrepeats = 3\n";

    fn with(settings: &[&str]) -> String {
        apply(TEXT, &settings.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn factors_are_lists_and_other_keys_are_not() {
        let text = with(&[
            "scale=10,100",
            "repeats=5",
            "duration=60s",
            "protocol=simple",
            "kernel=5.10,6.1",
            "settings.big.work_mem=1GB",
        ]);
        for expected in [
            "# kept",
            "scale = [10, 100]",
            "repeats = 5",
            "duration = \"60s\"",
            "protocol = [\"simple\"]",
            "kernel = [\"5.10\", \"6.1\"]",
            "[settings.big]\nwork_mem = \"1GB\"",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }

    #[test]
    fn a_length_with_several_levels_is_a_factor() {
        assert!(
            with(&["duration=10s,60s"]).contains("[factors]\nscale = [1]\nduration = [\"10s\", \"60s\"]")
        );
    }

    #[test]
    fn matrices_that_have_the_factor_get_its_levels() {
        let text = "[[matrix]]\nscale = [1]\n[[matrix]]\nclients = [1]\n";
        let text = apply(text, &["scale=7".to_owned()]).unwrap();
        assert_eq!(text, "[[matrix]]\nscale = [7]\n[[matrix]]\nclients = [1]\n");
    }

    #[test]
    fn a_cell_becomes_a_campaign_of_one_trial() {
        let text = profiled_cell("server=18, workload=select-only,clients=8,duration=20s").unwrap();
        for part in ["server = [\"18\"]", "clients = [8]", "repeats = 1\nduration = \"20s\"", "[profile]"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        for (wrong, why) in [
            ("sever=18", "there is no factor \"sever\"; there are server, settings,"),
            ("server=18,clients", "\"clients\" is not FACTOR=LEVEL"),
            ("clients=4,clients=8", "clients has two levels"),
            ("server=", "is not FACTOR=LEVEL"),
        ] {
            let error = profiled_cell(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn kernels_run_on_the_machine_unless_the_campaign_names_an_acceleration() {
        let text = without_virtual_machines(TEXT);
        assert!(text.contains("[factors]\nscale = [1]\nacceleration = [\"none\"]\n"), "{text}");
        assert_eq!(without_virtual_machines(&text), text);
        let of_its_own = "name = 'n'\n[factors]\nacceleration = ['none', 'kvm']\n";
        assert_eq!(without_virtual_machines(of_its_own), of_its_own);
    }

    #[test]
    fn malformed_settings_are_refused() {
        assert!(apply(TEXT, &["scale".to_owned()]).unwrap_err().to_string().contains("NAME=VALUE"));
        assert!(apply(TEXT, &["name.x=1".to_owned()]).unwrap_err().to_string().contains("not a table"));
    }
}
