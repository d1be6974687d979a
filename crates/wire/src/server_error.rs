//! What a server says when it refuses something.

use std::fmt;

/// The content of an ErrorResponse. Texts are cut where the message was longer than the reader keeps.
///
/// Source: PostgreSQL manual, "Error and Notice Message Fields".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`; localised where the server is older than 9.6.
    pub severity: String,
    /// Five characters of SQLSTATE; empty where the server said none.
    pub sqlstate: String,
    /// The primary message.
    pub message: String,
    /// More about the problem.
    pub detail: Option<String>,
    /// What the server advises.
    pub hint: Option<String>,
}

impl ServerError {
    /// Reads the body of an ErrorResponse, which may have been cut anywhere.
    pub(crate) fn from_body(body: &[u8]) -> Self {
        let mut error = Self::default();
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'V' => error.severity = text,
                b'S' if error.severity.is_empty() => error.severity = text,
                b'C' => error.sqlstate = text,
                b'M' => error.message = text,
                b'D' => error.detail = Some(text),
                b'H' => error.hint = Some(text),
                _ => {}
            }
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
