//! Texts of `pg_stat_statements` that PostgreSQL does not accept: it replaces also constants for which there is no parameter, as
//! in `interval '1 day'`, and until 9.6 all by `?`.

use std::ops::Range;

use crate::sql;

/// Types whose name may stand before a constant.
const TYPES: [&str; 10] = [
    "timestamp with time zone",
    "timestamp without time zone",
    "time with time zone",
    "time without time zone",
    "timestamptz",
    "timestamp",
    "interval",
    "timetz",
    "date",
    "time",
];

/// The statement with casts in place of types before parameters (`interval $1` → `$1::interval`), and `date_part($1, …)` in place
/// of `extract($1 from …)`.
pub(super) fn executable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        let digits = from[1..].bytes().take_while(u8::is_ascii_digit).count();
        let (parameter, after) = from.split_at(1 + digits);
        out.push_str(before);
        rest = after;
        if digits == 0 {
            out.push_str(parameter);
            continue;
        }
        let lower = out.trim_end().to_ascii_lowercase();
        let named = TYPES
            .iter()
            .find(|name| lower.strip_suffix(**name).is_some_and(|start| !start.ends_with(is_name_char)));
        if let Some(name) = named {
            out.truncate(lower.len() - name.len());
            out.push_str(&format!("{parameter}::{name}"));
        } else if lower.ends_with("extract(")
            && let Some(argument) = after_from(after)
        {
            out.truncate(lower.len() - "extract(".len());
            out.push_str(&format!("date_part({parameter}, "));
            rest = argument;
        } else {
            out.push_str(parameter);
        }
    }
    out + rest
}

/// The statement with `$1` and so on, after its parameters, in place of each `?` that stands for a constant. One before another `?`
/// or a parameter is an operator of `jsonb`, and so are `?|` and `?&`.
pub(super) fn numbered(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut number = sql::parameters(text);
    let quoted: Vec<Range<usize>> = sql::spans(text).map(|span| span.outer).collect();
    for (at, c) in text.char_indices() {
        let after = text[at + c.len_utf8()..].trim_start();
        let is_operator = after.starts_with(['?', '$']) || text[at + c.len_utf8()..].starts_with(['|', '&']);
        if c != '?' || is_operator || quoted.iter().any(|range| range.contains(&at)) {
            out.push(c);
            continue;
        }
        number += 1;
        out.push_str(&format!("${number}"));
    }
    out
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || c == '"'
}

/// What follows ` from `.
fn after_from(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let (word, rest) = text.split_at_checked(4)?;
    (word.eq_ignore_ascii_case("from") && rest.starts_with(|c: char| c.is_whitespace()))
        .then(|| rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::parse;

    #[test]
    fn whatever_a_statement_is_nothing_panics() {
        let mut mutator = mutate::Mutator::new(5);
        let mut parsed = 0;
        for text in [
            "select extract($1 from a), interval $2 from t where lower(b) = $3 and c in ($4 /*, ... */) limit $5",
            "insert into t (a, b) values (?, ?) on conflict (a) do update set b = date ?",
        ] {
            for _ in 0..500 {
                let mutated = mutator.text(text);
                for text in [mutated.clone(), numbered(&mutated)] {
                    if let Some(tree) = parse(&executable(&text)) {
                        parsed += 1;
                        crate::synthesis::uses::Uses::new(&tree);
                    }
                }
            }
        }
        assert!(parsed > 100, "{parsed}");
    }

    #[test]
    fn question_marks_of_9_6_are_numbered() {
        for (text, expected) in [
            (
                "select a, ? from t where b in (?, ?) limit ?",
                "select a, $1 from t where b in ($2, $3) limit $4",
            ),
            ("select $2, ?, $1 -- ?", "select $2, $3, $1 -- ?"),
            ("select a ? ?, a ?| ?, a ? $1 from t", "select a ? $2, a ?| $3, a ? $1 from t"),
            ("select interval ?", "select interval $1"),
        ] {
            assert_eq!(numbered(text), expected);
        }
    }

    #[test]
    fn constants_without_parameters_become_casts() {
        for (text, expected) in [
            ("select now() - interval $1, $2", "select now() - $1::interval, $2"),
            ("select TIMESTAMP WITH TIME ZONE  $1", "select $1::timestamp with time zone"),
            (
                "select a from t where d >= date $1 and e < timestamp $2",
                "select a from t where d >= $1::date and e < $2::timestamp",
            ),
            ("select extract($1 FROM a) from t", "select date_part($1, a) from t"),
            ("select 'é', my_date $1", "select 'é', my_date $1"),
            ("select $$a$$, $1", "select $$a$$, $1"),
        ] {
            assert_eq!(executable(text), expected);
        }
        assert!(parse(&executable("select interval $1, extract($2 from a) from t")).is_some());
    }
}
