//! Bundled workloads by the beginning of their names as a level of the factor `workload`: `"micro-*"`.
//!
//! They are replaced by their names in the campaign's text, so that a resumed run has the same ones.

use std::ops::Range;

use model::spec::SpecError;
use toml_edit::{Document, Item, TableLike, Value};

use super::toml_text::strings;

/// The campaign's text with names instead of patterns.
///
/// # Errors
/// No bundled workload has such a name.
pub(super) fn with_names(text: String) -> Result<String, SpecError> {
    // The parser of campaigns reports malformed TOML with its place.
    let Ok(document) = Document::parse(text.as_str()) else { return Ok(text) };
    let mut replaced = text.clone();
    // From the end, so that the places before remain.
    for (at, pattern) in patterns(&document).into_iter().rev() {
        let names: Vec<&str> = workload::shipped().filter(|name| name.starts_with(&pattern)).collect();
        if names.is_empty() {
            return Err(SpecError {
                message: format!("no bundled workload's name begins with \"{pattern}\""),
                at: Some(at),
                help: Some("expected the beginning of bundled names and `*`, such as \"micro-*\"".to_owned()),
            });
        }
        replaced.replace_range(at, strings(names).trim_matches(['[', ']']));
    }
    Ok(replaced)
}

/// The patterns with their places, in the order of the text, without their `*`.
fn patterns(document: &Document<&str>) -> Vec<(Range<usize>, String)> {
    let matrices = document.get("matrix").and_then(Item::as_array_of_tables).into_iter().flatten();
    let factors = document.get("factors").and_then(Item::as_table_like).into_iter();
    let tables = factors.chain(matrices.map(|table| table as &dyn TableLike));
    let levels = tables.filter_map(|table| table.get("workload")?.as_array()).flatten();
    let pattern = |level: &Value| Some((level.span()?, level.as_str()?.strip_suffix('*')?.to_owned()));
    let mut found: Vec<(Range<usize>, String)> = levels.filter_map(pattern).collect();
    found.sort_by_key(|(at, _)| at.start);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_replaced_by_the_names_of_bundled_workloads() {
        let campaign = |levels: &str| {
            format!("[factors]\nworkload = [{levels}] # all\n[[matrix]]\nworkload = ['bl*']\n")
        };
        let text = with_names(campaign("'select-only', \"range*\", 'micro-range-1*'")).unwrap_err();
        assert_eq!(text.message, "no bundled workload's name begins with \"range\"");
        assert_eq!(text.at.unwrap(), 37..45);
        let text = with_names(campaign("'select-only', 'micro-range-1*', 'a.sql'")).unwrap();
        assert_eq!(
            text,
            "[factors]\nworkload = ['select-only', \"micro-range-10\", \"micro-range-100\", \"micro-range-1000\", \
             \"micro-range-10000\", 'a.sql'] # all\n[[matrix]]\nworkload = [\"bloat\", \"blocks\"]\n"
        );
        assert_eq!(with_names(text.clone()).unwrap(), text);
    }
}
