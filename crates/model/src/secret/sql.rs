//! Literals of SQL: those that are passwords, and the regions that are words.
//!
//! Source: PostgreSQL manual, "Lexical Structure".

use std::ops::Range;

use super::{MASK, is_surely_secret_name};

/// Longest literal in dollar quotes, so that the time is proportional to the length of the text.
const MAX_DOLLAR_QUOTED_BYTES: usize = 64 << 10;

/// The literals after words such as `PASSWORD`, as in `ALTER ROLE` and in options of foreign servers, in order.
pub(super) fn password_literals(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.match_indices(['\'', '$']) {
        if found.last().is_some_and(|last| at <= last.end) || !follows_secret_name(&text[..at]) {
            continue;
        }
        let literal =
            if text[at..].starts_with('$') { dollar_quoted(text, at) } else { Some(quoted(text, at)) };
        found.extend(literal.filter(|literal| !text[literal.clone()].starts_with(MASK)));
    }
    found
}

/// Whether a literal that follows this text is a secret.
fn follows_secret_name(before: &str) -> bool {
    let unprefixed = before.strip_suffix("U&").or_else(|| before.strip_suffix(['E', 'e', 'N', 'n']));
    let before = unprefixed.filter(|rest| rest.ends_with(char::is_whitespace)).unwrap_or(before);
    let named = before.trim_end();
    let name = named.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    // Without a space, the quote may be an apostrophe.
    let has_space = named.len() < before.len() || name == "PASSWORD";
    has_space && is_surely_secret_name(name)
}

/// The content of the literal that begins at this place: to its closing quote, or to the end of the line.
fn quoted(text: &str, at: usize) -> Range<usize> {
    let has_escapes = text[..at].ends_with(['E', 'e']);
    let from = at + 1;
    let mut rest = text[from..].char_indices().peekable();
    while let Some((offset, c)) = rest.next() {
        match c {
            '\\' if has_escapes => {
                rest.next();
            }
            '\'' if rest.next_if(|(_, next)| *next == '\'').is_none() => return from..from + offset,
            _ => {}
        }
    }
    from..from + text[from..].find('\n').unwrap_or(text.len() - from)
}

/// The content of `$$…$$` or `$tag$…$tag$` that begins at this place.
fn dollar_quoted(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text[at..].strip_prefix('$')?;
    let is_tag = |c: char| c.is_alphanumeric() || c == '_';
    let tag = &rest[..rest.find(|c| !is_tag(c))?];
    if !rest[tag.len()..].starts_with('$') || tag.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let delimiter = &text[at..at + tag.len() + 2];
    let from = at + delimiter.len();
    let near = text.floor_char_boundary(from + MAX_DOLLAR_QUOTED_BYTES);
    let end = text[from..near].find(delimiter)?;
    Some(from..from + end)
}

/// The regions that are words, not code: literals and comments. The body of a function is code.
pub(super) fn words(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find(['\'', '-', '/', '$', '"']) {
        let from = at + found;
        let rest = &text[from..];
        let end_of = |end: Option<usize>| end.map_or(text.len(), |end| from + end);
        at = if rest.starts_with('\'') {
            let literal = quoted(text, from);
            words.push(literal.clone());
            literal.end + 1
        } else if rest.starts_with("--") {
            let end = end_of(rest.find('\n'));
            words.push(from..end);
            end
        } else if rest.starts_with("/*") {
            let end = end_of(rest.find("*/"));
            words.push(from..end);
            end
        } else if let Some(name) = rest.strip_prefix('"') {
            end_of(name.find('"').map(|end| end + 2))
        } else if let Some(literal) =
            dollar_quoted(text, from).filter(|literal| !text[literal.clone()].contains(';'))
        {
            words.push(literal.clone());
            literal.end + (literal.start - from)
        } else {
            from + 1
        };
        at = at.min(text.len());
    }
    words
}
