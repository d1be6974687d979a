//! Values and names in the text of a statement. Source: PostgreSQL manual, "Lexical Structure".

/// A text as an SQL literal, for any `standard_conforming_strings`.
pub fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// A name as an SQL identifier.
pub fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled_and_backslashes_stay() {
        assert_eq!(quote_literal("it's"), "'it''s'");
        assert_eq!(quote_literal(r"it's \ here"), r"E'it''s \\ here'");
        assert_eq!(quote_identifier(r#"My "tables"#), r#""My ""tables""#);
    }
}
