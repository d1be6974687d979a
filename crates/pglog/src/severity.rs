//! Severities of entries, and the parts of an entry that stderr logs write like one.

/// Severity of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// `LOG`, and everything below an error.
    Log,
    /// `ERROR`: the statement failed.
    Error,
    /// `FATAL` or `PANIC`: the session ended.
    Fatal,
}

/// The word before the first colon of a line in a stderr log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// The start of an entry.
    Entry(Severity),
    /// Adds to the entry before it.
    Detail,
    Context,
    Statement,
    /// Adds something that is not used: HINT, QUERY, LOCATION, BACKTRACE.
    Unused,
    /// A word in another language.
    Foreign,
}

/// Longest word in characters.
const MAX_WORD: usize = 24;

impl Label {
    /// Parses `LOG:  ` at the start of a text. Returns the label and the length with its colon and spaces.
    pub(crate) fn parse(text: &str) -> Option<(Self, usize)> {
        let bytes = text.as_bytes();
        let colon = bytes.iter().take(MAX_WORD * 3).position(|byte| *byte == b':')?;
        let is_empty = bytes[colon + 1..].trim_ascii().is_empty();
        if !is_empty && !bytes[colon + 1..].starts_with(b"  ") {
            return None;
        }
        let length = bytes.len().min(colon + 3);
        if let Some(label) = Self::from_word(&text[..colon]) {
            return Some((label, length));
        }
        let is_foreign = |word: &str| {
            (2..=MAX_WORD).contains(&word.chars().count())
                && word.chars().all(|c| c.is_alphabetic() && !c.is_lowercase())
        };
        (!is_empty && is_foreign(&text[..colon])).then_some((Self::Foreign, length))
    }

    /// The label that a word of a csvlog or jsonlog is.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "LOG" | "INFO" | "NOTICE" | "WARNING" => Self::Entry(Severity::Log),
            "ERROR" => Self::Entry(Severity::Error),
            "FATAL" | "PANIC" => Self::Entry(Severity::Fatal),
            "DETAIL" => Self::Detail,
            "CONTEXT" => Self::Context,
            "STATEMENT" => Self::Statement,
            "HINT" | "QUERY" | "LOCATION" | "BACKTRACE" => Self::Unused,
            debug if debug.starts_with("DEBUG") && debug.len() <= 6 => Self::Entry(Severity::Log),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_known_word_and_a_colon() {
        assert_eq!(Label::parse("LOG:  duration"), Some((Label::Entry(Severity::Log), 6)));
        assert_eq!(Label::parse("ERROR:\r\n"), Some((Label::Entry(Severity::Error), 8)));
        assert_eq!(Label::parse("DEBUG2:  x"), Some((Label::Entry(Severity::Log), 9)));
        assert_eq!(Label::parse("STATEMENT:  select"), Some((Label::Statement, 12)));
        assert_eq!(Label::parse("FEHLER:  Division"), Some((Label::Foreign, 9)));
        assert_eq!(Label::parse("ОШИБКА:  деление"), Some((Label::Foreign, "ОШИБКА:  ".len())));
        for text in ["cp: no space", "LOG: one", "FEHLER: einmal", "LOG", "", ":  ", "user@db LOG:  x"] {
            assert_eq!(Label::parse(text), None, "{text}");
        }
    }
}
