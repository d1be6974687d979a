//! Shapes: statements that differ only in their values, as `pg_stat_statements` counts them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use trace::Shape;

use crate::sql;

/// Longest statement that libpg_query parses; a longer one's shape is found by its words alone.
const MAX_PARSED_BYTES: usize = 1 << 20;
/// Longest text of a shape.
const MAX_TEXT_BYTES: usize = 10_000;
/// Shapes that a trace may have; statements of further ones have the last.
const MAX_SHAPES: usize = 100_000;
/// Text of the last shape.
const OTHER: &str = "(statements of further shapes)";
/// Remembered texts: more are found again.
const MAX_REMEMBERED: usize = 1_000_000;

/// The shapes of a trace.
#[derive(Default)]
pub(crate) struct Shapes {
    shapes: Vec<Shape>,
    by_fingerprint: HashMap<u64, u32>,
    /// By hash of the words, since parsing takes long.
    by_words: HashMap<u64, u32>,
}

/// What a statement has in common with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatementShape {
    /// The number of its shape.
    pub(crate) number: u32,
    /// The hash of its words without literals and white space.
    pub(crate) words: u64,
    /// Whether its data are not in a log: of `COPY … FROM STDIN`.
    pub(crate) is_copy_in: bool,
}

impl Shapes {
    /// The shape of a statement.
    pub(crate) fn of(&mut self, statement: &str) -> StatementShape {
        let words = sql::shape(statement);
        let hash = hash(&words);
        let number = match self.by_words.get(&hash) {
            Some(number) => *number,
            None => self.add(statement, &words, hash),
        };
        StatementShape { number, words: hash, is_copy_in: is_copy_in(&words) }
    }

    /// The shapes, by number.
    pub(crate) fn into_vec(self) -> Vec<Shape> {
        self.shapes
    }

    fn add(&mut self, statement: &str, words: &str, hash: u64) -> u32 {
        let parsed = (statement.len() <= MAX_PARSED_BYTES).then(|| normal_form(statement)).flatten();
        let shape = match parsed {
            Some((fingerprint, text)) => Shape { fingerprint, text: shortened(&text), is_parsed: true },
            None => Shape { fingerprint: hash, text: shortened(words), is_parsed: false },
        };
        let number = match self.by_fingerprint.get(&shape.fingerprint) {
            Some(number) => *number,
            None => self.push(shape),
        };
        if self.by_words.len() >= MAX_REMEMBERED {
            self.by_words.clear();
        }
        self.by_words.insert(hash, number);
        number
    }

    fn push(&mut self, shape: Shape) -> u32 {
        if self.shapes.len() >= MAX_SHAPES {
            return MAX_SHAPES as u32 - 1;
        }
        let number = self.shapes.len() as u32;
        let shape = match self.shapes.len() + 1 {
            MAX_SHAPES => Shape { fingerprint: 0, text: OTHER.to_owned(), is_parsed: false },
            _ => shape,
        };
        self.by_fingerprint.insert(shape.fingerprint, number);
        self.shapes.push(shape);
        number
    }
}

/// Fingerprint and normal form. None if it is not PostgreSQL's SQL.
fn normal_form(statement: &str) -> Option<(u64, String)> {
    let fingerprint = fingerprint(statement)?;
    let text = pg_query::normalize(statement).ok()?;
    Some((fingerprint, text.trim().trim_end_matches(';').trim_end().to_owned()))
}

/// The fingerprint by libpg_query, which distinguishes all relations and schemas, as query ids do.
fn fingerprint(statement: &str) -> Option<u64> {
    let options =
        pg_query::FingerprintOptions::FULL_RELNAME | pg_query::FingerprintOptions::RANGEVAR_PG17_COMPAT;
    Some(pg_query::fingerprint(statement, pg_query::ParserOptions::DEFAULT, options).ok()?.value)
}

fn is_copy_in(words: &str) -> bool {
    let Some(start) = words.get(..5) else { return false };
    start.eq_ignore_ascii_case("copy ") && words.to_ascii_lowercase().contains(" from stdin")
}

fn hash(words: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

fn shortened(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_TEXT_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_differ_in_values_have_one_shape() {
        let mut shapes = Shapes::default();
        let first = shapes.of("select * from t where a = 1 and b in (1, 2)").number;
        for same in [
            "SELECT *  FROM t WHERE a = 2 AND b IN (3,4);",
            "select * from t where a = 1 and b in (1, 2, 3, 4)",
            "select * from t where a = $1 and b in ($2, $3) -- by parameters",
        ] {
            assert_eq!(shapes.of(same).number, first, "{same}");
        }
        for other in
            ["select * from t where a = 1", "select * from u where a = 1 and b in (1, 2)", "begin", "commit"]
        {
            assert_ne!(shapes.of(other).number, first, "{other}");
        }
        let shapes = shapes.into_vec();
        assert_eq!(shapes.len(), 5);
        assert_eq!(shapes[0].text, "select * from t where a = $1 and b in ($2, $3)");
        assert_eq!(shapes[0].fingerprint, fingerprint("select * from t where a = 9 and b in (8)").unwrap());
    }

    #[test]
    fn what_is_no_sql_has_the_shape_of_its_words() {
        let mut shapes = Shapes::default();
        let first = shapes.of("selct 1").number;
        assert_eq!(shapes.of("selct   2").number, first);
        let long = format!("select '{}'", "x".repeat(MAX_PARSED_BYTES));
        assert_ne!(shapes.of(&long).number, first);
        let shapes = shapes.into_vec();
        assert_eq!((shapes[0].text.as_str(), shapes[0].is_parsed), ("selct ?", false));
        assert_eq!((shapes[1].text.as_str(), shapes[1].is_parsed), ("select ?", false));
    }

    #[test]
    fn copying_from_the_client_is_recognised() {
        let mut shapes = Shapes::default();
        for (statement, is_copy) in [
            ("COPY t (a, b)\nFROM STDIN WITH (FORMAT csv)", true),
            ("copy t from stdin", true),
            ("COPY t TO STDOUT", false),
            ("COPY t FROM '/tmp/ from stdin'", false),
            ("select ' from stdin'", false),
        ] {
            assert_eq!(shapes.of(statement).is_copy_in, is_copy, "{statement}");
        }
    }
}
