//! Secrets in a line of words: of a command, a log, a message, a connection string.

use std::ops::Range;

use super::{MASK, is_secret_name, is_surely_secret_name};

/// Characters that end an unquoted value: of mount options, connection strings for Java, and URLs.
const SEPARATORS: [char; 3] = [',', ';', '&'];

/// Options of curl and others whose value is a user with a password.
const LOGIN_OPTIONS: [&str; 3] = ["-u", "--user", "--proxy-user"];
/// Header of HTTP, also `Proxy-Authorization`.
const AUTHORIZATION: &str = "authorization";

/// Longest distance within which the end of a login, an option or a quote is searched for, so that the time is proportional
/// to the length of the line.
const MAX_DISTANCE_BYTES: usize = 1024;

/// The secrets in a line, in no order.
pub(super) fn secrets_of_line(line: &str, mut found: impl FnMut(Range<usize>)) {
    let mut from = 0;
    for (at, byte) in line.bytes().enumerate() {
        if at < from {
            continue;
        }
        let secret = match byte {
            b'=' => assignment(line, at).map(|found| found.value),
            b':' if line[at..].starts_with("://") => password_of_url(line, at),
            b':' => field(line, at),
            b'-' => value_of_option(line, at),
            _ => None,
        };
        if let Some(secret) = secret {
            if secret.len() > MAX_DISTANCE_BYTES {
                from = secret.end;
            }
            found(secret);
        }
    }
}

/// The text up to the maximum distance.
fn near(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_DISTANCE_BYTES)]
}

/// A secret value that is assigned to a name.
pub(super) struct Assignment<'a> {
    pub(super) name: &'a str,
    pub(super) value: Range<usize>,
}

/// `name=value` with the `=` at this place. Around it, there may be spaces if the name is surely a secret's, as in libpq's
/// connection strings; but in `NAME= command`, the value is empty.
pub(super) fn assignment(line: &str, at: usize) -> Option<Assignment<'_>> {
    let (before, after) = (&line[..at], &line[at + 1..]);
    if after.starts_with(['=', '>', '~']) || before.ends_with(['=', '!', '<', '>', ':', '~']) {
        return None;
    }
    let named = before.trim_end_matches([' ', '\t']);
    let has_space_before = named.len() < before.len();
    let (named, has_quoted_name) = match named.strip_suffix(['"', '\'']) {
        Some(named) => (named, true),
        None => (named, false),
    };
    let name = last_name(named);
    let is_secret = if has_space_before { is_surely_secret_name(name) } else { is_secret_name(name) };
    if !is_secret {
        return None;
    }
    let value = after.trim_start_matches([' ', '\t']);
    let has_space_after = value.len() < after.len();
    let is_keyword = is_surely_secret_name(name) && !name.contains(|c: char| c.is_ascii_uppercase());
    if has_space_after && !has_space_before && !is_keyword {
        return None;
    }
    let from = line.len() - value.len();
    let opening = named[..named.len() - name.len()].chars().next_back().filter(|_| !has_quoted_name);
    let is_quoted = value.starts_with(['"', '\'']);
    let value = match opening {
        // All of `"password=two words"` is one word.
        Some(quote @ ('"' | '\'')) if !is_quoted && !has_space_before => {
            from..closing(line, from, quote).unwrap_or_else(|| end_of_word(line, from, &SEPARATORS))
        }
        _ => value_at(line, from, &SEPARATORS),
    };
    is_secret_value(line, &value).then_some(Assignment { name, value })
}

/// The value after the option `--name` that begins at this place, and the password of `--user name:password`.
fn value_of_option(line: &str, at: usize) -> Option<Range<usize>> {
    if line[..at].chars().next_back().is_some_and(|c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '(')) {
        return None;
    }
    let option = near(&line[at..]).split_whitespace().next()?;
    let name = option.split('=').next().unwrap_or_default();
    let is_login = LOGIN_OPTIONS.contains(&name);
    let has_value = is_login && name.len() < option.len();
    if !is_login && (name.len() < option.len() || !is_secret_name(option)) {
        return None;
    }
    let after = &line[at + name.len() + usize::from(has_value)..];
    let value = after.trim_start();
    if value.starts_with('-') {
        return None;
    }
    let mut value = value_at(line, line.len() - value.len(), &[]);
    if is_login {
        let (user, password) = line[value.clone()].split_once(':')?;
        // A user and a group, as for containers.
        if [user, password].iter().all(|id| id.chars().all(|c| c.is_ascii_digit())) {
            return None;
        }
        value.start += user.len() + 1;
    }
    is_secret_value(line, &value).then_some(value)
}

/// The password of `scheme://user:password@host`, with the colon of the scheme at this place.
pub(super) fn password_of_url(line: &str, at: usize) -> Option<Range<usize>> {
    let from = at + "://".len();
    let rest = near(&line[from..]);
    let end = rest.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(rest.len());
    // A password may contain a slash that should have been encoded: the last @ ends it.
    let (login, _) = rest[..end].rsplit_once('@')?;
    let (user, _) = login.split_once(':')?;
    let value = from + user.len() + 1..from + login.len();
    is_secret_value(line, &value).then_some(value)
}

