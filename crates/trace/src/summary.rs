//! What a trace says about itself.

/// What a trace says about itself and about what is not in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The logs.
    pub sources: Vec<Source>,
    /// Whether its values were replaced.
    pub is_anonymized: bool,
    /// The shapes of its statements, by number.
    pub shapes: Vec<Shape>,
    /// Number of sessions.
    pub sessions: u32,
    /// Number of executed statements.
    pub statements: u64,
    /// Number of those that depend on commits of other sessions.
    pub dependent: u64,
    /// What of the logs is not in it.
    pub left_out: Vec<Missing>,
    /// What of the logs could not be read.
    pub problems: Vec<Missing>,
}

/// A log that a trace was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the file.
    pub file: String,
    /// Its format.
    pub format: String,
    /// Its `log_line_prefix`.
    pub prefix: Option<String>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Number of its entries.
    pub entries: u64,
}

/// What statements that differ only in their values have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its fingerprint, by libpg_query; of what it can't parse, by its words.
    pub fingerprint: u64,
    /// The first such statement, with `$1` and so on in place of its values; shortened.
    pub text: String,
    /// Whether it is PostgreSQL's SQL.
    pub is_parsed: bool,
}

impl Shape {
    /// The fingerprint in hexadecimal.
    pub fn fingerprint(&self) -> String {
        format!("{:016x}", self.fingerprint)
    }

    /// Whether its statements may change data or lock rows, as far as its words show. What functions do is not known.
    pub fn writes(&self) -> bool {
        // Of what could not be parsed, the text may be anything.
        !self.is_parsed || words(&self.text).any(|word| WRITING.contains(&word.as_str()))
    }

    /// Whether EXPLAIN can show its plan: of queries and of changes of rows.
    pub fn has_plan(&self) -> bool {
        let first = words(&self.text).next();
        first.is_some_and(|word| {
            ["select", "insert", "update", "delete", "merge", "with", "values", "table"]
                .contains(&word.as_str())
        })
    }
}

/// Words of statements that change something; `update` also locks rows, by `FOR UPDATE`.
const WRITING: [&str; 24] = [
    "alter", "call", "cluster", "comment", "copy", "create", "delete", "do", "drop", "grant", "import",
    "insert", "into", "merge", "nextval", "reassign", "refresh", "reindex", "revoke", "security", "share",
    "truncate", "update", "vacuum",
];

/// The words of a normal form outside quotes, in small letters.
fn words(text: &str) -> impl Iterator<Item = String> {
    let quoted = |at: usize| at % 2 == 1;
    let outside =
        text.split(['"', '\'']).enumerate().filter(move |(at, _)| !quoted(*at)).map(|(_, part)| part);
    outside
        .flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$'))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// A kind of thing that a trace lacks: how often, and where first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Number of times.
    pub count: u64,
    /// The file of the first.
    pub file: String,
    /// Its line there.
    pub line: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_show_what_writes_and_what_has_a_plan() {
        for (text, writes, has_plan) in [
            ("select v from t where \"update\" = $1", false, true),
            ("SELECT v FROM t WHERE id = $1 FOR UPDATE", true, true),
            ("with x as (delete from t returning *) select * from x", true, true),
            ("insert into t values ($1)", true, true),
            ("select updated_at from t", false, true),
            ("begin", false, false),
            ("vacuum t", true, false),
            ("set work_mem = $1", false, false),
        ] {
            let shape = Shape { fingerprint: 1, text: text.into(), is_parsed: true };
            assert_eq!((shape.writes(), shape.has_plan()), (writes, has_plan), "{text}");
        }
        assert!(Shape { fingerprint: 1, text: "select".into(), is_parsed: false }.writes());
    }
}
