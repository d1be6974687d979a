//! Campaigns by the command line: `--set`, other values than the campaign file has, put into its text, so that what is stored
//! is what was run; and the text of a campaign that is one cell.

use model::factor::Factor;
use model::machine::Acceleration;
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use crate::exit::Usage;

/// Puts values into a campaign's text.
///
/// # Errors
/// [`Usage`]: not `NAME=VALUE`, or a campaign that is no TOML.
pub(crate) fn apply(text: &str, settings: &[String]) -> Result<String, Usage> {
    if settings.is_empty() {
        return Ok(text.to_owned());
    }
    // What is wrong with the text is said better, with its place, by who reads the campaign.
    let Ok(mut document) = text.parse::<DocumentMut>() else { return Ok(text.to_owned()) };
    for setting in settings {
        let (name, value) = setting
            .split_once('=')
            .filter(|(name, value)| !name.is_empty() && !value.is_empty())
            .ok_or_else(|| {
                Usage(format!("error: --set {setting}: expected NAME=VALUE, such as scale=100"))
            })?;
        set(&mut document, name, value).map_err(|why| Usage(format!("error: --set {setting}: {why}")))?;
    }
    Ok(document.to_string())
}

/// Has the kernels of a campaign run on the machine itself, where it does not say itself what they run on.
///
/// # Errors
/// As [`apply`].
pub(crate) fn on_the_machine(text: &str) -> Result<String, Usage> {
    let Ok(mut document) = text.parse::<DocumentMut>() else { return Ok(text.to_owned()) };
    let name = Factor::Acceleration.name();
    // What a matrix leaves out is as in `factors`.
    if document.get("factors").is_none_or(|factors| factors.get(name).is_none()) {
        let level = Array::from_iter([Acceleration::None.as_str()]);
        put(document.as_table_mut(), "factors", name, Value::Array(level))
            .map_err(|why| Usage(format!("error: {why}")))?;
    }
    Ok(document.to_string())
}

/// The text of a campaign of one trial with a profile: of the cell that is named as `FACTOR=LEVEL,…`.
///
/// # Errors
/// [`Usage`]: what is named is no cell.
pub(crate) fn profiled_cell(levels: &str) -> Result<String, Usage> {
    let known = || Factor::ALL.map(Factor::name).join(", ");
    let mut named: Vec<&str> = Vec::new();
    let mut settings = Vec::new();
    for level in levels.split(',').map(str::trim) {
        let refuse = |why: String| Usage(format!("error: --measure {levels}: {why}"));
        let Some((factor, _)) = level.split_once('=').filter(|(_, level)| !level.is_empty()) else {
            return Err(refuse(format!("\"{level}\" is no FACTOR=LEVEL, such as clients=8")));
        };
        if factor.parse::<Factor>().ok().is_none() {
            return Err(refuse(format!("there is no factor \"{factor}\"; there are {}", known())));
        }
        if named.contains(&factor) {
            return Err(refuse(format!("{factor} has two levels: one trial has one of each factor")));
        }
        named.push(factor);
        settings.push(level.to_owned());
    }
    apply("name = \"profile\"\n\n[factors]\n\n[run]\nrepeats = 1\n\n[profile]\n", &settings)
}

fn set(document: &mut DocumentMut, name: &str, text: &str) -> Result<(), String> {
    if let Some((table, key)) = name.rsplit_once('.') {
        return put(document.as_table_mut(), table, key, value(text));
    }
    let is_axis = |document: &DocumentMut| {
        let in_factors = document.get("factors").is_some_and(|table| table.get(name).is_some());
        let matrices = document.get("matrix").and_then(Item::as_array_of_tables);
        in_factors || matrices.is_some_and(|tables| tables.iter().any(|table| table.contains_key(name)))
    };
    // `duration`, `warmup` and `threads` are both; what is no axis yet becomes one only where it has several levels.
    let in_run =
        ["duration", "warmup", "threads"].contains(&name) && !text.contains(',') && !is_axis(document);
    if name.parse::<Factor>().ok().is_none() || in_run {
        return put(document.as_table_mut(), "run", name, value(text));
    }
    // Versions and labels are strings though they look like numbers.
    let level = |text: &str| match name.parse::<Factor>().ok().is_some_and(Factor::is_number) {
        true => value(text),
        false => Value::from(text),
    };
    let levels: Array = text.split(',').map(|text| level(text.trim())).collect();
    let mut found = false;
    if let Some(tables) = document.get_mut("matrix").and_then(Item::as_array_of_tables_mut) {
        for table in tables.iter_mut().filter(|table| table.contains_key(name)) {
            table[name] = Item::Value(Value::Array(levels.clone()));
            found = true;
        }
    }
    if !found || document.get("factors").is_some_and(|table| table.get(name).is_some()) {
        put(document.as_table_mut(), "factors", name, Value::Array(levels))?;
    }
    Ok(())
}

/// Sets a key of a table, which is made where it is not there.
fn put(document: &mut Table, path: &str, key: &str, value: Value) -> Result<(), String> {
    let mut table = document;
    for part in path.split('.') {
        let item = table.entry(part).or_insert_with(|| Item::Table(Table::new()));
        table = item.as_table_mut().ok_or_else(|| format!("`{part}` is no table in the campaign"))?;
    }
    table[key] = Item::Value(value);
    Ok(())
}

/// A value as TOML writes it, or else a string.
fn value(text: &str) -> Value {
    text.parse().unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::{apply, on_the_machine, profiled_cell};

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
            ("server=18,clients", "\"clients\" is no FACTOR=LEVEL"),
            ("clients=4,clients=8", "clients has two levels"),
            ("server=", "is no FACTOR=LEVEL"),
        ] {
            let error = profiled_cell(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn kernels_run_on_the_machine_where_nothing_else_is_said() {
        let text = on_the_machine(TEXT).unwrap();
        assert!(text.contains("[factors]\nscale = [1]\nacceleration = [\"none\"]\n"), "{text}");
        assert_eq!(on_the_machine(&text).unwrap(), text);
        let of_its_own = "name = 'n'\n[factors]\nacceleration = ['none', 'kvm']\n";
        assert_eq!(on_the_machine(of_its_own).unwrap(), of_its_own);
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        assert!(apply(TEXT, &["scale".to_owned()]).unwrap_err().to_string().contains("NAME=VALUE"));
        assert!(apply(TEXT, &["name.x=1".to_owned()]).unwrap_err().to_string().contains("no table"));
    }
}