/// The value of `"name": "value"` as in JSON, of a header in quotes (`'Private-Token: value'`), of an `Authorization`
/// header, or of a line `name: value`; with the colon at this place.
fn field(line: &str, at: usize) -> Option<Range<usize>> {
    let after = &line[at + 1..];
    let value = after.trim_start_matches([' ', '\t']);
    let from = line.len() - value.len();
    let before = &line[..at];
    if let Some(quoted) = before.trim_end().strip_suffix('"') {
        let quote = if quoted.ends_with('\\') { "\\\"" } else { "\"" };
        let name = last_name(quoted.trim_end_matches('\\'));
        let inside = value.strip_prefix(quote).filter(|_| is_surely_secret_name(name))?;
        let value = from + quote.len()..from + quote.len() + inside.find(quote).unwrap_or(inside.len());
        return is_secret_value(line, &value).then_some(value);
    }
    let name = last_name(before);
    let opening = before[..before.len() - name.len()].chars().next_back();
    let is_authorization = name
        .len()
        .checked_sub(AUTHORIZATION.len())
        .is_some_and(|start| name[start..].eq_ignore_ascii_case(AUTHORIZATION));
    let value = match opening {
        Some(quote @ ('"' | '\''))
            if is_surely_secret_name(name) || (name.contains('-') && is_secret_name(name)) =>
        {
            from..closing(line, from, quote).unwrap_or(line.len())
        }
        _ if is_authorization => from..open_quote(line, from).unwrap_or(line.len()),
        _ => {
            let indentation = &before[..before.len() - name.len()];
            let begins_line = indentation.len() <= MAX_DISTANCE_BYTES
                && indentation.chars().all(|c| matches!(c, ' ' | '\t' | '-' | '+'));
            if !begins_line || !after.starts_with(' ') || !is_surely_secret_name(name) {
                return None;
            }
            if value.trim_end().contains(char::is_whitespace) {
                return None;
            }
            value_at(line, from, &[])
        }
    };
    is_secret_value(line, &value).then_some(value)
}

/// The name at the end of a text; empty if there is none.
fn last_name(text: &str) -> &str {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.rsplit(|c| !is_of_name(c)).next().unwrap_or_default()
}

/// A value that begins at this place: up to its closing quote, or to the end of the word.
fn value_at(line: &str, from: usize, separators: &[char]) -> Range<usize> {
    let rest = &line[from..];
    // A quote in a literal of SQL is doubled.
    if let Some(inside) = rest.strip_prefix("''") {
        let is_empty = inside.chars().next().is_none_or(|c| c.is_whitespace() || ",;)\"'".contains(c));
        let end = inside.find("''").filter(|_| !is_empty).unwrap_or(0);
        return from + 2..from + 2 + end;
    }
    match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => from + 1..closing(line, from + 1, quote).unwrap_or(line.len()),
        _ => from..end_of_word(line, from, separators),
    }
}

/// Place of the closing quote.
fn closing(line: &str, from: usize, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in line[from..].char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return Some(from + at),
            _ => {}
        }
    }
    None
}

/// End of an unquoted value: a space, a separator, or the quote that was opened before.
fn end_of_word(line: &str, from: usize, separators: &[char]) -> usize {
    let is_end = |c: char| {
        let is_quote = matches!(c, '"' | '\'' | '`');
        c.is_whitespace() || separators.contains(&c) || (is_quote && is_open(line, from, c))
    };
    line[from..].find(is_end).map_or(line.len(), |at| from + at)
}

/// Whether a quote is open at this place.
fn is_open(line: &str, at: usize, quote: char) -> bool {
    let from = line.ceil_char_boundary(at.saturating_sub(MAX_DISTANCE_BYTES));
    line[from..at].matches(quote).count() % 2 == 1
}

/// Place of the next quote that closes an open one.
fn open_quote(line: &str, from: usize) -> Option<usize> {
    let at = line[from..].find(|c| matches!(c, '"' | '\'') && is_open(line, from, c))?;
    Some(from + at)
}

/// Whether a value is a secret, not empty, masked or a reference to one. In single quotes, `$` is an ordinary character.
fn is_secret_value(line: &str, value: &Range<usize>) -> bool {
    let is_literal = line[..value.start].ends_with('\'');
    let value = &line[value.clone()];
    !value.is_empty() && !value.starts_with(MASK) && (is_literal || !is_reference(value))
}

/// Whether a value refers to a secret: `$PASSWORD`, `${password}`, `$(command)`, `$1`.
fn is_reference(value: &str) -> bool {
    if value.starts_with("$(") || value.starts_with('`') {
        return true;
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let Some(name) = value.strip_prefix('$') else { return false };
    match name.strip_prefix('{') {
        Some(braced) => braced.strip_suffix('}').is_some_and(|name| name.chars().all(is_name)),
        None => !name.is_empty() && name.chars().all(|c| is_name(c) && !c.is_ascii_lowercase()),
    }
}
