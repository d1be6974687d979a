//! Records of a csvlog.

use std::ops::Range;

use memchr::memchr;

use crate::entry::SessionKey;
use crate::record::{Parsed, Record, Text};
use crate::severity::Label;
use crate::time::Stamp;

/// Columns up to 12, 13, and from 14 on; their order is the same.
const COLUMNS: [usize; 3] = [23, 24, 26];

/// Columns that are used, from 0.
const LOG_TIME: usize = 0;
const USER: usize = 1;
const DATABASE: usize = 2;
const PROCESS: usize = 3;
const SESSION: usize = 5;
const SEVERITY: usize = 11;
const SQLSTATE: usize = 12;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const CONTEXT: usize = 18;
const QUERY: usize = 19;
const APPLICATION: usize = 22;
const BACKEND: usize = 23;

/// Whether a line begins a record: `2026-01-02 03:04:05.678 UTC,"me",…`, or with an empty second column.
pub(crate) fn is_start(line: &[u8]) -> bool {
    let is_time = line.len() > 24
        && [(4, b'-'), (7, b'-'), (10, b' '), (13, b':'), (16, b':'), (19, b'.')]
            .iter()
            .all(|(at, byte)| line[*at] == *byte);
    is_time
        && memchr(b',', &line[..line.len().min(40)])
            .is_some_and(|comma| matches!(line.get(comma + 1), Some(b'"' | b',')))
}

/// Whether a record ends here: all quotes are closed.
pub(crate) fn is_closed(lines: &[u8]) -> bool {
    memchr::memchr_iter(b'"', lines).count().is_multiple_of(2)
}

/// Parses a record. None if it is none; the label is missing if the severity is in another language.
pub(crate) fn parse(text: &str) -> Option<Parsed> {
    let (fields, count) = fields(text.trim_end_matches(['\r', '\n']))?;
    // Later versions may add columns.
    if !COLUMNS.contains(&count) && count < COLUMNS[2] {
        return None;
    }
    let plain = |column: usize| match &fields[column] {
        Text::Range(range) => &text[range.clone()],
        _ => "",
    };
    let stamp = Stamp::parse(plain(LOG_TIME)).filter(|stamp| stamp.has_millis)?;
    let session = SessionKey::parse(plain(SESSION))
        .or_else(|| Some(SessionKey { started_s: None, process_id: plain(PROCESS).parse().ok()? }))?;
    let label = Label::from_word(plain(SEVERITY));
    let has_unknown_zone = stamp.unknown_zone.is_some();
    let at_us = stamp.at_us;
    let mut fields = fields;
    let mut take = |column: usize| std::mem::take(&mut fields[column]);
    let record = Record {
        at_us,
        has_unknown_zone,
        session,
        user: take(USER),
        database: take(DATABASE),
        application: take(APPLICATION),
        backend: take(BACKEND),
        sqlstate: take(SQLSTATE),
        message: take(MESSAGE),
        detail: take(DETAIL),
        context: take(CONTEXT),
        statement: take(QUERY),
    };
    Some((record, label))
}

/// The first fields of a record, and the number of all.
fn fields(text: &str) -> Option<([Text; BACKEND + 1], usize)> {
    let bytes = text.as_bytes();
    let mut fields: [Text; BACKEND + 1] = Default::default();
    let mut count = 0;
    let mut at = 0;
    loop {
        let (field, end) = if bytes.get(at) == Some(&b'"') {
            quoted(text, at + 1)?
        } else {
            let end = memchr(b',', &bytes[at..]).map_or(bytes.len(), |comma| at + comma);
            (plain(at..end), end)
        };
        if let Some(place) = fields.get_mut(count) {
            *place = field;
        }
        count += 1;
        match bytes.get(end) {
            None => return Some((fields, count)),
            Some(b',') => at = end + 1,
            Some(_) => return None,
        }
    }
}

fn plain(range: Range<usize>) -> Text {
    if range.is_empty() { Text::Missing } else { Text::Range(range) }
}

/// The quoted field whose text begins here, and the place after its closing quote.
fn quoted(text: &str, from: usize) -> Option<(Text, usize)> {
    let bytes = text.as_bytes();
    let mut unescaped: Option<String> = None;
    let mut start = from;
    loop {
        let quote = start + memchr(b'"', &bytes[start..])?;
        let is_doubled = bytes.get(quote + 1) == Some(&b'"');
        if let Some(unescaped) = &mut unescaped {
            unescaped.push_str(&text[start..quote]);
        }
        if !is_doubled {
            return Some((unescaped.map_or(Text::Range(from..quote), Text::Unescaped), quote + 1));
        }
        unescaped.get_or_insert_with(|| text[from..quote].to_owned()).push('"');
        start = quote + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::severity::Severity;

    const START: &str = r#"2026-01-02 03:04:05.678 UTC,"me","app",42,"[local]",65926f54.2a,7,"SELECT",2026-01-02 03:04:00 UTC,3/14,0,LOG,00000,"#;

    #[test]
    fn records_of_all_versions_are_read() {
        for (columns, rest) in [
            (23, r#""duration: 1 ms  statement: select ""x""","d",,,,,,,,"psql""#),
            (24, r#""duration: 1 ms  statement: select ""x""","d",,,,,,,,"psql","client backend""#),
            (26, r#""duration: 1 ms  statement: select ""x""","d",,,,,,,,"psql","client backend",,-99"#),
        ] {
            let text = format!("{START}{rest}\n");
            let (record, label) = parse(&text).unwrap();
            assert_eq!(fields(text.trim_end()).unwrap().1, columns);
            assert_eq!((record.at_us, label), (1_767_323_045_678_000, Some(Label::Entry(Severity::Log))));
            assert_eq!(record.session, SessionKey { started_s: Some(1_704_095_572), process_id: 42 });
            let texts = [&record.user, &record.application, &record.message, &record.detail, &record.context];
            let texts = texts.map(|field| field.get(&text).map(|text| text.into_owned()));
            let expected =
                [Some("me"), Some("psql"), Some("duration: 1 ms  statement: select \"x\""), Some("d"), None];
            assert_eq!(texts, expected.map(|text| text.map(str::to_owned)));
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for text in
            ["", "a,b,c", START, "2026-01-02 03:04:05.678 UTC,\"open", "2026-01-02 03:04:05.678 UTC,\"a\"b,"]
        {
            assert!(parse(text).is_none(), "{text}");
        }
        assert!(is_start(START.as_bytes()));
        assert!(!is_start(b"2026-01-02 03:04:05.678 UTC [42] LOG:  x, y"));
        assert!(!is_closed(b"\"a\"\"") && is_closed(b"\"a\"\"\""));
    }
}
