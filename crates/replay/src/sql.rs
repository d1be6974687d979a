//! The literals in a statement, found as PostgreSQL's scanner finds them (`scan.l`, `standard_conforming_strings = on`).

use std::ops::Range;

/// A part of a statement that is not code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `'text'`; the range is that of the text between the quotes.
    String,
    /// `E'text'`, with backslashes.
    EscapeString,
    /// `$tag$text$tag$`.
    DollarString,
    /// `B'01'` or `X'0f'`.
    Bits,
    /// `12`, `0.5e-3`, `0xff`.
    Number,
    /// A comment.
    Comment,
}

/// A literal or a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) kind: Kind,
    /// All of it, with quotes.
    pub(crate) outer: Range<usize>,
    /// Its value, as it is written.
    pub(crate) inner: Range<usize>,
}

/// The literals and comments of a statement, in order. An unterminated one reaches to the end.
pub(crate) fn spans(sql: &str) -> impl Iterator<Item = Span> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || next(sql, &mut at))
}

/// A statement's code in one line: literals as `?`, white space as single blanks, without comments.
pub(crate) fn shape(sql: &str) -> String {
    let mut shape = String::with_capacity(sql.len().min(4096));
    let mut from = 0;
    let push = |code: &str, shape: &mut String| {
        for word in code.split_inclusive(|c: char| c.is_ascii_whitespace()) {
            shape.push_str(word.trim_ascii_end());
            if word.ends_with(|c: char| c.is_ascii_whitespace()) && !shape.ends_with(' ') && !shape.is_empty()
            {
                shape.push(' ');
            }
        }
    };
    for span in spans(sql) {
        push(&sql[from..span.outer.start], &mut shape);
        match span.kind {
            Kind::Comment => push(" ", &mut shape),
            _ => shape.push('?'),
        }
        from = span.outer.end;
    }
    push(&sql[from..], &mut shape);
    let end = shape.trim_end_matches([' ', ';']).len();
    shape.truncate(end);
    shape
}

/// The highest parameter of a statement: 2 for `$2`; 0 if it has none.
pub(crate) fn parameters(sql: &str) -> usize {
    let mut highest = 0;
    let mut from = 0;
    let mut look = |code: &str| {
        let mut rest = code;
        while let Some(at) = rest.find('$') {
            let is_name = rest[..at].chars().next_back().is_some_and(is_name_char);
            rest = &rest[at + 1..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if !is_name && digits > 0 {
                highest = highest.max(rest[..digits].parse().unwrap_or(0));
            }
        }
    };
    for span in spans(sql) {
        look(&sql[from..span.outer.start]);
        from = span.outer.end;
    }
    look(&sql[from..]);
    highest
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn is_name_char(c: char) -> bool {
    is_name_start(c) || c.is_ascii_digit() || c == '$'
}

fn next(sql: &str, at: &mut usize) -> Option<Span> {
    while let Some(c) = sql[*at..].chars().next() {
        let start = *at;
        let rest = &sql[start..];
        if is_name_start(c) {
            let name = rest.len() - rest.trim_start_matches(is_name_char).len();
            let prefix = &rest[..name];
            if rest[name..].starts_with('\'') {
                let kind = match prefix {
                    "e" | "E" => Some(Kind::EscapeString),
                    "b" | "B" | "x" | "X" => Some(Kind::Bits),
                    "n" | "N" => Some(Kind::String),
                    _ => None,
                };
                if let Some(kind) = kind {
                    return Some(string(sql, start, start + name, kind, at));
                }
            }
            *at += name;
            continue;
        }
        match c {
            '\'' => return Some(string(sql, start, start, Kind::String, at)),
            '"' => *at = rest[1..].find('"').map_or(sql.len(), |end| start + end + 2),
            '$' => match dollar_string(sql, start, at) {
                Some(span) => return Some(span),
                None => {
                    // A parameter's digits are no number.
                    let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                    *at = start + 1 + digits;
                }
            },
            '-' if rest.starts_with("--") => {
                *at = rest.find('\n').map_or(sql.len(), |end| start + end);
                return Some(Span { kind: Kind::Comment, outer: start..*at, inner: start..*at });
            }
            '/' if rest.starts_with("/*") => {
                *at = start + comment(rest);
                return Some(Span { kind: Kind::Comment, outer: start..*at, inner: start..*at });
            }
            '0'..='9' => return Some(number(sql, start, at)),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                return Some(number(sql, start, at));
            }
            other => *at += other.len_utf8(),
        }
    }
    None
}

/// The string whose quote is at `quote`.
fn string(sql: &str, start: usize, quote: usize, kind: Kind, at: &mut usize) -> Span {
    let bytes = sql.as_bytes();
    let mut end = quote + 1;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'\\' if kind == Kind::EscapeString => end += 1,
            b'\'' if bytes.get(end + 1) == Some(&b'\'') => end += 1,
            b'\'' => break,
            _ => {}
        }
        end += 1;
    }
    let inner_end = end.min(sql.len());
    *at = (end + 1).min(sql.len());
    // A cut escape may end within a character.
    while !sql.is_char_boundary(*at) {
        *at += 1;
    }
    Span { kind, outer: start..*at, inner: quote + 1..inner_end.max(quote + 1) }
}

