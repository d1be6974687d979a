//! Statements that `pg_dump` writes, as far as restoring them differs.

use model::secret::mask;

/// Maximum length of a statement's beginning in an error.
const HEAD_CHARS: usize = 70;

/// Kind of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Data of a table follow.
    CopyFromStdin,
    /// A COPY that reads or writes a file or program.
    OtherCopy,
    /// `pg_dump --create`: the dump creates its database.
    CreateDatabase,
    /// Owner, settings, privileges or comment of that database, or its removal.
    OfDatabase,
    /// Its client encoding, if texts are not sent in UTF-8.
    SetEncoding(String),
    /// Strings with backslash escapes.
    OldStrings,
    /// A setting of the session.
    Set,
    /// Any other.
    Other,
}

impl Kind {
    pub(super) fn of(sql: &str) -> Self {
        let words: Vec<String> = sql.split_whitespace().take(4).map(str::to_ascii_uppercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["COPY", ..] if from_stdin(sql) => Self::CopyFromStdin,
            ["COPY", ..] => Self::OtherCopy,
            ["CREATE", "DATABASE", ..] => Self::CreateDatabase,
            ["ALTER" | "DROP", "DATABASE", ..] | ["COMMENT", "ON", "DATABASE", ..] => Self::OfDatabase,
            ["GRANT" | "REVOKE", ..] if sql.contains(" ON DATABASE ") => Self::OfDatabase,
            ["SET", "CLIENT_ENCODING", "=", value] => match value.trim_matches(['\'', ';']) {
                "UTF8" | "SQL_ASCII" => Self::Set,
                other => Self::SetEncoding(other.to_owned()),
            },
            ["SET", "STANDARD_CONFORMING_STRINGS", "=", "OFF;"] => Self::OldStrings,
            ["SET", ..] => Self::Set,
            _ => Self::Other,
        }
    }
}

/// Whether a COPY ends as `pg_dump` writes it.
fn from_stdin(sql: &str) -> bool {
    let end = sql.trim_end().trim_end_matches(';').trim_end();
    let mut words = end.rsplit(char::is_whitespace);
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("stdin"))
        && words.next().is_some_and(|word| word.eq_ignore_ascii_case("from"))
}

/// The extension that a statement creates.
pub(super) fn extension(sql: &str) -> Option<&str> {
    let mut words = sql.split_whitespace();
    let is_create =
        words.next()?.eq_ignore_ascii_case("create") && words.next()?.eq_ignore_ascii_case("extension");
    let mut words =
        words.skip_while(|word| ["if", "not", "exists"].contains(&word.to_ascii_lowercase().as_str()));
    words.next().filter(|_| is_create).map(|name| name.trim_matches([';', '"']))
}

/// The role whose absence is the server's error.
pub(super) fn missing_role(message: &str) -> Option<&str> {
    message.strip_prefix("role \"")?.strip_suffix("\" does not exist")
}

/// The first quoted name of a message.
pub(super) fn quoted_name(message: &str) -> Option<&str> {
    message.split('"').nth(1)
}

/// The number of a row of `COPY` in the context of an error: `COPY t, line 3, column a: "x"`.
pub(super) fn row_of(context: &str) -> Option<u64> {
    let digits = context.strip_prefix("COPY ")?.split_once(", line ")?.1;
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// A message about data without the value that it ends with: `invalid input syntax for type integer: "x"`.
pub(super) fn without_values(message: &str) -> &str {
    message.split_once(": \"").map_or(message, |(text, _)| text)
}

/// Beginning of a statement, for errors: up to its first value.
pub(super) fn head(sql: &str) -> String {
    let line = sql.trim_start().lines().next().unwrap_or_default();
    // Rows of INSERT follow VALUES, and numbers may be among them.
    let line = line.split(" VALUES").next().unwrap_or_default();
    let masked = mask(line.split('\'').next().unwrap_or_default());
    let head: String = masked.chars().take(HEAD_CHARS).collect();
    let head = head.trim_end_matches([';', ' ', '(']);
    if head.len() < masked.trim_end_matches([';', ' ', '(']).len() {
        format!("{head} …")
    } else {
        head.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_are_not_simply_executed_are_recognized() {
        for (sql, kind) in [
            ("COPY public.t (a, \"from b\") FROM stdin;", Kind::CopyFromStdin),
            ("copy t from stdin", Kind::CopyFromStdin),
            ("COPY t FROM PROGRAM 'id';", Kind::OtherCopy),
            ("COPY t (\"x from stdin\") TO '/tmp/x';", Kind::OtherCopy),
            ("CREATE DATABASE shop WITH TEMPLATE = template0;", Kind::CreateDatabase),
            ("ALTER DATABASE shop SET work_mem TO '1MB';", Kind::OfDatabase),
            ("REVOKE ALL ON DATABASE shop FROM PUBLIC;", Kind::OfDatabase),
            ("GRANT SELECT ON TABLE t TO reader;", Kind::Other),
            ("SET client_encoding = 'UTF8';", Kind::Set),
            ("SET client_encoding = 'LATIN1';", Kind::SetEncoding("LATIN1".to_owned())),
            ("SET standard_conforming_strings = on;", Kind::Set),
            ("SET standard_conforming_strings = off;", Kind::OldStrings),
        ] {
            assert_eq!(Kind::of(sql), kind, "{sql}");
        }
    }

    #[test]
    fn errors_have_the_beginning_of_a_statement_without_data_and_secrets() {
        assert_eq!(head("\nCREATE TABLE public.t (\n  a int);"), "CREATE TABLE public.t");
        assert_eq!(head("INSERT INTO t VALUES (1, 'private');"), "INSERT INTO t");
        assert_eq!(
            head("SELECT pg_catalog.lowrite(0, '\\x70726976617465');"),
            "SELECT pg_catalog.lowrite(0,"
        );
        let role = head("ALTER ROLE app PASSWORD 'hunter2';");
        assert!(role.starts_with("ALTER ROLE app") && !role.contains("hunter2"), "{role}");
        assert_eq!(head(&"x".repeat(100)).chars().count(), HEAD_CHARS + 2);
        assert_eq!(without_values("ERROR: invalid input syntax: \"private\""), "ERROR: invalid input syntax");
    }

    #[test]
    fn names_are_found_in_statements_and_messages() {
        assert_eq!(extension("CREATE EXTENSION IF NOT EXISTS postgis WITH SCHEMA public;"), Some("postgis"));
        assert_eq!(extension("CREATE EXTENSION \"uuid-ossp\";"), Some("uuid-ossp"));
        assert_eq!(extension("CREATE TABLE extension (a int);"), None);
        assert_eq!(missing_role("role \"a \"b\" does not exist"), Some("a \"b"));
        assert_eq!(row_of("COPY customers, line 77, column id: \"x\""), Some(77));
        assert_eq!(row_of("PL/pgSQL function f() line 3"), None);
        assert_eq!(missing_role("relation \"a\" does not exist"), None);
    }
}
