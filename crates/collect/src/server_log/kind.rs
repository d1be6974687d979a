//! Events from log entries.

use std::collections::BTreeMap;

use model::record::Event;

use super::entry::Entry;
use super::figures::{self, Figure};

/// Maximum length of an event's message; the log has the whole.
const MAX_MESSAGE_LENGTH: usize = 1000;
/// Messages of the server while it recovers from a crash.
const RECOVERY_MESSAGES: [&str; 6] = [
    "terminating any other active server processes",
    "all server processes terminated; reinitializing",
    "database system was interrupted",
    "database system was not properly shut down",
    "redo ",
    "recovery has been interrupted",
];

/// The event of an entry; none if it is not of interest.
pub(super) fn event_of(entry: &Entry) -> Option<Event> {
    match entry.severity {
        "LOG" => session_log(entry).or_else(|| autovacuum(entry)).or_else(|| server_log(entry)),
        "WARNING" => Some(problem(entry, "server-warning")),
        "ERROR" => Some(error(entry)),
        "FATAL" => Some(problem(entry, "server-fatal")),
        "PANIC" => Some(problem(entry, "server-panic")),
        _ => None,
    }
}

/// Event caused by a session's statement.
fn session_log(entry: &Entry) -> Option<Event> {
    let message = entry.message;
    if message.starts_with("temporary file: ") {
        return Some(Event {
            object: origin(entry),
            ..new_event(entry, "temp-file", &figures::TEMPORARY_FILE)
        });
    }
    // `process 42 still waiting for ShareLock on transaction 7 after 1000.123 ms`
    let (pid, wait) = message.strip_prefix("process ")?.split_once(' ')?;
    pid.parse::<u32>().ok()?;
    let kind = match wait.split(' ').next()? {
        "acquired" => "lock-acquired",
        "still" | "detected" | "avoided" | "failed" => "lock-wait",
        _ => return None,
    };
    let event = new_event(entry, kind, &figures::LOCK_WAIT);
    Some(Event { object: origin(entry), message: with_detail(entry), ..event })
}

/// `automatic [aggressive] vacuum [to prevent wraparound] of table "database.schema.table": …`, or `analyze`.
fn autovacuum(entry: &Entry) -> Option<Event> {
    let (action, _) = entry.message.strip_prefix("automatic ")?.split_once(" of table \"")?;
    let (first, more) = entry.message.split_once('\n').unwrap_or((entry.message, ""));
    let (table, rest) = quoted(first)?;
    let kind = match action.split(' ').next_back()? {
        "analyze" => "autoanalyze",
        _ => "autovacuum",
    };
    let figures = format!("{}\n{more}", rest.trim_start_matches([':', ' ']));
    Some(Event {
        object: Some(table.to_owned()),
        // Text on the first line after the name is a figure, too.
        message: truncate(&format!("automatic {action} of {table}")),
        figures: figures::read(&figures::AUTOVACUUM, &figures),
        ..new_event(entry, kind, &[])
    })
}

/// Event of the server itself.
fn server_log(entry: &Entry) -> Option<Event> {
    let message = entry.message;
    let starts = |with: &str| message.starts_with(with);
    let event = |kind| Some(new_event(entry, kind, &[]));
    if starts("checkpoint starting:") || starts("restartpoint starting:") {
        return event("checkpoint-started");
    }
    if starts("checkpoint complete:") || starts("restartpoint complete:") {
        return Some(new_event(entry, "checkpoint-ended", &figures::CHECKPOINT));
    }
    if starts("checkpoints are occurring too frequently") {
        return Some(new_event(entry, "checkpoints-too-frequent", &figures::TOO_FREQUENT));
    }
    if starts("database system is ready to accept") {
        return event("server-started");
    }
    if starts("received ") && message.ends_with(" shutdown request") {
        return event("server-stopping");
    }
    if starts("database system is shut down") {
        return event("server-stopped");
    }
    if RECOVERY_MESSAGES.into_iter().any(starts) {
        return event("server-recovering");
    }
    let by_signal = message.contains(" was terminated by signal ");
    // Background workers normally end this way.
    let by_exit = message.contains(" exited with exit code ") && !starts("background worker ");
    (message.contains(" (PID ") && (by_signal || by_exit))
        .then(|| Event { message: with_detail(entry), ..new_event(entry, "server-crashed", &[]) })
}

fn error(entry: &Entry) -> Event {
    match (entry.sqlstate, entry.context) {
        ("40P01", _) => Event { message: with_detail(entry), ..problem(entry, "deadlock") },
        ("57014", Some(context)) if entry.message == "canceling autovacuum task" => {
            let table = context.lines().find_map(|line| quoted(line.split_once("automatic ")?.1));
            let object = table.map(|(table, _)| table.to_owned());
            Event { object, ..new_event(entry, "autovacuum-cancelled", &[]) }
        }
        _ => problem(entry, "server-error"),
    }
}

fn problem(entry: &Entry, kind: &str) -> Event {
    let message = truncate(&format!("{}: {}", entry.sqlstate, without_tabs(entry.message)));
    Event { object: origin(entry), message, ..new_event(entry, kind, &[]) }
}

fn new_event(entry: &Entry, kind: &str, figures: &[Figure]) -> Event {
    Event {
        at: entry.at,
        kind: kind.to_owned(),
        message: truncate(&without_tabs(entry.message)),
        object: None,
        figures: match figures {
            [] => BTreeMap::new(),
            _ => figures::read(figures, entry.message),
        },
    }
}

/// Origin of an entry: the session's name, or else the kind of process.
fn origin(entry: &Entry) -> Option<String> {
    let known = |name: &&str| !name.is_empty() && *name != "[unknown]";
    [entry.application, entry.backend].into_iter().find(known).map(str::to_owned)
}

fn with_detail(entry: &Entry) -> String {
    match entry.detail {
        Some(detail) => truncate(&format!("{}: {}", without_tabs(entry.message), without_tabs(detail))),
        None => truncate(&without_tabs(entry.message)),
    }
}

/// Text between the first and the last quote, and the text after. A name may contain quotes.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (_, from) = text.split_once('"')?;
    from.rsplit_once('"')
}

/// A text without the tabs at the start of the log's continuation lines.
fn without_tabs(text: &str) -> String {
    text.replace("\n\t", "\n")
}

fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
