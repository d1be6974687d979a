//! Events on lanes: checkpoints and vacuums as spans, errors, the rest.

use model::record::{self, TrialRecord};

use super::{Event, Lane};

/// The events of a trial in order of time. Findings of gates are shown with the trial, not here.
pub(super) fn events(record: &TrialRecord) -> Vec<Event> {
    let Some(zero) = record.trial.load_started.or(record.trial.started) else { return Vec::new() };
    let after_us = |event: &record::Event| i64::try_from(event.at.duration_since(zero).as_micros()).ok();
    let mut events: Vec<Event> = Vec::new();
    // Index of a checkpoint that has started, and whose end has not been seen.
    let mut begun: Option<usize> = None;
    for event in record.events.iter().filter(|event| !event.kind.starts_with("judged-")) {
        let Some(at_us) = after_us(event) else { continue };
        let (start_us, end_us) = span_us(event, at_us);
        let shown = Event {
            start_us,
            end_us,
            lane: lane(&event.kind),
            kind: event.kind.clone(),
            message: event.message.clone(),
            of: event.object.clone(),
        };
        match event.kind.as_str() {
            "checkpoint-started" => {
                begun = Some(events.len());
                events.push(shown);
            }
            // One span has the reason for its start and its result.
            "checkpoint-ended" => match begun.take().and_then(|place| events.get_mut(place)) {
                Some(start) => {
                    let message = format!("{}; {}", start.message, shown.message);
                    *start = Event { message, ..shown };
                }
                None => events.push(shown),
            },
            _ => events.push(shown),
        }
    }
    events.sort_by_key(|event| event.start_us);
    events
}

/// Start and end of the activity whose length an event at this time reports.
fn span_us(event: &record::Event, at_us: i64) -> (i64, Option<i64>) {
    let (figure, is_logged_at_end) = match event.kind.as_str() {
        "checkpoint-ended" => ("total_us", true),
        "autovacuum" | "autoanalyze" => ("elapsed_us", true),
        "lock-wait" | "lock-acquired" => ("waited_us", true),
        "lock-holder" => ("held_us", false),
        _ => return (at_us, None),
    };
    match event.length_us(figure) {
        None => (at_us, None),
        Some(length_us) if is_logged_at_end => (at_us - length_us, Some(at_us)),
        Some(length_us) => (at_us, Some(at_us + length_us)),
    }
}

fn lane(kind: &str) -> Lane {
    match kind {
        "checkpoint-started" | "checkpoint-ended" | "checkpoints-too-frequent" => Lane::Checkpoint,
        "autovacuum" | "autoanalyze" | "autovacuum-cancelled" => Lane::Vacuum,
        "client-died" | "server-exited" | "server-error" | "server-fatal" | "server-panic"
        | "server-crashed" | "server-recovering" | "deadlock" => Lane::Error,
        _ => Lane::Other,
    }
}
