//! Parameters of a statement, as servers log them.

/// Parses `$1 = 'it''s', $2 = NULL`, the text after `parameters: `. None if it is not that.
pub fn parse_parameters(text: &str) -> Option<Vec<Option<String>>> {
    let mut parameters = Vec::new();
    let mut rest = text;
    loop {
        let number = format!("${} = ", parameters.len() + 1);
        rest = rest.strip_prefix(number.as_str())?;
        if let Some(after) = rest.strip_prefix("NULL") {
            parameters.push(None);
            rest = after;
        } else {
            let (value, after) = quoted(rest.strip_prefix('\'')?)?;
            parameters.push(Some(value));
            rest = after;
        }
        if rest.is_empty() {
            return Some(parameters);
        }
        rest = rest.strip_prefix(", ")?;
    }
}

/// The text up to the closing quote, with doubled quotes as one, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('\'')?;
        value.push_str(part);
        match after.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Some((value, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_unquoted() {
        let parsed = parse_parameters("$1 = 'it''s', $2 = NULL, $3 = '', $4 = 'a, $5 = ''b'''").unwrap();
        let parsed: Vec<Option<&str>> = parsed.iter().map(Option::as_deref).collect();
        assert_eq!(parsed, [Some("it's"), None, Some(""), Some("a, $5 = 'b'")]);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "$1 = ", "$1 = 'x", "$2 = 'x'", "$1 = 'x' and more", "$1 = 7"] {
            assert_eq!(parse_parameters(text), None, "{text}");
        }
    }
}
