//! Values as JSON.

use serde::Serialize;

/// A value as JSON on one line.
pub fn json(value: &impl Serialize) -> String {
    never_fails(serde_json::to_string(value))
}

/// A value as indented JSON.
pub fn json_pretty(value: &impl Serialize) -> String {
    never_fails(serde_json::to_string_pretty(value))
}

/// Only maps with keys that are not strings, and `Serialize` written by hand, can fail: no serialized value has either,
/// and a number that JSON can't represent becomes null.
#[expect(clippy::expect_used, reason = "no value that is shown can fail, so no input can")]
fn never_fails(json: serde_json::Result<String>) -> String {
    json.expect("it is plain data")
}
