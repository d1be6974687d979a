//! The log of a server that pgdyno started, as events: checkpoints, autovacuums, temporary files, lock waits, errors.
//!
//! `server` starts its servers with `log_line_prefix = '%m [%p] %e <%b> <%a> '`, `log_timezone = 'UTC'` and English
//! messages. A log in another format can't be parsed; its lines are counted. Messages are PostgreSQL's own, of 9.6 to
//! 18; what a version does not report is omitted.

mod entry;
mod figures;
mod fold;
mod kind;

use model::record::Event;

use entry::Line;
use fold::EventFolder;

/// Contents of a server's log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerLog {
    /// Events, in order of time. Docs: `docs/events.md`.
    pub events: Vec<Event>,
    /// Number of lines that are not in our servers' format, and do not continue one that is.
    pub unparsed: u32,
}

/// Parses a log, or a part of one.
///
/// Of events that statements cause, such as errors, the first 100 per kind, SQLSTATE and session name are kept, and one
/// more event reports the number of those that followed.
pub fn events(text: &str) -> ServerLog {
    let mut log = ServerLog::default();
    let mut folder = EventFolder::default();
    for line in entry::lines(text) {
        match line {
            Line::Entry(entry) => {
                let sqlstate = entry.sqlstate;
                log.events.extend(kind::event_of(&entry).and_then(|event| folder.keep(event, sqlstate)));
            }
            Line::Unparsed => log.unparsed = log.unparsed.saturating_add(1),
        }
    }
    log.events.extend(folder.summaries());
    log.events.sort_by_key(|event| event.at);
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(second: u32, application: &str, rest: &str) -> String {
        format!("2026-01-02 03:04:{second:02}.678 UTC [42] 22012 <client backend> <{application}> {rest}\n")
    }

    #[test]
    fn an_error_is_an_event_at_its_time_with_its_sqlstate_and_session() {
        let text =
            line(5, "pgdyno", "ERROR:  division by zero") + &line(5, "pgdyno", "STATEMENT:  select 1 / 0");
        let log = events(&text);
        assert_eq!((log.events.len(), log.unparsed), (1, 0));
        let event = &log.events[0];
        assert_eq!(event.at.to_string(), "2026-01-02T03:04:05.678Z");
        assert_eq!(
            (event.kind.as_str(), event.message.as_str()),
            ("server-error", "22012: division by zero")
        );
        assert_eq!(event.object.as_deref(), Some("pgdyno"));
    }

    #[test]
    fn repeated_errors_are_folded_by_session_name() {
        let load = line(1, "pgdyno", "ERROR:  division by zero").repeat(2999);
        let last = line(9, "pgdyno", "ERROR:  division by zero");
        let control = line(2, "pgdyno control", "ERROR:  division by zero").repeat(3);
        let log = events(&(load + &control + &last));
        let events_of = |name: &str| {
            log.events.iter().filter(|event| event.object.as_deref() == Some(name)).collect::<Vec<_>>()
        };
        assert_eq!(events_of("pgdyno control").len(), 3);
        assert_eq!(events_of("pgdyno").len(), 101);
        let more = events_of("pgdyno")[100];
        assert_eq!((more.kind.as_str(), more.figures["more"]), ("server-error", 2900.0));
        assert_eq!(more.message, "22012: 2900 similar events after the first 100, the last at this time");
        assert_eq!(more.at.to_string(), "2026-01-02T03:04:09.678Z");
        assert!(log.events.is_sorted_by_key(|event| event.at));
    }

    #[test]
    fn checkpoints_are_never_folded() {
        let start = line(1, "", "LOG:  checkpoint starting: wal").replace("22012", "00000");
        assert_eq!(events(&start.repeat(500)).events.len(), 500);
    }

    #[test]
    fn lines_in_another_format_are_counted() {
        let default = "2026-01-02 03:04:05.678 CET [42] ERROR:  division by zero\n\tgoes on\n";
        assert_eq!(events(default), ServerLog { events: vec![], unparsed: 2 });
        let german = line(5, "pgdyno", "FEHLER:  Division durch Null");
        assert_eq!(events(&german), ServerLog { events: vec![], unparsed: 1 });
        let zone = line(5, "pgdyno", "ERROR:  division by zero").replace("UTC", "CET");
        assert_eq!(events(&zone), ServerLog { events: vec![], unparsed: 1 });
        // The output of an archive command goes to the log, too, between the server's own entries.
        let mixed = line(5, "", "LOG:  checkpoint starting: time") + "cp: no space left\n";
        let log = events(&mixed);
        assert_eq!((log.events.len(), log.unparsed), (1, 1));
    }

    #[test]
    fn a_truncated_entry_is_unparsed() {
        let text = line(5, "pgdyno", "ERROR:  division by zero") + "2026-01-02 03:04:0";
        let log = events(&text);
        assert_eq!((log.events.len(), log.unparsed), (1, 1));
    }
}
