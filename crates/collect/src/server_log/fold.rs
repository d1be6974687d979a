//! Folds events of statements: a load in which every transaction fails would fill a bundle with one message.

use std::collections::BTreeMap;

use model::record::Event;

/// The SQLSTATE of messages that are no errors.
const SUCCESS: &str = "00000";
/// Maximum number of events kept per key.
const MAX_KEPT: u32 = 100;
/// Kinds that a statement can cause. All others occur at the server's own pace: each of those is kept.
const STATEMENT_KINDS: [&str; 7] =
    ["deadlock", "lock-acquired", "lock-wait", "server-error", "server-fatal", "server-warning", "temp-file"];

/// Number of events by key.
#[derive(Debug, Default)]
pub(super) struct EventFolder {
    occurrences: BTreeMap<EventKey, Occurrences>,
}

/// Kind, SQLSTATE, and session name of events that are folded into one.
type EventKey = (String, String, Option<String>);

#[derive(Debug)]
struct Occurrences {
    count: u32,
    last: jiff::Timestamp,
}

impl EventFolder {
    /// Returns the event unless [`MAX_KEPT`] with its key were returned.
    pub(super) fn keep(&mut self, event: Event, sqlstate: &str) -> Option<Event> {
        if !STATEMENT_KINDS.contains(&event.kind.as_str()) {
            return Some(event);
        }
        let key = (event.kind.clone(), sqlstate.to_owned(), event.object.clone());
        let occurrences = self.occurrences.entry(key).or_insert(Occurrences { count: 0, last: event.at });
        occurrences.count = occurrences.count.saturating_add(1);
        occurrences.last = event.at;
        (occurrences.count <= MAX_KEPT).then_some(event)
    }

    /// One event per key for those not returned.
    pub(super) fn summaries(self) -> impl Iterator<Item = Event> {
        let folded = self.occurrences.into_iter().filter(|(_, occurrences)| occurrences.count > MAX_KEPT);
        folded.map(|((kind, sqlstate, object), occurrences)| {
            let more = occurrences.count - MAX_KEPT;
            let mut message =
                format!("{more} similar events after the first {MAX_KEPT}, the last at this time");
            if sqlstate != SUCCESS {
                message = format!("{sqlstate}: {message}");
            }
            Event {
                at: occurrences.last,
                kind,
                message,
                object,
                figures: BTreeMap::from([("more".to_owned(), f64::from(more))]),
            }
        })
    }
}
