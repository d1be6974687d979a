//! Folds events of statements: a load in which every transaction fails would fill a bundle with one message.

use std::collections::BTreeMap;

use model::record::Event;

/// The SQLSTATE of messages that are no errors.
const SUCCESS: &str = "00000";
/// Maximum number of events kept per sort.
const KEPT: u32 = 100;
/// Kinds that a statement can cause. All others occur at the server's own pace: each of those is kept.
const OF_STATEMENTS: [&str; 7] =
    ["deadlock", "lock-acquired", "lock-wait", "server-error", "server-fatal", "server-warning", "temp-file"];

/// Number of events by sort.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    seen: BTreeMap<Sort, Seen>,
}

/// Kind, SQLSTATE, and session name of events that are folded into one.
type Sort = (String, String, Option<String>);

#[derive(Debug)]
struct Seen {
    times: u32,
    last: jiff::Timestamp,
}

impl Repeated {
    /// Returns the event unless there have been enough of its sort.
    pub(super) fn keep(&mut self, event: Event, sqlstate: &str) -> Option<Event> {
        if !OF_STATEMENTS.contains(&event.kind.as_str()) {
            return Some(event);
        }
        let sort = (event.kind.clone(), sqlstate.to_owned(), event.of.clone());
        let seen = self.seen.entry(sort).or_insert(Seen { times: 0, last: event.at });
        seen.times = seen.times.saturating_add(1);
        seen.last = event.at;
        (seen.times <= KEPT).then_some(event)
    }

    /// One event per sort for those not returned.
    pub(super) fn rest(self) -> impl Iterator<Item = Event> {
        self.seen.into_iter().filter(|(_, seen)| seen.times > KEPT).map(|((kind, sqlstate, of), seen)| {
            let more = seen.times - KEPT;
            let mut message = format!("{more} more like the {KEPT} before, the last of them now");
            if sqlstate != SUCCESS {
                message = format!("{sqlstate}: {message}");
            }
            Event {
                at: seen.last,
                kind,
                message,
                of,
                figures: BTreeMap::from([("more".to_owned(), f64::from(more))]),
            }
        })
    }
}
