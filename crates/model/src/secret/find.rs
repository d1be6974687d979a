//! The secrets in a text, by the kind of text.

use std::ops::Range;

use super::line::{Assignment, assignment, password_of_url, secrets_of_line};
use super::{is_surely_secret_name, sql};

/// The secrets in a text of words, in order.
pub(super) fn in_words(text: &str) -> Vec<Range<usize>> {
    let mut found = sql::password_literals(text);
    for (start, line) in lines(text) {
        secrets_of_line(line, |secret| found.push(start + secret.start..start + secret.end));
    }
    merged(found)
}

/// The secrets in statements or a script, in order.
pub(super) fn in_sql(text: &str) -> Vec<Range<usize>> {
    let mut found = sql::password_literals(text);
    let words = sql::words(text);
    for (start, line) in lines(text) {
        let mut add = |secret: Range<usize>| found.push(start + secret.start..start + secret.end);
        let command = line.trim_start();
        if command.starts_with("\\shell") || command.starts_with("\\setshell") {
            secrets_of_line(line, add);
            continue;
        }
        for (at, byte) in line.bytes().enumerate() {
            let secret = match byte {
                b'=' => {
                    let after = words.partition_point(|words| words.end <= start + at);
                    let around = words.get(after).filter(|words| words.contains(&(start + at)));
                    assigned_in_sql(line, at, around.map(|words| words.end - start))
                }
                b':' if line[at..].starts_with("://") => password_of_url(line, at),
                _ => None,
            };
            secret.into_iter().for_each(&mut add);
        }
    }
    merged(found)
}

/// The secret that the `=` at this place assigns: in words, which end at `end_of_words`, that of a connection string; in
/// code, that of `name = 'literal'`.
fn assigned_in_sql(line: &str, at: usize, end_of_words: Option<usize>) -> Option<Range<usize>> {
    let Assignment { name, value } = assignment(line, at)?;
    let is_secret = end_of_words.is_some() || line[..value.start].ends_with('\'');
    (is_secret && is_surely_secret_name(name))
        .then(|| value.start..value.end.min(end_of_words.unwrap_or(line.len())))
}

/// Lines with their offsets, without line breaks.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        (at, line.trim_end_matches(['\n', '\r']))
    })
}

/// Ranges in order, without empty ones; those that overlap or touch are one.
pub(super) fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}