fn dollar_string(sql: &str, start: usize, at: &mut usize) -> Option<Span> {
    let rest = &sql[start + 1..];
    let tag = rest.find('$')?;
    let is_tag = rest[..tag].chars().all(|c| is_name_char(c) && c != '$')
        && !rest.starts_with(|c: char| c.is_ascii_digit());
    if !is_tag {
        return None;
    }
    let delimiter = &sql[start..start + tag + 2];
    let from = start + delimiter.len();
    let end = sql[from..].find(delimiter).map_or(sql.len(), |end| from + end);
    *at = (end + delimiter.len()).min(sql.len());
    Some(Span { kind: Kind::DollarString, outer: start..*at, inner: from..end })
}

/// Length of a comment, in which others may be nested.
fn comment(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_u32, 0);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => {
                depth += 1;
                at += 2;
            }
            Some(b"*/") => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

fn number(sql: &str, start: usize, at: &mut usize) -> Span {
    let bytes = sql.as_bytes();
    let count = |from: usize, is: fn(&u8) -> bool| bytes[from..].iter().take_while(|byte| is(byte)).count();
    let is_digit: fn(&u8) -> bool = |byte| byte.is_ascii_digit() || *byte == b'_';
    let mut end = start;
    if bytes[start] == b'0' && matches!(bytes.get(start + 1), Some(b'x' | b'X' | b'o' | b'O' | b'b' | b'B')) {
        end = start + 2 + count(start + 2, |byte| byte.is_ascii_hexdigit() || *byte == b'_');
    } else {
        end += count(end, is_digit);
        if bytes.get(end) == Some(&b'.') {
            end += 1 + count(end + 1, is_digit);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let digits = count((end + 1 + sign).min(bytes.len()), |byte| byte.is_ascii_digit());
            if digits > 0 {
                end += 1 + sign + digits;
            }
        }
    }
    *at = end;
    Span { kind: Kind::Number, outer: start..end, inner: start..end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sql: &str) -> Vec<(Kind, &str)> {
        spans(sql).map(|span| (span.kind, &sql[span.inner])).collect()
    }

    #[test]
    fn literals_are_found_where_the_scanner_finds_them() {
        use Kind::{Bits, Comment, DollarString, EscapeString, Number, String};
        for (sql, expected) in [
            (
                "select 'it''s', E'a\\'b', b'01', X'0f', N'n'",
                vec![(String, "it''s"), (EscapeString, "a\\'b"), (Bits, "01"), (Bits, "0f"), (String, "n")],
            ),
            (
                "select 1, .5, 2.5e-3, 0xff, 1_000, t1.c2, $1, a$2, 3e from t3",
                vec![
                    (Number, "1"),
                    (Number, ".5"),
                    (Number, "2.5e-3"),
                    (Number, "0xff"),
                    (Number, "1_000"),
                    (Number, "3"),
                ],
            ),
            ("do $$ 'x' $$, $a$ $$ $b$ $a$", vec![(DollarString, " 'x' "), (DollarString, " $$ $b$ ")]),
            (
                "select \"a'b\" -- 'c'\n, /* 1 /* 2 */ */ 'd'",
                vec![(Comment, "-- 'c'"), (Comment, "/* 1 /* 2 */ */"), (String, "d")],
            ),
            ("select 'open", vec![(String, "open")]),
            ("select E'\\", vec![(EscapeString, "\\")]),
        ] {
            assert_eq!(found(sql), expected, "{sql}");
        }
    }

    #[test]
    fn statements_that_differ_in_literals_and_blanks_have_one_shape() {
        let shapes = [
            "select  *\nfrom t where a = 'x' -- c\n and b=12;",
            "select * from t /* y */ where a = '' and b=0.5",
        ];
        assert_eq!(shapes.map(shape), ["select * from t where a = ? and b=?"; 2]);
    }

    #[test]
    fn parameters_are_counted_outside_literals() {
        for (sql, count) in [("select $1, $12", 12), ("select '$1', a$1, $$ $2 $$ -- $3", 0), ("select 1", 0)]
        {
            assert_eq!(parameters(sql), count, "{sql}");
        }
    }

    #[test]
    fn any_text_has_spans_in_order_within_it() {
        let sql = "select 'a', E'\\ä', \"q\", $x$ä$x$, /* ä */ 1.5e+3 -- ä";
        let mut mutator = mutate::Mutator::new(11);
        for _ in 0..2000 {
            let text = mutator.text(sql);
            let mut end = 0;
            for span in spans(&text) {
                assert!(end <= span.outer.start && span.outer.start <= span.inner.start, "{text}");
                assert!(span.inner.end <= span.outer.end, "{text}");
                assert!(
                    text.get(span.outer.clone()).is_some() && text.get(span.inner.clone()).is_some(),
                    "{text}"
                );
                end = span.outer.end;
            }
            let _ = (shape(&text), parameters(&text));
        }
    }
}
