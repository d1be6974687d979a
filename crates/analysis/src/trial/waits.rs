//! Sampled waits of sessions, over time.

use std::collections::BTreeMap;

use model::waits::{self, SessionKind};

use super::points::{Points, figure, groups};
use super::{WaitSeries, Waits};

/// Number of states that are listed individually.
const SHOWN: usize = 24;

/// Kind of session, wait type, wait event.
type State<'a> = (&'a str, &'a str, Option<&'a str>);

/// Sums of sampled sessions, by span.
type Counts = Vec<u64>;

/// Waits over time; `None` if there were no samples.
pub(super) fn waits(waits: &[waits::Waits], most: Points) -> Option<Waits> {
    // The number of samples of a span is the same in all its rows.
    let mut spans: BTreeMap<i64, (i64, u64)> = BTreeMap::new();
    for row in waits {
        let (width_us, samples) = spans.entry(row.at_us).or_default();
        *width_us = i64::try_from(row.width_us).unwrap_or(i64::MAX).max(*width_us);
        *samples = u64::from(row.samples).max(*samples);
    }
    let spans: Vec<(i64, i64, u64)> =
        spans.into_iter().map(|(at_us, (width_us, samples))| (at_us, width_us, samples)).collect();
    let mut states: BTreeMap<State<'_>, Counts> = BTreeMap::new();
    for row in waits {
        let Ok(place) = spans.binary_search_by_key(&row.at_us, |(at_us, ..)| *at_us) else { continue };
        states.entry(state(row)).or_insert_with(|| vec![0; spans.len()])[place] += u64::from(row.seen);
    }
    if spans.is_empty() {
        return None;
    }
    let together: Vec<_> = groups(spans.len(), most.of_each(SHOWN)).collect();
    let series = |(session, kind, event): State<'_>, seen: &Counts| {
        let sessions = together.iter().map(|group| {
            let samples: u64 = spans[group.clone()].iter().map(|(.., samples)| samples).sum();
            figure(seen[group.clone()].iter().sum::<u64>() as f64 / samples.max(1) as f64)
        });
        WaitSeries {
            session: session.to_owned(),
            kind: kind.to_owned(),
            event: event.map(str::to_owned),
            sessions: sessions.collect(),
        }
    };
    let start_us = |group: &std::ops::Range<usize>| spans[group.start].0;
    let end_us = |group: &std::ops::Range<usize>| spans[group.end - 1].0 + spans[group.end - 1].1;
    Some(Waits {
        start_us: together.iter().map(start_us).collect(),
        width_us: together.iter().map(|group| end_us(group) - start_us(group)).collect(),
        series: shown(states).iter().map(|(state, seen)| series(*state, seen)).collect(),
    })
}

fn state(row: &waits::Waits) -> State<'_> {
    let (kind, event) = row.activity();
    (row.session.name(), kind, event)
}

/// Wait type of sessions that wait for work, usual for the server's own processes.
const ACTIVITY: &str = "Activity";
/// Name of states that are not listed individually.
const REST: &str = "rest";

/// The most frequent states, the load's sessions first if equally frequent, and the rest of each kind of session.
fn shown(states: BTreeMap<State<'_>, Counts>) -> Vec<(State<'_>, Counts)> {
    let mut states: Vec<(State<'_>, Counts)> = states.into_iter().collect();
    states.sort_by_cached_key(|((session, kind, _), seen)| {
        let is_load = *session == SessionKind::Load.name();
        (*kind == ACTIVITY, std::cmp::Reverse(seen.iter().sum::<u64>()), !is_load)
    });
    let mut rest: BTreeMap<&str, Counts> = BTreeMap::new();
    for ((session, ..), seen) in states.split_off(SHOWN.min(states.len())) {
        let together = rest.entry(session).or_insert_with(|| vec![0; seen.len()]);
        together.iter_mut().zip(seen).for_each(|(together, seen)| *together += seen);
    }
    states.extend(rest.into_iter().map(|(session, seen)| ((session, REST, None), seen)));
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        at_s: i64,
        samples: u32,
        session: &str,
        state: Option<&str>,
        wait: Option<(&str, &str)>,
        seen: u32,
    ) -> waits::Waits {
        waits::Waits {
            at_us: at_s * 1_000_000,
            width_us: 1_000_000,
            samples,
            session: SessionKind::from_name(session),
            state: state.map(str::to_owned),
            event_type: wait.map(|(kind, _)| kind.to_owned()),
            event: wait.map(|(_, event)| event.to_owned()),
            seen,
        }
    }

    #[test]
    fn sessions_are_observations_per_sample() {
        let active = Some("active");
        let rows = [
            row(0, 20, "load", active, None, 10),
            row(0, 20, "load", active, Some(("LWLock", "WALWrite")), 40),
            row(0, 20, "load", Some("idle in transaction"), Some(("Client", "ClientRead")), 30),
            row(1, 10, "load", active, None, 15),
            row(3, 20, "checkpointer", None, Some(("Activity", "CheckpointerMain")), 20),
        ];
        let waits = waits(&rows, Points::All).unwrap();
        assert_eq!(waits.start_us, [0, 1_000_000, 3_000_000], "of the third second nothing is known");
        let series: Vec<(&str, &str, Option<&str>, &[f64])> = waits
            .series
            .iter()
            .map(|one| {
                (one.session.as_str(), one.kind.as_str(), one.event.as_deref(), one.sessions.as_slice())
            })
            .collect();
        assert_eq!(
            series,
            [
                ("load", "LWLock", Some("WALWrite"), [2.0, 0.0, 0.0].as_slice()),
                ("load", "idle in transaction", None, &[1.5, 0.0, 0.0]),
                ("load", "CPU", None, &[0.5, 1.5, 0.0]),
                ("checkpointer", "Activity", Some("CheckpointerMain"), &[0.0, 0.0, 1.0]),
            ]
        );
    }

    #[test]
    fn many_states_or_spans_are_combined_without_loss() {
        let names: Vec<String> = (0..40).map(|n| format!("Event{n}")).collect();
        let rows: Vec<waits::Waits> = (0..30)
            .flat_map(|second| {
                names.iter().map(move |name| row(second, 20, "load", Some("active"), Some(("IO", name)), 20))
            })
            .collect();
        let waits = waits(&rows, Points::AtMost(7)).unwrap();
        assert_eq!(waits.series.len(), SHOWN + 1);
        assert_eq!(
            waits.series.last().map(|rest| (rest.kind.as_str(), rest.sessions[0])),
            Some((REST, 16.0))
        );
        assert!(waits.start_us.len() <= 7);
        for column in 0..waits.start_us.len() {
            let all: f64 = waits.series.iter().map(|series| series.sessions[column]).sum();
            assert_eq!(all, 40.0);
        }
    }
}
