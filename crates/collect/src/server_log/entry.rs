//! Entries of the log, assembled from its lines.
//!
//! The server writes an entry at once: its message, then DETAIL, CONTEXT, STATEMENT and the like, each with its own
//! prefix; lines of a text after its first start with a tab (`send_message_to_server_log` in elog.c).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Length of `2026-01-02 03:04:05.678`.
const TIME_LENGTH: usize = 23;
/// Including its colon.
const MAX_SEVERITY_LENGTH: usize = 10;
/// Severities of lines that are not entries but add to the one before.
const CONTINUATIONS: [&str; 7] = ["DETAIL", "HINT", "QUERY", "CONTEXT", "LOCATION", "BACKTRACE", "STATEMENT"];

/// An item of a log.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    /// An entry of the server.
    Entry(Entry<'a>),
    /// A line that is not in our servers' format.
    Unparsed,
}

/// An entry of a server's log.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry<'a> {
    /// Its time.
    pub(super) at: Timestamp,
    /// Five letters or digits; `00000` for success.
    pub(super) sqlstate: &'a str,
    /// Kind of the process, such as `checkpointer`; empty before PostgreSQL 13.
    pub(super) backend: &'a str,
    /// The session's `application_name`; empty if the process has no client.
    pub(super) application: &'a str,
    /// LOG, ERROR and so on.
    pub(super) severity: &'a str,
    /// The message; lines after the first start with a tab.
    pub(super) message: &'a str,
    /// DETAIL, in the same format.
    pub(super) detail: Option<&'a str>,
    /// CONTEXT, in the same format.
    pub(super) context: Option<&'a str>,
}

/// The entries of a log, and its other lines, in order.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut texts = texts(text).peekable();
    std::iter::from_fn(move || {
        let text = texts.next()?;
        // A part without its entry: the log starts in the middle of one.
        let Some(mut entry) =
            text.and_then(parse_entry).filter(|entry| !CONTINUATIONS.contains(&entry.severity))
        else {
            return Some(Line::Unparsed);
        };
        while let Some(part) = texts.peek().copied().flatten().and_then(parse_entry) {
            match part.severity {
                "DETAIL" => entry.detail = Some(part.message),
                "CONTEXT" => entry.context = Some(part.message),
                other if CONTINUATIONS.contains(&other) => {}
                _ => break,
            }
            texts.next();
        }
        Some(Line::Entry(entry))
    })
}

/// Texts with a prefix, including their continuation lines; none for each line that does not belong to one.
fn texts(log: &str) -> impl Iterator<Item = Option<&str>> {
    let mut rest = log;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = line_end(rest);
        let is_entry_start = parse_entry(&rest[..end]).is_some();
        while is_entry_start && rest[end..].starts_with('\t') {
            end += line_end(&rest[end..]);
        }
        let (text, after) = rest.split_at(end);
        rest = after;
        Some(is_entry_start.then(|| text.trim_end_matches(['\r', '\n'])))
    })
}

fn line_end(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |at| at + 1)
}

/// Parses `%m [%p] %e <%b> <%a> SEVERITY:  message`, in UTC.
fn parse_entry(text: &str) -> Option<Entry<'_>> {
    let (time, rest) = text.split_at_checked(TIME_LENGTH)?;
    let rest = rest.strip_prefix(" UTC [").or_else(|| rest.strip_prefix(" GMT ["))?;
    let (pid, rest) = rest.split_once("] ")?;
    pid.parse::<u32>().ok()?;
    let (sqlstate, rest) = rest.split_once(" <")?;
    let (backend, rest) = rest.split_once("> <")?;
    // An application name may contain anything.
    let (application, severity, message) = rest.match_indices("> ").find_map(|(at, end)| {
        let after = &rest[at + end.len()..];
        let (severity, message) =
            after.split_at(after.bytes().take(MAX_SEVERITY_LENGTH).position(|b| b == b':')?);
        let message = message.strip_prefix(":  ")?;
        is_severity(severity).then_some((&rest[..at], severity, message))
    })?;
    let at = time.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    // `log_error_verbosity = verbose` repeats the SQLSTATE.
    let message = message.strip_prefix(sqlstate).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message);
    Some(Entry { at, sqlstate, backend, application, severity, message, detail: None, context: None })
}

fn is_severity(word: &str) -> bool {
    matches!(word, "LOG" | "INFO" | "NOTICE" | "WARNING" | "ERROR" | "FATAL" | "PANIC")
        || word.starts_with("DEBUG")
        || CONTINUATIONS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "2026-01-02 03:04:05.678 UTC [42] 22012 <client backend> ";

    #[test]
    fn continuations_belong_to_their_entry() {
        let text = format!(
            "{PREFIX}<a> ERROR:  one\n\ttwo\n\t\n\tthree\n{PREFIX}<a> DETAIL:  more\n\tand more\n\
             {PREFIX}<a> STATEMENT:  select\n\t'ERROR:  none'\n{PREFIX}<b> LOG:  next\n"
        );
        let all: Vec<_> = lines(&text).collect();
        let [Line::Entry(error), Line::Entry(next)] = &all[..] else { panic!("{all:#?}") };
        assert_eq!((error.message, error.detail), ("one\n\ttwo\n\t\n\tthree", Some("more\n\tand more")));
        assert_eq!((next.application, next.message), ("b", "next"));
    }

    #[test]
    fn continuations_without_an_entry_are_unparsed() {
        let text = format!("\tend of one\n{PREFIX}<a> STATEMENT:  select 1\n\t+ 1\n{PREFIX}<b> LOG:  next\n");
        let all: Vec<_> = lines(&text).collect();
        assert!(matches!(all[..], [Line::Unparsed, Line::Unparsed, Line::Entry(_)]), "{all:#?}");
    }

    #[test]
    fn an_application_name_may_contain_anything() {
        let text = format!("{PREFIX}<a> LOG: <b>> WARNING:  beware\n");
        let all: Vec<_> = lines(&text).collect();
        let [Line::Entry(entry)] = &all[..] else { panic!("{all:#?}") };
        assert_eq!((entry.application, entry.severity, entry.message), ("a> LOG: <b>", "WARNING", "beware"));
    }

    #[test]
    fn verbose_entries_are_parsed_alike() {
        let text =
            format!("{PREFIX}<> ERROR:  22012: division by zero\n{PREFIX}<> LOCATION:  int4div, int.c:846\n");
        let all: Vec<_> = lines(&text).collect();
        let [Line::Entry(entry)] = &all[..] else { panic!("{all:#?}") };
        assert_eq!(entry.message, "division by zero");
    }
}
