//! An entry as its parsers find it: texts as places in its lines.

use std::borrow::Cow;
use std::ops::Range;

use crate::entry::SessionKey;
use crate::severity::Label;

/// An entry whose texts are places in its lines.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) at_us: i64,
    pub(crate) has_unknown_zone: bool,
    pub(crate) session: SessionKey,
    pub(crate) user: Text,
    pub(crate) database: Text,
    pub(crate) application: Text,
    pub(crate) backend: Text,
    pub(crate) sqlstate: Text,
    pub(crate) message: Text,
    pub(crate) detail: Text,
    pub(crate) context: Text,
    pub(crate) statement: Text,
}

/// An entry, and its label; without one, its severity is in another language.
pub(crate) type Parsed = (Record, Option<Label>);

/// A text of an entry.
#[derive(Debug, Default)]
pub(crate) enum Text {
    /// There is none.
    #[default]
    Missing,
    /// Bytes of the entry's lines.
    Range(Range<usize>),
    /// A text that the lines have in another form.
    Unescaped(String),
}

impl Text {
    pub(crate) fn get<'a>(&'a self, lines: &'a str) -> Option<Cow<'a, str>> {
        match self {
            Self::Missing => None,
            Self::Range(range) => lines.get(range.clone()).map(Cow::Borrowed),
            Self::Unescaped(text) => Some(Cow::Borrowed(text)),
        }
    }
}

impl Record {
    /// `log_error_verbosity = verbose` puts the SQLSTATE before the message of a stderr log.
    pub(crate) fn take_verbose_sqlstate(&mut self, lines: &str) {
        let Some(message) = self.message.get(lines) else { return };
        let Some((state, rest)) = message.split_once(": ") else { return };
        let is_state = state.len() == 5
            && state.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
            && state.bytes().any(|byte| byte.is_ascii_digit());
        if is_state {
            let (state, rest) = (state.to_owned(), rest.to_owned());
            self.sqlstate = Text::Unescaped(state);
            self.message = Text::Unescaped(rest);
        }
    }
}
