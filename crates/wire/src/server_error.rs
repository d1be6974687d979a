//! What a server says when it refuses something, or when it has something to remark.

mod position;

use std::fmt;

/// The content of an ErrorResponse or NoticeResponse. Texts are cut where the message was longer than the reader keeps.
///
/// Source: PostgreSQL manual, "Error and Notice Message Fields".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`, of notices `WARNING`, `NOTICE`, `DEBUG`, `INFO` or `LOG`; localised where the
    /// server is older than 9.6.
    pub severity: String,
    /// The severity in the server's language; empty where the server said none.
    pub localized_severity: String,
    /// Five characters of SQLSTATE; empty where the server said none.
    pub sqlstate: String,
    /// The primary message.
    pub message: String,
    /// More about the problem.
    pub detail: Option<String>,
    /// What the server advises.
    pub hint: Option<String>,
    /// Where in the query the problem is, in characters from 1.
    pub position: Option<usize>,
    /// Where it is in `internal_query`, in characters from 1.
    pub internal_position: Option<usize>,
    /// A query that the server made itself, such as one of a function.
    pub internal_query: Option<String>,
    /// What the server was doing: a trace of calls, the last one first.
    pub context: Option<String>,
    /// Schema of what the problem is about.
    pub schema: Option<String>,
    /// Table that the problem is about.
    pub table: Option<String>,
    /// Column that the problem is about.
    pub column: Option<String>,
    /// Data type that the problem is about.
    pub data_type: Option<String>,
    /// Constraint that is violated.
    pub constraint: Option<String>,
    /// File of the server's source.
    pub file: Option<String>,
    /// Line of that file.
    pub line: Option<String>,
    /// Function of the server's source.
    pub routine: Option<String>,
}

impl ServerError {
    /// Reads the body of an ErrorResponse or NoticeResponse, which may have been cut anywhere.
    pub(crate) fn from_body(body: &[u8]) -> Self {
        let mut error = Self::default();
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'V' => error.severity = text,
                b'S' => error.localized_severity = text,
                b'C' => error.sqlstate = text,
                b'M' => error.message = text,
                b'D' => error.detail = Some(text),
                b'H' => error.hint = Some(text),
                b'P' => error.position = text.parse().ok(),
                b'p' => error.internal_position = text.parse().ok(),
                b'q' => error.internal_query = Some(text),
                b'W' => error.context = Some(text),
                b's' => error.schema = Some(text),
                b't' => error.table = Some(text),
                b'c' => error.column = Some(text),
                b'd' => error.data_type = Some(text),
                b'n' => error.constraint = Some(text),
                b'F' => error.file = Some(text),
                b'L' => error.line = Some(text),
                b'R' => error.routine = Some(text),
                _ => {}
            }
        }
        if error.severity.is_empty() {
            error.severity.clone_from(&error.localized_severity);
        }
        error
    }

    /// A complaint in the form that the postmaster uses when it cannot even fork: text alone.
    pub(crate) fn from_text(text: &[u8]) -> Self {
        let message = String::from_utf8_lossy(text).trim_end().to_owned();
        Self { severity: "FATAL".to_owned(), message, ..Self::default() }
    }

    /// The SQLSTATE, where the server said one.
    pub fn code(&self) -> Option<&str> {
        (!self.sqlstate.is_empty()).then_some(self.sqlstate.as_str())
    }

    /// The text as libpq, and with it psql and pgbench, prints it at default verbosity, of several lines each with its
    /// end. `query` is what was sent, to show the place in it; libpq does not know it where a prepared statement is
    /// executed.
    pub fn libpq_text(&self, query: Option<&str>) -> String {
        let severity = match self.localized_severity.as_str() {
            "" => &self.severity,
            localized => localized,
        };
        let mut text = match severity {
            "" => self.message.clone(),
            severity => format!("{severity}:  {}", self.message),
        };
        let place = match (self.position, self.internal_position) {
            (Some(position), _) => Some((position, query)),
            (None, Some(position)) => Some((position, self.internal_query.as_deref())),
            (None, None) => None,
        };
        if let Some((position, None)) = place {
            text.push_str(&format!(" at character {position}"));
        }
        text.push('\n');
        if let Some((position, Some(query))) = place {
            position::show(query, position, &mut text);
        }
        // Notices do not tell where they come from.
        let is_error = matches!(self.severity.as_str(), "ERROR" | "FATAL" | "PANIC");
        for (name, field) in [
            ("DETAIL", &self.detail),
            ("HINT", &self.hint),
            ("QUERY", &self.internal_query),
            ("CONTEXT", if is_error { &self.context } else { &None }),
        ] {
            if let Some(field) = field {
                text.push_str(&format!("{name}:  {field}\n"));
            }
        }
        text
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.severity.is_empty() { "ERROR" } else { &self.severity };
        write!(f, "{severity}: {}", self.message)?;
        if let Some(code) = self.code() {
            write!(f, " (SQLSTATE {code})")?;
        }
        for (name, text) in [("detail", &self.detail), ("hint", &self.hint)] {
            if let Some(text) = text {
                write!(f, "; {name}: {text}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(fields: &str) -> ServerError {
        ServerError::from_body(fields.as_bytes())
    }

    #[test]
    fn all_fields_are_read() {
        let error = error(
            "SFEHLER\0VERROR\0C23505\0Mm\0Dd\0Hh\0P7\0p8\0qq\0Ww\0ss\0tt\0cc\0dd\0nn\0Ff.c\0L9\0Rr\0\0",
        );
        let text = |text: &str| Some(text.to_owned());
        let expected = ServerError {
            severity: "ERROR".to_owned(),
            localized_severity: "FEHLER".to_owned(),
            sqlstate: "23505".to_owned(),
            message: "m".to_owned(),
            detail: text("d"),
            hint: text("h"),
            position: Some(7),
            internal_position: Some(8),
            internal_query: text("q"),
            context: text("w"),
            schema: text("s"),
            table: text("t"),
            column: text("c"),
            data_type: text("d"),
            constraint: text("n"),
            file: text("f.c"),
            line: text("9"),
            routine: text("r"),
        };
        assert_eq!(error, expected);
    }

    #[test]
    fn the_text_is_libpqs() {
        let fields = "SERROR\0VERROR\0C42P01\0Mrelation \"x\" does not exist\0Dmore\0Hless\0P15\0Wwhere\0\0";
        assert_eq!(
            error(fields).libpq_text(Some("SELECT * FROM x;")),
            "ERROR:  relation \"x\" does not exist\nLINE 1: SELECT * FROM x;\n                      ^\n\
             DETAIL:  more\nHINT:  less\nCONTEXT:  where\n"
        );
        assert_eq!(error("SERROR\0VERROR\0Mno\0P15\0\0").libpq_text(None), "ERROR:  no at character 15\n");
        assert_eq!(
            error("SERROR\0VERROR\0Mno\0p1\0qPERFORM 1\0\0").libpq_text(Some("SELECT f()")),
            "ERROR:  no\nLINE 1: PERFORM 1\n        ^\nQUERY:  PERFORM 1\n"
        );
        assert_eq!(error("SHINWEIS\0VNOTICE\0Mso\0Wwhere\0\0").libpq_text(None), "HINWEIS:  so\n");
    }
}
