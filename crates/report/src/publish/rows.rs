//! Values as SQL: rows of COPY's text format, and literals.

use std::borrow::Cow;
use std::io::{self, Write};

use wire::quote_literal;

use crate::export_tables::Value;

/// Writes a row of `COPY … FROM STDIN`.
///
/// Source: PostgreSQL manual, COPY, "Text Format".
pub(super) fn write_row(out: &mut dyn Write, values: &[Value<'_>]) -> io::Result<()> {
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.write_all(b"\t")?;
        }
        match value {
            Value::Null => out.write_all(b"\\N")?,
            Value::Integer(value) => write!(out, "{value}")?,
            Value::Real(value) => write!(out, "{value}")?,
            Value::Time(value) => write!(out, "{value}")?,
            Value::Text(text) => out.write_all(escaped(&storable(text)).as_bytes())?,
        }
    }
    out.write_all(b"\n")
}

/// A literal of SQL.
pub(super) fn literal(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(value) => format!("'{value}'"),
        Value::Real(value) => format!("'{value}'"),
        Value::Time(value) => format!("'{value}'"),
        Value::Text(text) => quote_literal(&storable(text)),
    }
}

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '\t', '\n', '\r']) {
        return text.into();
    }
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r").into()
}

/// The text without zero bytes, which PostgreSQL stores neither in texts nor, escaped, in JSON.
fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') || text.contains("\\u0000") {
        text.replace('\0', "\u{fffd}").replace("\\u0000", "\\ufffd").into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_copy_are_escaped() {
        let mut out = Vec::new();
        let values =
            [Value::Null, Value::Text("a\tb\\N\r\n\0".into()), Value::Real(0.1), Value::Text("".into())];
        write_row(&mut out, &values).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\\N\ta\\tb\\\\N\\r\\n\u{fffd}\t0.1\t\n");
        assert_eq!(literal(&Value::Text("it's \\".into())), "E'it''s \\\\'");
    }
}
