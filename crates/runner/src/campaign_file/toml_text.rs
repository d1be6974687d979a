//! Values as TOML text.

use toml_edit::{Array, Key, Value};

/// A string.
pub(super) fn string(text: &str) -> String {
    Value::from(text).to_string()
}

/// An array of strings.
pub(super) fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    Value::Array(Array::from_iter(texts)).to_string()
}

/// A key.
pub(super) fn key(name: &str) -> String {
    Key::new(name).to_string()
}
